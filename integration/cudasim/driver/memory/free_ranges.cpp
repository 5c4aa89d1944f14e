#include "memory/free_ranges.h"

#include <algorithm>
#include <iterator>

namespace cudasim {

FreeRanges::FreeRanges(std::uint64_t begin, std::uint64_t size) : total_(size), free_bytes_(size) {
  if (size != 0) free_.emplace(begin, size);
}

void FreeRanges::cut(std::map<std::uint64_t, std::uint64_t>::iterator it, std::uint64_t begin, std::uint64_t size) {
  const std::uint64_t free_begin = it->first;
  const std::uint64_t free_end = free_begin + it->second;
  if (begin == free_begin) {
    free_.erase(it);
  } else {
    it->second = begin - free_begin;
  }
  if (begin + size != free_end) free_.emplace(begin + size, free_end - begin - size);
  free_bytes_ -= size;
}

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t size, std::uint64_t alignment) {
  if (size == 0 || size > free_bytes_) return std::nullopt;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const std::uint64_t begin = (it->first + alignment - 1) & ~(alignment - 1);
    if (begin < it->first) continue;  // the alignment went over the top
    const std::uint64_t skipped = begin - it->first;
    if (skipped > it->second || it->second - skipped < size) continue;
    cut(it, begin, size);
    return begin;
  }
  return std::nullopt;
}

bool FreeRanges::take_at(std::uint64_t begin, std::uint64_t size) {
  auto it = free_.upper_bound(begin);
  if (size == 0 || it == free_.begin()) return false;
  --it;
  const std::uint64_t skipped = begin - it->first;
  if (skipped > it->second || it->second - skipped < size) return false;
  cut(it, begin, size);
  return true;
}

std::optional<FreeRanges::Range> FreeRanges::take_up_to(std::uint64_t size) {
  if (size == 0 || free_.empty()) return std::nullopt;
  const auto it = free_.begin();
  const Range range{it->first, std::min(size, it->second)};
  cut(it, range.begin, range.size);
  return range;
}

void FreeRanges::give(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return;
  free_bytes_ += size;
  const auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == begin) {
      previous->second += size;
      return;
    }
  }
  free_.emplace(begin, size);
}

}  // namespace cudasim
