#include "planner/iteration/detection.h"

#include <algorithm>
#include <map>

#include "planner/iteration/candidate.h"
#include "planner/iteration/hash.h"
#include "planner/iteration/repeats.h"

namespace memopt::planner {
namespace {

// Operations looked at for candidates, per operation of the horizon. A real iteration needs a few; streams made to have
// very many periods run into it and are given up for this time.
constexpr std::uint64_t kWorkPerOperation = 6;
constexpr std::uint64_t kLeastWork = 1 << 18;
constexpr std::uint64_t kWorkPerCandidate = 512;

// A short loop is more likely a part of something than an iteration (the samples of a convolution, the update of a few
// parameters): it must go on for a good part of what the program has done so far, and over little memory longer than
// two repeats.
constexpr std::uint32_t kShort = 64;
constexpr std::uint32_t kGoodPart = 3;
constexpr std::uint32_t kLongEnough = 1 << 14;  // operations, whatever came before
constexpr std::uint64_t kLittle = 16;           // part of the largest load so far
constexpr std::uint32_t kLongerRepeats = 16;
// Another lane may repeat a little later (the first step of an optimizer differs): where it allocates more than this
// part of all, the main lane must repeat so often before it is planned alone.
constexpr std::uint64_t kMuchOfAll = 16;
constexpr std::uint32_t kRepeatsAlone = 6;
// Misses below this are not worth telling.
constexpr std::uint32_t kTold = 32;

// The last `count` operations of a lane and how they repeat.
struct LaneTail {
  std::uint32_t lane = 0;
  std::uint32_t end = 0;  // operations of the lane
  std::vector<std::uint32_t> repeats;
  std::uint32_t since_malloc = 0;  // operations behind the last malloc

  bool has_period(std::uint32_t period) const {
    return period > 0 && std::uint64_t{period} * 2 < repeats.size() && repeats[period] >= period;
  }
};

LaneTail tail_of(const OperationStore& store, std::uint32_t lane, std::size_t count) {
  const auto& operations = store.lanes()[lane].operations;
  count = std::min(count, operations.size());
  std::vector<std::uint64_t> tokens(count);
  operations.copy_tokens(operations.size() - count, tokens);
  std::uint32_t since = 0;
  while (since < count) {
    const Operation& op = store.operations()[operations[operations.size() - 1 - since]];
    if (op.kind == OperationKind::kMalloc && store.blocks()[op.block].placeable) break;
    ++since;
  }
  return {lane, static_cast<std::uint32_t>(operations.size()), repeats_at_end(tokens), since};
}

// Number of a lane's operations that came before `operation`.
std::uint32_t count_before(const Lane& lane, std::uint32_t operation) {
  return lane.operations.count_before(operation);
}

// The lane's period while the main lane goes through one of its own, between three of its operations that are one
// period apart. Threads are not in step to the operation, so the count may be a little off: the nearest period that the
// lane has is taken.
std::uint32_t other_period(const Lane& lane, const LaneTail& tail, std::uint32_t first, std::uint32_t second,
                           std::uint32_t third) {
  const std::uint32_t from = count_before(lane, first), to = count_before(lane, third);
  const std::uint32_t last = to - count_before(lane, second);
  if (tail.has_period(last)) return last;
  const std::uint32_t mean = (to - from + 1) / 2;
  const std::uint32_t reach = std::max<std::uint32_t>(2, mean / 8);
  for (std::uint32_t off = 0; off <= reach; ++off) {
    if (tail.has_period(mean + off)) return mean + off;
    if (off < mean && tail.has_period(mean - off)) return mean - off;
  }
  return 0;
}

// Sums over all positions of the cyclic sequences, so that it does not depend on where the end lies.
std::uint64_t signature_of(const OperationStore& store, const Iteration& iteration) {
  constexpr std::uint32_t kContext = 8;
  std::uint64_t signature = 0;
  for (const LanePeriod& lane : iteration.lanes) {
    const auto& operations = store.lanes()[lane.lane].operations;
    const auto token = [&](std::uint32_t i) { return operations.token(lane.middle() + i % lane.period); };
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < lane.period; ++i) {
      std::uint64_t word = 0;
      for (std::uint32_t k = 0; k < kContext; ++k) word = combine(word, token(i + k));
      sum += mix(word);
    }
    signature += combine(combine(sum, lane.period), store.lanes()[lane.lane].number);
  }
  return mix(signature);
}

std::uint64_t malloc_bytes(const OperationStore& store, std::uint32_t lane, std::uint32_t begin, std::uint32_t end) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const Operation& op = store.operations()[store.lanes()[lane].operations[i]];
    if (op.kind == OperationKind::kMalloc && store.blocks()[op.block].placeable)
      bytes += store.blocks()[op.block].bytes;
  }
  return bytes;
}

std::uint64_t malloc_bytes(const OperationStore& store, const Iteration& iteration) {
  std::uint64_t bytes = 0;
  for (const LanePeriod& lane : iteration.lanes) bytes += malloc_bytes(store, lane.lane, lane.middle(), lane.end);
  return bytes;
}

std::optional<std::string> is_part(const OperationStore& store, const Iteration& iteration) {
  const LanePeriod& main = iteration.lanes[iteration.main];
  if (iteration.operations() >= kShort) return std::nullopt;
  if (iteration.repeated < std::min(main.end / kGoodPart, kLongEnough)) return "it is a short loop, and not for long";
  if (iteration.repeated >= std::uint64_t{main.period} * kLongerRepeats) return std::nullopt;
  if (malloc_bytes(store, iteration) < store.peak_bytes() / kLittle) return "it is a short loop over little memory";
  return std::nullopt;
}

}  // namespace

std::uint32_t main_lane(const OperationStore& store) {
  std::uint32_t best = kNone;
  for (std::uint32_t lane = 0; lane < store.lanes().size(); ++lane) {
    const std::uint64_t bytes = store.lanes()[lane].malloc_bytes;
    if (bytes > 0 && (best == kNone || bytes > store.lanes()[best].malloc_bytes)) best = lane;
  }
  return best;
}

Detection detect(const OperationStore& store, const DetectionOptions& options) {
  Detection detection;
  const std::uint32_t main = main_lane(store);
  if (main == kNone) return detection;
  const Lane& lane = store.lanes()[main];
  const std::size_t horizon = options.horizon == 0 ? lane.operations.size() : options.horizon;
  if (!may_repeat(lane.operations, horizon, options.longer_than)) return detection;
  const LaneTail tail = tail_of(store, main, horizon);
  const auto looked_at = static_cast<std::uint32_t>(tail.repeats.size() - 1);
  const std::uint32_t first_looked_at = lane.operations[tail.end - looked_at];
  std::map<std::uint32_t, LaneTail> others;
  std::uint64_t work = 0;
  const std::uint64_t budget = kLeastWork + kWorkPerOperation * looked_at;

  std::vector<std::uint32_t> refused;  // and found: several times, they are nothing else
  std::vector<std::uint32_t> alone;    // likewise, with lanes left out
  if (options.longer_than != 0 && options.longer_than < tail.repeats.size()) refused.push_back(options.longer_than);
  for (std::uint32_t period = options.longer_than + 1; std::uint64_t{period} * 2 <= looked_at; ++period) {
    if (!tail.has_period(period)) continue;
    const auto is_several_of = [&](std::uint32_t part) {
      return period % part == 0 && std::uint64_t{tail.repeats[part]} + part >= 2 * std::uint64_t{period};
    };
    if (std::any_of(refused.begin(), refused.end(), is_several_of)) continue;
    if (period <= tail.since_malloc) {
      if (detection.missed_period < kTold) {
        detection.missed_period = period;
        detection.miss = "nothing is allocated in it";
      }
      continue;
    }
    work += kWorkPerCandidate;
    Iteration iteration;
    iteration.repeated = tail.repeats[period] + period;
    std::uint64_t left_out = 0;  // bytes, in both repeats
    const std::uint32_t begin = lane.operations[tail.end - 2 * period];
    const std::uint32_t third = lane.operations[tail.end - 1];
    const std::uint32_t second = lane.operations[tail.end - 1 - period];
    const std::uint32_t first = tail.end > 2 * period ? lane.operations[tail.end - 1 - 2 * period] : 0;
    for (std::uint32_t other = 0; other < store.lanes().size(); ++other) {
      ++work;
      const Lane& its = store.lanes()[other];
      if (other == main) {
        iteration.main = static_cast<std::uint32_t>(iteration.lanes.size());
        iteration.lanes.push_back({main, tail.end, period});
        continue;
      }
      if (its.operations.empty() || its.operations.back() < begin) continue;
      auto known = others.find(other);
      if (known == others.end()) {
        const std::size_t count = its.operations.size() - count_before(its, first_looked_at);
        work += count;
        known = others.emplace(other, tail_of(store, other, count)).first;
      }
      const std::uint32_t own = other_period(its, known->second, first, second, third);
      if (own != 0) {
        iteration.lanes.push_back({other, known->second.end, own});
        continue;
      }
      const auto from = count_before(its, begin), to = static_cast<std::uint32_t>(its.operations.size());
      work += to - from;
      left_out += malloc_bytes(store, other, from, to);
    }
    iteration.partial = left_out != 0;
    // Several times, it may be one in which a lane that was left out repeats too; else it is nothing new.
    if (iteration.partial && std::any_of(alone.begin(), alone.end(), is_several_of)) continue;
    std::optional<std::string> objection = Candidate(store, iteration, work).objection();
    if (!objection && iteration.repeated < std::uint64_t{period} * kRepeatsAlone &&
        left_out / 2 > malloc_bytes(store, iteration) / kMuchOfAll) {
      objection = "what another thread allocates meanwhile does not repeat yet";
    }
    if (!objection) {
      objection = is_part(store, iteration);
      if (objection) (iteration.partial ? alone : refused).push_back(period);
    }
    if (!objection) {
      iteration.signature = signature_of(store, iteration);
      work += iteration.operations();
      (iteration.partial ? alone : refused).push_back(period);
      // A longer one may have it in it.
      if (!options.accept || options.accept(iteration)) detection.iteration = std::move(iteration);
    } else if (detection.missed_period < kTold) {
      detection.missed_period = period;
      detection.miss = std::move(*objection);
    }
    if (work > budget) return detection;
  }
  return detection;
}

bool is_transient(const OperationStore& store, const Iteration& iteration, std::uint32_t block) {
  std::uint64_t work = 0;
  return Candidate(store, iteration, work).transient(block);
}

}  // namespace memopt::planner
