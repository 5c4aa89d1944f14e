// How often each entry point was called: one block of counters per thread, summed by whoever asks.
//
// Only the owning thread writes a block, with single instructions (preload/trampoline.inc), so counting needs neither
// lock nor atomic read-modify-write, and a signal handler on the same thread loses nothing. A block outlives its
// thread: the counts stay, and the next thread goes on counting in it.
#pragma once

#include <cstddef>
#include <cstdint>

// The calling thread's block, or null before its first call. Read by the trampolines; initial-exec, so that reading it
// calls nothing.
extern "C" {
extern __thread std::uint64_t* memopt_thread_counters __attribute__((visibility("hidden"), tls_model("initial-exec")));
}

namespace memopt::agent {

// Entry points are numbered below this; a block is mapped whole.
inline constexpr std::size_t kMaxEntryPoints = 1000;

// Counts one call on a thread that may have no block yet, and gives it one. The slow way; once per thread.
void count_first_call(std::size_t entry_point) noexcept;

// Calls of all threads, dead ones included. Calls made meanwhile may or may not be in.
std::uint64_t calls_of(std::size_t entry_point) noexcept;

// In a forked child, which has one thread: everything back to zero; the thread takes the slow way at its next call.
void reset_counters_after_fork() noexcept;

// How many blocks exist, for tests of their reuse.
std::size_t counter_blocks() noexcept;

}  // namespace memopt::agent
