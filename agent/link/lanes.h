// The rings of this process: made by the link thread, one ahead of what is needed; taken by the program's threads at
// their first record, given back at their end. All state is constant-initialised and never destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/link/own_memory.h"
#include "shm/channel.h"
#include "shm/ring.h"

namespace memopt::agent {

class Lanes {
 public:
  // For the program's threads: the free lane with the smallest number. kLater: one is being made.
  enum class Taken { kYes, kLater, kNever };
  Taken take(shm::RingWriter* ring) noexcept;
  void give_back(const shm::RingWriter& ring) noexcept;

  // Threads that wait for a lane announce themselves.
  void expect_more(int threads) noexcept { waiting_.fetch_add(threads, std::memory_order_relaxed); }

  // For the link thread. Makes what is missing; rings of `*capacity` bytes, which is halved when memory is short.
  // False: something could not be made, `*why`.
  bool make(std::size_t* capacity, bool own_descriptors, std::string* why);
  // Calls `send(lane, bytes, descriptor)` for each lane not sent yet, until it returns false.
  template <typename Send>
  bool send_new(Send&& send) {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t next = sent_.load(std::memory_order_relaxed); next < count; sent_.store(++next)) {
      Lane& lane = lanes_[next];
      if (!lane.memory.intact()) continue;  // the program closed it: the planner will see a hole
      if (!send(next, lane.bytes, lane.memory.get())) return false;
    }
    return true;
  }
  void send_all_again() { sent_.store(0); }
  // Any thread: has every lane that a thread may have been given been sent?
  bool all_sent() const noexcept { return sent_.load() >= count(); }
  // No lane will be made any more.
  void close() noexcept { closed_.store(true, std::memory_order_release); }

  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  std::uint64_t dropped() noexcept;
  std::uint64_t shared_bytes() noexcept;

  void forget_after_fork(bool shared_descriptors) noexcept;

 private:
  struct Lane {
    shm::RingWriter writer;
    OwnMemory memory;
    std::size_t bytes = 0;
    bool taken = false;
  };

  int lock_ = 0;  // for `taken`, `writer` and adding
  Lane lanes_[shm::kMaxLanes];
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> sent_{0};  // written by the link thread alone
  std::atomic<int> waiting_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace memopt::agent
