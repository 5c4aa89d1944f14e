#include "agent/status/physical_memory.h"

#include <iterator>
#include <new>

#include "agent/process/spin_lock.h"

namespace memopt::agent {

void PhysicalMemory::created(Handle handle, shm::Bytes size) noexcept {
  const LockGuard guard(lock_);
  try {
    const std::uint64_t id = next_id_++;
    allocations_[id] = Allocation{size, 1, 0};
    by_handle_[handle] = id;
    gauge_.add(size);
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
}

void PhysicalMemory::retained(Handle handle, DeviceAddress mapped_at) noexcept {
  const LockGuard guard(lock_);
  auto mapping = mappings_.upper_bound(mapped_at);
  if (mapping == mappings_.begin()) return;
  --mapping;
  if (mapped_at - mapping->first >= mapping->second.size) return;
  try {
    by_handle_[handle] = mapping->second.id;
    ++allocations_[mapping->second.id].handles;
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
}

void PhysicalMemory::mapped(DeviceAddress address, shm::Bytes size, Handle handle) noexcept {
  const LockGuard guard(lock_);
  const auto known = by_handle_.find(handle);
  if (known == by_handle_.end()) return;
  try {
    if (mappings_.emplace(address, Mapping{size.value(), known->second}).second) ++allocations_[known->second].mappings;
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
}

PhysicalMemory::Release PhysicalMemory::release(Handle handle) noexcept {
  const LockGuard guard(lock_);
  const auto known = by_handle_.find(handle);
  if (known == by_handle_.end()) return {};
  const std::uint64_t id = known->second;
  Allocation& allocation = allocations_[id];
  const Release release{true, handle, id, allocation.size};
  if (--allocation.handles == 0) by_handle_.erase(known);
  drop_if_unused(id);
  return release;
}

void PhysicalMemory::undo_release(const Release& release) noexcept {
  if (!release.known) return;
  const LockGuard guard(lock_);
  try {
    ++bring_back(release.id, release.size).handles;
    by_handle_[release.handle] = release.id;
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
}

std::vector<PhysicalMemory::Unmapped> PhysicalMemory::unmap(DeviceAddress address, shm::Bytes size) noexcept {
  const LockGuard guard(lock_);
  std::vector<Unmapped> unmapped;
  try {
    auto at = mappings_.lower_bound(address);
    // One call may take away several neighbouring mappings, each whole.
    while (at != mappings_.end() && at->first - address < size.value()) {
      const auto [size_of_mapping, id] = at->second;
      Allocation& allocation = allocations_[id];
      unmapped.push_back(Unmapped{at->first, size_of_mapping, id, allocation.size});
      at = mappings_.erase(at);
      --allocation.mappings;
      drop_if_unused(id);
    }
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
  return unmapped;
}

void PhysicalMemory::undo_unmap(const std::vector<Unmapped>& unmapped) noexcept {
  const LockGuard guard(lock_);
  try {
    for (const Unmapped& mapping : unmapped) {
      if (mappings_.emplace(mapping.address, Mapping{mapping.size, mapping.id}).second) {
        ++bring_back(mapping.id, mapping.allocation_size).mappings;
      }
    }
  } catch (const std::bad_alloc&) {
    gauge_.count_untracked();
  }
}

PhysicalMemory::Allocation& PhysicalMemory::bring_back(std::uint64_t id, shm::Bytes size) {
  const auto [entry, is_new] = allocations_.try_emplace(id, Allocation{size, 0, 0});
  if (is_new) gauge_.add(size);
  return entry->second;
}

void PhysicalMemory::drop_if_unused(std::uint64_t id) {
  const auto found = allocations_.find(id);
  if (found == allocations_.end() || found->second.handles != 0 || found->second.mappings != 0) return;
  gauge_.remove(found->second.size);
  allocations_.erase(found);
}

void PhysicalMemory::reset_after_fork() noexcept {
  // The containers may have been in the middle of a change when the process was copied: new ones take their place, the
  // old are leaked.
  new (&lock_) int(0);
  new (&by_handle_) decltype(by_handle_)();
  new (&allocations_) decltype(allocations_)();
  new (&mappings_) decltype(mappings_)();
}

}  // namespace memopt::agent
