#include "access_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

namespace cudasim {
namespace {

constexpr unsigned kPageShift = 12;
constexpr std::size_t kPageSize = std::size_t{1} << kPageShift;
constexpr std::size_t kWords = kPageSize / 64;
constexpr std::size_t kLarge = 1024;          // from here on a range is cheaper than bits
constexpr std::size_t kCompactAt = 1u << 14;  // large ranges kept before they are merged for the first time
constexpr std::size_t kCacheSlots = 16;       // a kernel works on a few arrays at a time

struct Page {
  std::array<std::uint64_t, kWords> reads{};
  std::array<std::uint64_t, kWords> writes{};
};

using Bits = std::array<std::uint64_t, kWords>;

// Sets bits [first, first + size) of one page; size is at least 1 and the range lies in the page.
void set_bits(Bits& bits, std::size_t first, std::size_t size) {
  const std::size_t last = first + size - 1;
  const std::size_t first_word = first / 64, last_word = last / 64;
  const std::uint64_t from = ~std::uint64_t{0} << (first % 64);
  const std::uint64_t to = ~std::uint64_t{0} >> (63 - last % 64);
  if (first_word == last_word) {
    bits[first_word] |= from & to;
    return;
  }
  bits[first_word] |= from;
  for (std::size_t word = first_word + 1; word < last_word; ++word) bits[word] = ~std::uint64_t{0};
  bits[last_word] |= to;
}

void append_merged(std::vector<AddressRange>& ranges, AddressRange range) {
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

void append_runs(const Bits& bits, std::uintptr_t base, std::vector<AddressRange>& out) {
  for (std::size_t word = 0; word < kWords; ++word) {
    std::uint64_t rest = bits[word];
    const std::uintptr_t word_base = base + word * 64;
    while (rest != 0) {
      const int begin = std::countr_zero(rest);
      const int length = std::countr_one(rest >> begin);
      append_merged(out, {word_base + unsigned(begin), word_base + unsigned(begin) + unsigned(length)});
      if (begin + length == 64) break;
      rest &= ~std::uint64_t{0} << (begin + length);
    }
  }
}

// Sorts and merges what overlaps or touches.
void merge(std::vector<AddressRange>& ranges) {
  if (ranges.size() < 2) return;
  std::sort(ranges.begin(), ranges.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin <= ranges[kept].end) {
      ranges[kept].end = std::max(ranges[kept].end, ranges[i].end);
    } else {
      ranges[++kept] = ranges[i];
    }
  }
  ranges.resize(kept + 1);
}

thread_local AccessLog* t_current = nullptr;

}  // namespace

struct AccessLog::Pages {
  struct Slot {
    std::uintptr_t number = ~std::uintptr_t{0};
    Page* page = nullptr;
  };
  std::array<Slot, kCacheSlots> cache;
  std::unordered_map<std::uintptr_t, Page*> by_number;
  std::vector<std::unique_ptr<Page>> owned;  // the first by_number.size() of them are in use
  std::size_t compact_reads_at = kCompactAt, compact_writes_at = kCompactAt;

  Page& at(std::uintptr_t number) {
    Slot& slot = cache[(number ^ (number >> 4) ^ (number >> 9)) % kCacheSlots];
    if (slot.number == number) [[likely]]
      return *slot.page;
    return look_up(slot, number);
  }

  [[gnu::noinline]] Page& look_up(Slot& slot, std::uintptr_t number) {
    const auto [found, added] = by_number.try_emplace(number, nullptr);
    if (added) {
      if (owned.size() < by_number.size()) owned.push_back(std::make_unique<Page>());
      found->second = owned[by_number.size() - 1].get();
    }
    slot = {number, found->second};
    return *found->second;
  }

  std::vector<AddressRange> collect(Bits Page::*kind, const std::vector<AddressRange>& large) const {
    std::vector<std::pair<std::uintptr_t, const Page*>> sorted(by_number.begin(), by_number.end());
    std::sort(sorted.begin(), sorted.end());
    std::vector<AddressRange> out;
    for (const auto& [number, page] : sorted) append_runs(page->*kind, number << kPageShift, out);
    if (large.empty()) return out;
    out.insert(out.end(), large.begin(), large.end());
    merge(out);
    return out;
  }

  template <Bits Page::*Kind>
  [[gnu::always_inline]] void log(std::uintptr_t address, std::size_t size, std::vector<AddressRange>& large,
                                  std::size_t& compact_at) {
    const std::size_t offset = address % kPageSize;
    const std::size_t bit = offset % 64;
    if (size - 1 < 64 - bit && size != 64) [[likely]] {  // in one word of bits; size 0 wraps around and fails
      (at(address >> kPageShift).*Kind)[offset / 64] |= ((std::uint64_t{1} << size) - 1) << bit;
      return;
    }
    log_slowly<Kind>(address, size, large, compact_at);
  }

  template <Bits Page::*Kind>
  [[gnu::noinline]] void log_slowly(std::uintptr_t address, std::size_t size, std::vector<AddressRange>& large,
                                    std::size_t& compact_at) {
    if (size >= kLarge) {
      append_merged(large, {address, address + size});
      if (large.size() < compact_at) return;
      merge(large);
      compact_at = std::max(kCompactAt, 2 * large.size());
      return;
    }
    while (size != 0) {
      const std::size_t offset = address % kPageSize;
      const std::size_t part = std::min(size, kPageSize - offset);
      set_bits(at(address >> kPageShift).*Kind, offset, part);
      address += part;
      size -= part;
    }
  }
};

AccessLog::AccessLog() : pages_(std::make_unique<Pages>()) {}
AccessLog::~AccessLog() = default;

void AccessLog::read(std::uintptr_t address, std::size_t size) {
  pages_->log<&Page::reads>(address, size, large_reads_, pages_->compact_reads_at);
}

void AccessLog::write(std::uintptr_t address, std::size_t size) {
  pages_->log<&Page::writes>(address, size, large_writes_, pages_->compact_writes_at);
}

std::vector<AddressRange> AccessLog::reads() const { return pages_->collect(&Page::reads, large_reads_); }
std::vector<AddressRange> AccessLog::writes() const { return pages_->collect(&Page::writes, large_writes_); }

bool AccessLog::empty() const { return pages_->by_number.empty() && large_reads_.empty() && large_writes_.empty(); }

void AccessLog::clear() {
  for (const auto& [number, page] : pages_->by_number) *page = Page{};
  pages_->by_number.clear();
  pages_->cache.fill({});
  large_reads_.clear();
  large_writes_.clear();
}

AccessLog* current_access_log() { return t_current; }

CurrentAccessLog::CurrentAccessLog(AccessLog& log) : previous_(t_current) { t_current = &log; }
CurrentAccessLog::~CurrentAccessLog() { t_current = previous_; }

}  // namespace cudasim
