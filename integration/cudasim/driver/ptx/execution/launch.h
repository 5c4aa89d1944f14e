// Running a kernel that has been made ready. One launch runs on one thread at a time.
//
// Global memory is touched by plain loads and stores at its addresses: a fault is a signal, which the caller turns into
// a value (the frames in between own nothing). Everything that a launch needs beside belongs to the Launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cudasim::ptx {

struct Executable;

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

struct Shape {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  // its blocks run in turns and may wait for each other
};

// What the execution is told and tells.
struct Observer {
  // Each access to global memory, and to generic addresses that are neither shared nor local; null: not wanted.
  void (*touched)(void* context, std::uint64_t address, std::uint32_t bytes, Access access) = nullptr;
  void* context = nullptr;
};

enum class Stop : std::uint8_t {
  kDone,
  kTrap,         // trap, brkpt
  kAssert,       // __assertfail
  kMisaligned,   // an address that is not a multiple of its access
  kAddress,      // outside of shared memory, or of the thread's stack
  kInstruction,  // a call through a pointer to no function
  kDeadlock,     // all threads wait at barriers
};

struct Outcome {
  Stop stop = Stop::kDone;
  std::uint64_t address = 0;
  std::string text;  // where, for a message
};

// For the roofline.
struct Counts {
  std::uint64_t operations = 0;    // of lanes; a fused multiply-add is one
  std::uint64_t global_bytes = 0;  // in sectors of 32 bytes, once per instruction of a warp
  std::uint64_t instructions = 0;  // of warps
};

class Launch {
 public:
  Launch(std::shared_ptr<const Executable> executable, const Shape& shape, std::span<const std::byte> parameters,
         Observer observer);
  ~Launch();
  // Blocks first to last - 1, numbered x fastest. Of a cooperative grid: all at once.
  Outcome run(std::uint64_t first, std::uint64_t last);
  // What one warp of the grid does when global memory reads as zero and is not written: depends on the launch alone.
  // Ends after `most` instructions.
  Counts sample(std::uint64_t block, std::uint64_t most);
  const Counts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim::ptx
