// A block of threads that runs: its warps, barriers and memory.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "ptx/execution/launch.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {

// Address space with pages that fault behind it; kept from block to block.
class Region {
 public:
  ~Region();
  // At least `bytes`, zero or what the last user left.
  std::byte* at_least(std::size_t bytes);
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

class BlockRun {
 public:
  BlockRun(const Executable& executable, const Shape& shape, const std::byte* parameters, Observer observer);

  // All warps to their end. Throws Stopped.
  void run(std::uint64_t block);
  // The same in rounds: begin(), then go() until it says false. Warps that spin end their round early where the grid is
  // cooperative.
  void begin(std::uint64_t block);
  bool go();
  Counts sample(std::uint64_t block, std::uint64_t most);

  bool is_shared(std::uint64_t address) const { return address - shared.address() < shared_bytes; }
  bool is_local(std::uint64_t address) const { return address - local.address() < local_bytes; }
  std::uint64_t stack_of(std::uint32_t warp, int lane) const {
    return local.address() + (std::uint64_t{warp} * kLanes + static_cast<std::uint64_t>(lane)) * stack_bytes;
  }

  // A path of a warp has come to a barrier; `threads` 0: all of the block.
  void arrive(std::uint32_t barrier, std::uint32_t threads, std::uint32_t lanes, const Step& step, Mask mask,
              const Row* predicate);
  // Threads have ended: a barrier may be complete by that.
  void thread_ended(std::uint32_t lanes);

  const Executable& executable;
  Shape shape;
  std::uint32_t index[3] = {};
  const std::byte* parameters;
  Observer observer;
  Counts counts;
  bool sampling = false;
  std::uint64_t most_instructions = UINT64_MAX;
  Region shared, local;
  std::uint64_t shared_bytes = 0, local_bytes = 0, stack_bytes = 0;
  std::uint32_t threads = 0;
  std::uint64_t workspace = 0;  // of a cooperative grid
  // Threads wait for those of other warps, or blocks, in loops: turns are short.
  bool short_turns() const { return shape.cooperative || executable.waits; }

 private:
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint32_t wanted = 0;  // 0: all living threads
    std::uint32_t true_count = 0;
    std::uint32_t predicates = 0;
  };
  void prepare(std::uint64_t block);
  bool complete(std::uint32_t barrier);

  std::uint32_t living_ = 0;
  std::array<Barrier, 16> barriers_{};
  std::vector<std::unique_ptr<Warp>> warps_;
};

}  // namespace cudasim::ptx
