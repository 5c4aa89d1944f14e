#include "agent/memory/free_runs.h"

#include <algorithm>
#include <iterator>

#include "agent/memory/rounding.h"

namespace memopt::agent {
namespace {

// Runs that are looked at for a better one, or one that is large enough behind the next multiple of the alignment,
// before one is taken that is in any case.
constexpr int kTries = 16;

}  // namespace

void FreeRuns::make_room(std::size_t runs) {
  if (by_begin_.size() + spare_begins_.size() >= runs) return;
  // In steps, so that the lists of spare nodes are not copied at each call.
  const std::size_t all = std::max(runs, (by_begin_.size() + spare_begins_.size()) * 2);
  spare_begins_.reserve(all);
  spare_sizes_.reserve(all);
  while (by_begin_.size() + spare_begins_.size() < all) {
    ByBegin begins;
    BySize sizes;
    begins.emplace(0, 0);
    sizes.emplace(0, 0);
    spare_begins_.push_back(begins.extract(begins.begin()));
    spare_sizes_.push_back(sizes.extract(sizes.begin()));
  }
}

std::size_t FreeRuns::units_in(std::uint64_t begin, std::uint64_t end) const noexcept {
  const std::uint64_t first = round_up(begin, unit_);
  const std::uint64_t last = end / unit_ * unit_;
  return first < last ? static_cast<std::size_t>((last - first) / unit_) : 0;
}

void FreeRuns::insert(std::uint64_t begin, std::uint64_t end) noexcept {
  ByBegin::node_type at_begin = std::move(spare_begins_.back());
  BySize::node_type at_size = std::move(spare_sizes_.back());
  spare_begins_.pop_back();
  spare_sizes_.pop_back();
  at_begin.key() = begin;
  at_begin.mapped() = end;
  at_size.value() = {end - begin, begin};
  by_begin_.insert(std::move(at_begin));
  by_size_.insert(std::move(at_size));
  bytes_ += end - begin;
  units_ += units_in(begin, end);
}

void FreeRuns::erase(ByBegin::iterator run) noexcept {
  bytes_ -= run->second - run->first;
  units_ -= units_in(run->first, run->second);
  spare_sizes_.push_back(by_size_.extract({run->second - run->first, run->first}));
  spare_begins_.push_back(by_begin_.extract(run));
}

void FreeRuns::add(std::uint64_t begin, std::uint64_t end) noexcept {
  const auto next = by_begin_.lower_bound(begin);
  const auto before = next == by_begin_.begin() ? by_begin_.end() : std::prev(next);
  if (next != by_begin_.end() && next->first == end) {
    end = next->second;
    erase(next);
  }
  if (before != by_begin_.end() && before->second == begin) {
    begin = before->first;
    erase(before);
  }
  insert(begin, end);
}

void FreeRuns::remove(std::uint64_t begin, std::uint64_t end) noexcept {
  const auto run = std::prev(by_begin_.upper_bound(begin));
  const std::uint64_t first = run->first;
  const std::uint64_t last = run->second;
  erase(run);
  if (first < begin) insert(first, begin);
  if (end < last) insert(end, last);
}

void FreeRuns::clear() noexcept {
  while (!by_begin_.empty()) erase(by_begin_.begin());
}

std::size_t FreeRuns::find_best(std::uint64_t bytes, std::uint64_t alignment, std::size_t enough,
                                std::uint64_t* begin) const noexcept {
  std::size_t fewest = kNowhere;
  int tries = kTries;
  for (auto at = by_size_.lower_bound({bytes, 0}); at != by_size_.end() && tries != 0; ++at, --tries) {
    const std::uint64_t end = at->second + at->first;
    const std::uint64_t first = round_up(at->second, alignment);
    if (first + bytes > end) continue;
    const std::size_t broken = units_in(at->second, end) - units_in(at->second, first) - units_in(first + bytes, end);
    if (broken >= fewest) continue;
    *begin = first;
    fewest = broken;
    if (broken <= enough) break;
  }
  return fewest;
}

bool FreeRuns::find(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* begin) const noexcept {
  if (find_best(bytes, alignment, static_cast<std::size_t>(bytes / unit_), begin) != kNowhere) return true;
  const auto large = by_size_.lower_bound({bytes + alignment - 1, 0});
  if (large == by_size_.end()) return false;
  *begin = round_up(large->second, alignment);
  return true;
}

bool FreeRuns::find_beside(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* begin) const noexcept {
  return find_best(bytes, alignment, 0, begin) == 0;
}

bool FreeRuns::begins_at(std::uint64_t begin, std::uint64_t bytes) const noexcept {
  const auto run = by_begin_.find(begin);
  return run != by_begin_.end() && bytes <= run->second - run->first;
}

bool FreeRuns::find_in_largest(std::uint64_t bytes, std::uint64_t* begin) const noexcept {
  if (by_size_.empty()) return false;
  const auto [size, at] = *by_size_.rbegin();
  *begin = round_up(at, unit_);
  return units_in(at, at + size) != 0 && bytes <= at + size - *begin;
}

std::uint64_t FreeRuns::begin_of_last(std::uint64_t end) const noexcept {
  if (by_begin_.empty()) return end;
  const auto last = std::prev(by_begin_.end());
  return last->second == end ? last->first : end;
}

}  // namespace memopt::agent
