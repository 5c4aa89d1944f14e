// Internal to planner/layout/local_search: a step function over the sections of time, such as the top of what is
// placed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace memopt::layout {

// A bit for each section in which a step begins, and its value there. Setting a range adds at most two steps and
// removes those that it covers: setting and visiting n ranges is O(n), besides a 64th of the sections that they cover.
template <typename Value>
class StepFunction {
 public:
  explicit StepFunction(std::uint32_t sections) : begins_(sections / 64 + 1), values_(sections + 1) {}

  void reset(Value value) {
    std::fill(begins_.begin(), begins_.end(), 0);
    begins_[0] = 1;
    values_[0] = value;
  }

  // Calls `use` with each value that occurs in [lo, hi), in order; neighbours may be equal.
  template <typename Use>
  void visit(std::uint32_t lo, std::uint32_t hi, const Use& use) const {
    use(values_[begin_at(lo)]);
    if (hi - lo == 1) return;
    std::uint32_t word = (lo + 1) / 64;
    const std::uint32_t last = (hi - 1) / 64;
    std::uint64_t bits = begins_[word] & from(lo + 1);
    for (;;) {
      if (word == last) bits &= below_or_all(hi);
      for (; bits != 0; bits &= bits - 1) use(values_[word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))]);
      if (word == last) return;
      bits = begins_[++word];
    }
  }

  Value most(std::uint32_t lo, std::uint32_t hi) const {
    Value most = values_[begin_at(lo)];
    visit(lo, hi, [&](Value value) { most = std::max(most, value); });
    return most;
  }
  Value least(std::uint32_t lo, std::uint32_t hi) const {
    Value least = values_[begin_at(lo)];
    visit(lo, hi, [&](Value value) { least = std::min(least, value); });
    return least;
  }

  void set(std::uint32_t lo, std::uint32_t hi, Value value) {
    values_[hi] = values_[begin_at(hi)];
    begins_[hi / 64] |= bit(hi);
    // Steps that begin within are removed.
    std::uint32_t word = lo / 64;
    const std::uint32_t last = hi / 64;
    std::uint64_t removed = from(lo);
    for (; word < last; ++word, removed = ~std::uint64_t{0}) begins_[word] &= ~removed;
    begins_[last] &= ~(removed & (bit(hi) - 1));
    begins_[lo / 64] |= bit(lo);
    values_[lo] = value;
  }

 private:
  static std::uint64_t bit(std::uint32_t section) { return std::uint64_t{1} << (section % 64); }
  static std::uint64_t from(std::uint32_t section) { return ~std::uint64_t{0} << (section % 64); }
  // For the word with the section before `hi`.
  static std::uint64_t below_or_all(std::uint32_t hi) { return hi % 64 == 0 ? ~std::uint64_t{0} : bit(hi) - 1; }

  // Where the step begins to which the section belongs.
  std::uint32_t begin_at(std::uint32_t section) const {
    std::uint32_t word = section / 64;
    std::uint64_t bits = begins_[word] & (bit(section) | (bit(section) - 1));
    while (bits == 0) bits = begins_[--word];
    return word * 64 + static_cast<std::uint32_t>(std::bit_width(bits)) - 1;
  }

  std::vector<std::uint64_t> begins_;
  std::vector<Value> values_;
};

}  // namespace memopt::layout
