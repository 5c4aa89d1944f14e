#include "agent/link/lanes.h"

#include <cerrno>
#include <cstring>

#include "agent/process/spin_lock.h"
#include "shm/memory_limit.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kPartOfMemory = 16;

}  // namespace

Lanes::Taken Lanes::take(shm::RingWriter* ring) noexcept {
  const LockGuard guard(lock_);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (lanes_[i].taken) continue;
    lanes_[i].taken = true;
    *ring = lanes_[i].writer;
    return Taken::kYes;
  }
  const bool never = count == shm::kMaxLanes || closed_.load(std::memory_order_acquire);
  return never ? Taken::kNever : Taken::kLater;
}

void Lanes::give_back(const shm::RingWriter& ring) noexcept {
  if (!ring || ring.lane() >= count()) return;
  const LockGuard guard(lock_);
  Lane& lane = lanes_[ring.lane()];
  lane.writer = ring;  // with its position
  lane.taken = false;
}

bool Lanes::make(std::size_t* capacity, bool own_descriptors, std::string* why) {
  for (;;) {
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count == shm::kMaxLanes) return true;
    int free = 0;
    {
      const LockGuard guard(lock_);
      for (std::uint32_t i = 0; i < count; ++i) free += lanes_[i].taken ? 0 : 1;
    }
    if (free > waiting_.load(std::memory_order_relaxed)) return true;  // one ahead
    Lane& lane = lanes_[count];
    // A small part of what a limit leaves: what the program itself will need is not known.
    const shm::MemoryLeft left = shm::memory_left();
    while (*capacity > shm::kMinRingCapacity && shm::kRingDataOffset + *capacity > left.bytes / kPartOfMemory)
      *capacity /= 2;
    if (shm::kRingDataOffset + *capacity > left.bytes / kPartOfMemory) {
      *why = "no shared memory for a ring of " + std::to_string(*capacity) + " bytes: the control group's limit in " +
             left.file + " leaves " + std::to_string(left.bytes) + " bytes";
      return false;
    }
    while (!lane.memory.create("memopt-ring", shm::kRingDataOffset + *capacity, own_descriptors)) {
      if (*capacity <= shm::kMinRingCapacity) {
        *why = "no shared memory for a ring of " + std::to_string(*capacity) + " bytes: " + std::strerror(errno);
        return false;
      }
      *capacity /= 2;
    }
    lane.bytes = shm::kRingDataOffset + *capacity;
    const LockGuard guard(lock_);
    lane.writer = shm::RingWriter::create(lane.memory.data(), *capacity, count);
    lane.taken = false;
    count_.store(count + 1, std::memory_order_release);
  }
}

std::uint64_t Lanes::dropped() noexcept {
  const LockGuard guard(lock_);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count(); ++i) sum += lanes_[i].writer.dropped();
  return sum;
}

std::uint64_t Lanes::shared_bytes() noexcept {
  const LockGuard guard(lock_);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count(); ++i) sum += lanes_[i].bytes;
  return sum;
}

void Lanes::forget_after_fork(bool shared_descriptors) noexcept {
  lock_ = 0;
  count_.store(0);
  sent_.store(0);
  waiting_.store(0);
  closed_.store(false);
  for (Lane& lane : lanes_) {
    lane.memory.forget_after_fork(shared_descriptors);
    lane.writer = shm::RingWriter();
    lane.taken = false;
    lane.bytes = 0;
  }
}

}  // namespace memopt::agent
