#include "agent/memory/shared_space.h"

#include <algorithm>
#include <bit>

namespace memopt::agent {
namespace {

constexpr std::uint32_t kWord = 64;

// Bits at which a run of at least `length` bits begins; `length` from 1 to 64.
std::uint64_t run_begins(std::uint64_t word, std::uint32_t length) noexcept {
  for (std::uint32_t known = 1; known < length;) {
    const std::uint32_t more = std::min(known, length - known);
    word &= word >> more;
    known += more;
  }
  return word;
}

// By doubling: the bits at which runs of 1, 2, 4, ... begin, then the largest sum of these that some run has.
std::uint32_t longest_run(std::uint64_t word) noexcept {
  if (word == 0) return 0;
  std::uint64_t begins[6] = {word};
  std::uint32_t highest = 0;
  while (highest < 5) {
    const std::uint64_t twice = begins[highest] & begins[highest] >> (1u << highest);
    if (twice == 0) break;
    begins[++highest] = twice;
  }
  std::uint64_t at = begins[highest];
  std::uint32_t length = 1u << highest;
  for (std::uint32_t k = highest; k-- > 0;) {
    const std::uint64_t longer = at & begins[k] >> length;
    if (longer == 0) continue;
    at = longer;
    length += 1u << k;
  }
  return length;
}

// Sets or clears the bits [begin, end).
void set_bits(std::vector<std::uint64_t>& words, std::uint32_t begin, std::uint32_t end, bool value) noexcept {
  while (begin < end) {
    const std::uint32_t stop = std::min(end, begin / kWord * kWord + kWord);
    const std::uint32_t count = stop - begin;
    const std::uint64_t ones = count == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    std::uint64_t& word = words[begin / kWord];
    word = value ? word | ones << begin % kWord : word & ~(ones << begin % kWord);
    begin = stop;
  }
}

}  // namespace

SharedSpace::SharedSpace(OwnershipMap& map) : map_(map), units_(static_cast<std::uint32_t>(map.bytes() / kUnit)) {
  leaves_ = std::max(2u, std::bit_ceil((units_ + kWord - 1) / kWord));
  free_.resize(leaves_);
  begins_.resize(leaves_);
  nodes_.resize(leaves_);
  first_of_.resize((units_ + kBucket - 1) / kBucket);
  set_bits(free_, 0, units_, true);
  refresh(0, units_);
  begins_[0] = 1;
  note_begin(0, map.first());
}

SharedSpace::Runs SharedSpace::runs_of(std::uint64_t word) noexcept {
  if (word == ~std::uint64_t{0}) return {kWord, kWord, kWord};
  return {static_cast<std::uint32_t>(std::countr_one(word)), static_cast<std::uint32_t>(std::countl_one(word)),
          longest_run(word)};
}

void SharedSpace::refresh(std::uint32_t begin, std::uint32_t end) noexcept {
  std::uint32_t low = (leaves_ + begin / kWord) / 2;
  std::uint32_t high = (leaves_ + (end - 1) / kWord) / 2;
  for (std::uint32_t half = kWord; low != 0; half *= 2) {
    bool changed = false;
    for (std::uint32_t node = low; node <= high; ++node) {
      const Runs left = runs(2 * node);
      const Runs right = runs(2 * node + 1);
      const Runs both{left.prefix == half ? half + right.prefix : left.prefix,
                      right.suffix == half ? half + left.suffix : right.suffix,
                      std::max({left.longest, right.longest, left.suffix + right.prefix})};
      changed = changed || both != nodes_[node];
      nodes_[node] = both;
    }
    if (!changed) return;
    low /= 2;
    high /= 2;
  }
}

// There is one.
std::uint32_t SharedSpace::find_run(std::uint32_t units) const noexcept {
  std::uint32_t begin = 0;
  std::uint32_t node = 1;
  for (std::uint32_t half = leaves_ * kWord / 2; node < leaves_; half /= 2) {
    const Runs left = runs(2 * node);
    node *= 2;
    if (left.longest >= units) continue;
    if (left.suffix + runs(node + 1).prefix >= units) return begin + half - left.suffix;
    begin += half;
    ++node;
  }
  return begin + static_cast<std::uint32_t>(std::countr_zero(run_begins(free_[node - leaves_], units)));
}

// A span begins at that unit.
Span* SharedSpace::span_at(std::uint32_t begin) const noexcept {
  Span* span = first_of_[begin / kBucket];
  while (span->begin != begin * kUnit) span = span->next;
  return span;
}

void SharedSpace::note_begin(std::uint32_t unit, Span* span) noexcept {
  const std::uint32_t bucket = unit / kBucket * kBucket;
  const std::uint64_t before = (std::uint64_t{1} << unit % kBucket) - 1;
  if ((begins_[bucket / kWord] >> bucket % kWord & before) == 0) first_of_[unit / kBucket] = span;
}

Span* SharedSpace::take(std::uint64_t bytes, Block* owner, Release* former) noexcept {
  if (bytes == 0 || bytes > largest()) return nullptr;
  const std::uint32_t begin = find_run(static_cast<std::uint32_t>(bytes / kUnit));
  // Before a run there is an owner, or nothing: it begins with a span.
  return take_units(begin, begin + static_cast<std::uint32_t>(bytes / kUnit), span_at(begin), owner, former);
}

Span* SharedSpace::take_at(std::uint64_t begin, std::uint64_t end, Block* owner, Release* former) noexcept {
  return take_units(static_cast<std::uint32_t>(begin / kUnit), static_cast<std::uint32_t>(end / kUnit), find(begin),
                    owner, former);
}

Span* SharedSpace::take_units(std::uint32_t begin, std::uint32_t end, Span* first, Block* owner,
                              Release* former) noexcept {
  Block* in_the_way = nullptr;
  Span* const span = map_.take(begin * kUnit, end * kUnit, owner, first, former, &in_the_way);
  if (span == nullptr) return nullptr;
  knows_last_uses_ = false;
  set_bits(free_, begin, end, false);
  refresh(begin, end);
  // Spans that began inside are gone, and what is left of the last one begins behind.
  set_bits(begins_, begin + 1, end, false);
  set_bits(begins_, begin, begin + 1, true);
  note_begin(begin, span);
  if (end != units_) {
    set_bits(begins_, end, end + 1, true);
    note_begin(end, span->next);
  }
  return span;
}

void SharedSpace::give_back(Span* span, const Release& release) noexcept {
  const std::uint32_t begin = static_cast<std::uint32_t>(span->begin / kUnit);
  const std::uint32_t end = static_cast<std::uint32_t>(span->end / kUnit);
  map_.give_back(span, release);
  set_bits(free_, begin, end, true);
  refresh(begin, end);
}

Span* SharedSpace::find(std::uint64_t offset) const noexcept {
  if (offset >= map_.bytes()) return nullptr;
  const std::uint32_t unit = static_cast<std::uint32_t>(offset / kUnit);
  std::uint32_t word = unit / kWord;
  std::uint64_t begins = begins_[word] & ~std::uint64_t{0} >> (kWord - 1 - unit % kWord);
  // Not far: a block here is smaller than a chunk. Unit 0 is always a begin.
  while (begins == 0) begins = begins_[--word];
  return span_at(word * kWord + kWord - 1 - static_cast<std::uint32_t>(std::countl_zero(begins)));
}

const Release& SharedSpace::last_uses() noexcept {
  if (!knows_last_uses_) last_uses_ = map_.last_uses();
  knows_last_uses_ = true;
  return last_uses_;
}

}  // namespace memopt::agent
