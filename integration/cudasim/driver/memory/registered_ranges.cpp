#include "memory/registered_ranges.h"

#include <algorithm>

namespace cudasim {

RegisteredRanges::RegisteredRanges() {
  tables_.push_back(std::make_unique<Table>(16));
  table_.store(tables_.back().get(), std::memory_order_release);
}

void RegisteredRanges::insert(std::uintptr_t begin, std::uintptr_t end) {
  const std::pair range{begin, end};
  ranges_.insert(std::lower_bound(ranges_.begin(), ranges_.end(), range), range);
  publish(ranges_);
}

void RegisteredRanges::erase(std::uintptr_t begin) {
  std::erase_if(ranges_, [begin](const auto& range) { return range.first == begin; });
  publish(ranges_);
}

void RegisteredRanges::publish(const std::vector<std::pair<std::uintptr_t, std::uintptr_t>>& ranges) {
  Table* table = table_.load(std::memory_order_relaxed);
  if (ranges.size() > table->capacity) {
    tables_.push_back(std::make_unique<Table>(table->capacity * 2));
    table = tables_.back().get();
  }
  version_.fetch_add(1, std::memory_order_acq_rel);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    table->entries[i].begin.store(ranges[i].first, std::memory_order_release);
    table->entries[i].end.store(ranges[i].second, std::memory_order_release);
  }
  table_.store(table, std::memory_order_release);
  size_.store(ranges.size(), std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);  // pairs with the first load in contains()
}

bool RegisteredRanges::contains(std::uintptr_t address) const {
  for (;;) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    if ((version & 1) != 0) continue;
    const Table* table = table_.load(std::memory_order_acquire);
    // Table and size may belong to different versions for a moment: never read beyond the table, decide only when the
    // version stood still.
    std::size_t low = 0;
    std::size_t high = std::min(size_.load(std::memory_order_acquire), table->capacity);
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (table->entries[middle].begin.load(std::memory_order_acquire) <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool found = low != 0 && address < table->entries[low - 1].end.load(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) == version) return found;
  }
}

}  // namespace cudasim
