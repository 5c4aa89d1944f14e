// Call stacks of the calling thread, as one number each: the hash of the return addresses relative to the modules they
// lie in, so that it is the same in every run of the program.
//
// call_stack() only while recording: a stack that was not seen in this recording is written to it once (kStack), with
// the modules (kModule) that its addresses lie in. noexcept; takes no memory from the program's malloc after a thread's
// first walk. The process's first walk loads libunwind, so no lock of the agent may be held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace memopt::agent {

inline constexpr std::size_t kMaxStackFrames = 64;

// The hash of the stack from the frame that `return_address` returns to (the program's call into the driver)
// outwards; 0 if it could not be walked.
std::uint64_t call_stack(const void* return_address) noexcept;

// The addresses themselves, innermost first; returns how many, 0 if it could not be walked. Not only while recording.
std::size_t program_frames(const void* return_address, std::span<void*, kMaxStackFrames> found) noexcept;

void forget_call_stacks_after_fork() noexcept;

}  // namespace memopt::agent
