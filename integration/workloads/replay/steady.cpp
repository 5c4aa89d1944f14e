#include "steady.h"

#include <algorithm>
#include <limits>

namespace replay {
namespace {

constexpr std::size_t kCuts = 128;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

struct Token {
  Verb verb;
  std::uint64_t bytes;
  std::size_t distance;  // kNever: first operation on the block
  bool operator==(const Token&) const = default;
};

std::vector<Token> tokens_of(const Trace& trace) {
  std::vector<std::size_t> last(trace.blocks.size(), kNever);
  std::vector<Token> tokens;
  tokens.reserve(trace.operations.size());
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const Operation& operation = trace.operations[i];
    std::size_t& before = last[operation.block];
    tokens.push_back({operation.verb, trace.bytes(operation), before == kNever ? kNever : i - before});
    before = i;
  }
  return tokens;
}

// For each length p: how many of the last tokens equal those p before (Z function of the reversed sequence).
std::vector<std::size_t> repeats_at_end(const std::vector<Token>& tokens, std::size_t end) {
  const auto at = [&](std::size_t i) -> const Token& { return tokens[end - 1 - i]; };
  std::vector<std::size_t> z(end, 0);
  for (std::size_t i = 1, left = 0, right = 0; i < end; ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < end && at(z[i]) == at(i + z[i])) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

class LoopBuilder {
 public:
  LoopBuilder(const Trace& trace, std::size_t end, std::size_t period)
      : trace_(trace), end_(end), period_(period), first_(end - period), births_(trace.blocks.size(), kNever) {
    for (std::size_t i = 0; i < end; ++i) {
      if (trace.operations[i].verb == Verb::kMalloc) births_[trace.operations[i].block] = i;
    }
  }

  // Nothing: some block would be left over in each round, or rounds use different blocks of those that are always
  // there.
  std::optional<std::vector<LoopOperation>> build() {
    if (!find_deaths()) return std::nullopt;
    std::vector<LoopOperation> loop;
    loop.reserve(period_);
    for (std::size_t i = first_; i < end_; ++i) {
      const Operation& operation = trace_.operations[i];
      LoopOperation step{operation.verb, false, 0, 0, operation.block, trace_.bytes(operation)};
      const Birth birth = birth_of(operation.block);
      // A block of an age that its twins in the loop don't reach is there all the time.
      if (birth.known && deaths_[birth.offset] != kNever && birth.age <= deaths_[birth.offset]) {
        step.born_in_loop = true;
        step.birth = static_cast<std::uint32_t>(birth.offset);
        step.age = static_cast<std::uint32_t>(birth.age);
      } else if (trace_.operations[i - period_].block != operation.block) {
        return std::nullopt;  // a layer like the one before, with weights of its own
      }
      loop.push_back(step);
    }
    return loop;
  }

 private:
  struct Birth {
    bool known = false;      // in the loop each round bears one like it
    std::size_t offset = 0;  // in the loop
    std::size_t age = 0;     // in rounds
  };

  Birth birth_of(BlockIndex block) const {
    const std::size_t birth = births_[block];
    if (birth == kNever) return {};
    const std::size_t age = birth >= first_ ? 0 : (first_ - birth + period_ - 1) / period_;
    const Operation& twin = trace_.operations[birth + age * period_];
    if (twin.verb != Verb::kMalloc || trace_.bytes(twin) != trace_.blocks[block].bytes) return {};
    return {true, birth + age * period_ - first_, age};
  }

  // At which age the block born at each place is freed. False: not each birth has one free.
  bool find_deaths() {
    deaths_.assign(period_, kNever);
    std::size_t births = 0;
    for (std::size_t i = first_; i < end_; ++i) {
      const Operation& operation = trace_.operations[i];
      if (operation.verb == Verb::kMalloc) ++births;
      if (operation.verb != Verb::kFree) continue;
      const Birth birth = birth_of(operation.block);
      if (!birth.known || deaths_[birth.offset] != kNever) return false;
      deaths_[birth.offset] = birth.age;
      --births;
    }
    return births == 0;
  }

  const Trace& trace_;
  std::size_t end_;
  std::size_t period_;
  std::size_t first_;
  std::vector<std::size_t> births_;  // by block: index of its Malloc
  std::vector<std::size_t> deaths_;  // by offset of birth: age at the free
};

// Whole periods before `end` that have the operations and sizes of the last, whichever blocks they mean.
std::size_t iterations_before(const std::vector<Token>& tokens, std::size_t end, std::size_t period) {
  std::size_t same = period;
  while (same < end) {
    const Token& here = tokens[end - 1 - same];
    const Token& later = tokens[end - 1 - same + period];
    if (here.verb != later.verb || here.bytes != later.bytes) break;
    ++same;
  }
  return same / period;
}

std::optional<Steady> find_steady_before(const Trace& trace, const std::vector<Token>& tokens,
                                         const std::vector<std::uint64_t>& loads, std::uint64_t high_load,
                                         std::size_t end) {
  const std::vector<std::size_t> repeats = repeats_at_end(tokens, end);
  for (std::size_t period = 1; period <= end / 2; ++period) {
    if (repeats[period] < period) continue;
    const auto last = loads.begin() + static_cast<std::ptrdiff_t>(end);
    if (*std::max_element(last - static_cast<std::ptrdiff_t>(period), last) < high_load) continue;
    std::optional<std::vector<LoopOperation>> loop = LoopBuilder(trace, end, period).build();
    if (!loop) continue;
    Steady steady{end, period, iterations_before(tokens, end, period), 0, std::move(*loop)};
    for (const LoopOperation& step : steady.loop) steady.deepest = std::max(steady.deepest, step.age);
    return steady;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Steady> find_steady(const Trace& trace) {
  const std::vector<Token> tokens = tokens_of(trace);
  const std::size_t size = tokens.size();
  std::vector<std::uint64_t> loads;
  loads.reserve(size);
  std::uint64_t load = 0;
  for (const Block& block : trace.blocks) load += block.from_before ? block.bytes : 0;
  for (const Operation& operation : trace.operations) {
    if (operation.verb == Verb::kMalloc) load += trace.bytes(operation);
    if (operation.verb == Verb::kFree) load -= trace.bytes(operation);
    loads.push_back(load);
  }
  if (size < 2) return std::nullopt;
  const std::uint64_t high = *std::max_element(loads.begin() + static_cast<std::ptrdiff_t>(size / 2), loads.end());
  const std::size_t step = std::max<std::size_t>(1, size / kCuts);
  for (std::size_t end = size; end > size / 2; end -= std::min(step, end)) {
    if (auto steady = find_steady_before(trace, tokens, loads, high - high / 10, end)) return steady;
  }
  return std::nullopt;
}

}  // namespace replay
