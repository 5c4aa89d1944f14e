#include "agent/operations/pinned_memory.h"

#include <cstring>

#include "agent/process/log.h"
#include "agent/process/mapped_memory.h"
#include "agent/process/spin_lock.h"

namespace memopt::agent {

constinit std::uint64_t pinned_memory_begin = 0;
constinit std::uint64_t pinned_memory_bytes = 0;

namespace {

struct Range {
  std::uint64_t begin;
  std::uint64_t bytes;
  bool managed;
};

// Sorted by begin. All with the lock held.
constinit int g_lock = 0;
constinit Range* g_ranges = nullptr;
constinit std::size_t g_count = 0;
constinit std::size_t g_capacity = 0;
// Some range found no room: then every word may be in it.
constinit bool g_lost = false;

// The number of ranges that begin at or before the address.
std::size_t count_up_to(std::uint64_t address) noexcept {
  std::size_t low = 0;
  std::size_t high = g_count;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (g_ranges[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void set_bounds(std::uint64_t begin, std::uint64_t bytes) noexcept {
  // In this order (pairs with the acquire in is_pinned_memory): whoever reads one old and one new value sees too much
  // rather than too little.
  __atomic_store_n(&pinned_memory_bytes, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&pinned_memory_begin, begin, __ATOMIC_RELEASE);
}

bool grow() noexcept {
  const std::size_t capacity = g_capacity == 0 ? 256 : g_capacity * 2;
  auto* const ranges = static_cast<Range*>(map_pages(capacity * sizeof(Range)));
  if (ranges == nullptr) return false;
  if (g_count != 0) std::memcpy(ranges, g_ranges, g_count * sizeof(Range));
  if (g_ranges != nullptr) munmap(g_ranges, g_capacity * sizeof(Range));
  g_ranges = ranges;
  g_capacity = capacity;
  return true;
}

// What is there already was freed behind our back.
void drop_overlapping(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::size_t first = count_up_to(address);
  if (first > 0 && address - g_ranges[first - 1].begin < g_ranges[first - 1].bytes) --first;
  const std::size_t last = count_up_to(address + bytes - 1);
  if (first >= last) return;
  std::memmove(g_ranges + first, g_ranges + last, (g_count - last) * sizeof(Range));
  g_count -= last - first;
}

}  // namespace

void pinned_memory_added(std::uint64_t address, std::size_t bytes, bool managed) noexcept {
  if (address == 0 || bytes == 0) return;
  const LockGuard guard(g_lock);
  drop_overlapping(address, bytes);
  if (g_count == g_capacity && !grow()) {
    if (!g_lost) log(LogLevel::kWarn, "out of memory: every launch counts as one that the host can see");
    g_lost = true;
    set_bounds(0, ~std::uint64_t{0});
    return;
  }
  const std::size_t at = count_up_to(address);
  std::memmove(g_ranges + at + 1, g_ranges + at, (g_count - at) * sizeof(Range));
  g_ranges[at] = {address, bytes, managed};
  ++g_count;
  if (g_lost) return;
  const std::uint64_t old_begin = pinned_memory_bytes == 0 ? address : pinned_memory_begin;
  const std::uint64_t old_end = pinned_memory_bytes == 0 ? address : pinned_memory_begin + pinned_memory_bytes;
  const std::uint64_t begin = address < old_begin ? address : old_begin;
  const std::uint64_t end = address + bytes > old_end ? address + bytes : old_end;
  set_bounds(begin, end - begin);
}

std::size_t pinned_memory_removed(std::uint64_t address) noexcept {
  const LockGuard guard(g_lock);
  const std::size_t at = count_up_to(address);
  if (at == 0 || g_ranges[at - 1].begin != address) return 0;
  const auto bytes = static_cast<std::size_t>(g_ranges[at - 1].bytes);
  std::memmove(g_ranges + at - 1, g_ranges + at, (g_count - at) * sizeof(Range));
  --g_count;
  return bytes;
}

bool is_in_pinned_range(std::uint64_t address) noexcept {
  const LockGuard guard(g_lock);
  if (g_lost) return true;
  const std::size_t at = count_up_to(address);
  return at > 0 && address - g_ranges[at - 1].begin < g_ranges[at - 1].bytes;
}

std::size_t page_locked_bytes_from(std::uint64_t address) noexcept {
  const LockGuard guard(g_lock);
  const std::size_t at = count_up_to(address);
  if (at == 0 || g_ranges[at - 1].managed) return 0;
  const std::uint64_t offset = address - g_ranges[at - 1].begin;
  return offset < g_ranges[at - 1].bytes ? static_cast<std::size_t>(g_ranges[at - 1].bytes - offset) : 0;
}

void forget_pinned_memory_after_fork() noexcept {
  __atomic_store_n(&g_lock, 0, __ATOMIC_RELAXED);
  g_ranges = nullptr;
  g_count = 0;
  g_capacity = 0;
  g_lost = false;
  pinned_memory_begin = 0;
  pinned_memory_bytes = 0;
}

}  // namespace memopt::agent
