#include "planner/swap/simulation/verify.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/swap/simulation/occupancy.h"

namespace memopt::swap {
namespace {

constexpr std::size_t kMostTurns = 8;
constexpr double kSameTime = 1e-3;  // nanoseconds: sums of doubles
constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;

std::string text(std::uint64_t number) { return number == kNever ? "never" : std::to_string(number); }

std::string name(const Problem& problem, std::uint32_t block) { return "block " + text(problem.blocks[block].id); }

std::string element(std::size_t j) { return "swaps[" + std::to_string(j) + "]: "; }

std::optional<std::string> fault_of_one(const Problem& problem, const Liveness& liveness, const Swap& swap) {
  if (swap.block >= problem.blocks.size()) return "there is no such block";
  const Block& block = problem.blocks[swap.block];
  const Lifetime& lifetime = liveness.of[swap.block];
  if (block.pinned) return name(problem, swap.block) + " is pinned";
  if (block.persistent) {
    if (swap.out_after >= liveness.operations) {
      return "out_after: expected below " + text(liveness.operations) + ", as " + name(problem, swap.block) +
             " is persistent";
    }
    if (!swap.returns() || swap.in_after == kNever)
      return "the persistent " + name(problem, swap.block) + " never comes back";
  } else if (swap.out_after < lifetime.born || swap.out_after >= lifetime.freed) {
    return name(problem, swap.block) + " goes out after operation " + text(swap.out_after) +
           ", outside its lifetime, " + text(lifetime.born) + " to " + text(lifetime.freed);
  }
  if ((swap.in_after == kNever) != (swap.need == kNever)) return "expected both in_after and need, or neither";
  if (!swap.returns()) return std::nullopt;
  if (swap.out_after > swap.in_after || swap.in_after >= swap.need || swap.need > kLargest) {
    return "expected out_after <= in_after < need, found " + text(swap.out_after) + ", " + text(swap.in_after) + ", " +
           text(swap.need);
  }
  if (!block.persistent && swap.need > lifetime.freed) {
    return name(problem, swap.block) + " is needed at operation " + text(swap.need) + ", after its free at " +
           text(lifetime.freed);
  }
  return std::nullopt;
}

// Of all swaps of one block, by out_after.
class BlockSwaps {
 public:
  BlockSwaps(const Problem& problem, const Liveness& liveness, std::uint32_t block, std::vector<const Swap*> swaps)
      : problem_(problem), liveness_(liveness), block_(block), swaps_(std::move(swaps)), n_(liveness.operations) {}

  std::optional<std::string> fault() const {
    if (auto fault = order()) return fault;
    for (std::size_t k = 0; k < swaps_.size(); ++k) {
      if (auto fault = accesses(*swaps_[k])) return fault;
      if (!swaps_[k]->copy) {
        if (auto fault = host_copy(k)) return fault;
      }
    }
    return std::nullopt;
  }

 private:
  bool persistent() const { return problem_.blocks[block_].persistent; }

  std::optional<std::string> order() const {
    const std::uint64_t first = swaps_.front()->out_after;
    if (!persistent() && first < liveness_.of[block_].start) {
      return name(problem_, block_) + " goes out after operation " + text(first) + ", before it is there at " +
             text(liveness_.of[block_].start);
    }
    for (std::size_t k = 0; k + 1 < swaps_.size(); ++k) {
      if (swaps_[k]->returns() && swaps_[k]->need <= swaps_[k + 1]->out_after) continue;
      return name(problem_, block_) + " goes out again after operation " + text(swaps_[k + 1]->out_after) +
             ", while it is out until " + text(swaps_[k]->need);
    }
    if (persistent() && swaps_.back()->need > first + n_) {
      return name(problem_, block_) + ": its last swap, until operation " + text(swaps_.back()->need) +
             ", runs into its first, after " + text(first + n_);
    }
    return std::nullopt;
  }

  std::optional<std::string> accesses(const Swap& swap) const {
    const std::uint64_t end = swap.returns() ? swap.need : liveness_.of[block_].freed;
    for (const Access& access : liveness_.accesses_of(block_)) {
      for (const std::uint64_t q : {access.position, persistent() ? access.position + n_ : access.position}) {
        if (swap.out_after < q && q < end) {
          return name(problem_, block_) + " is accessed by operation " + text(q) + " while it is out, after " +
                 text(swap.out_after) + " until " + text(swap.need);
        }
      }
    }
    return std::nullopt;
  }

  // Nothing may have been written since the copy before.
  std::optional<std::string> host_copy(std::size_t k) const {
    if (std::none_of(swaps_.begin(), swaps_.end(), [](const Swap* swap) { return swap->copy; })) {
      return name(problem_, block_) + " is never copied out: copy is false throughout";
    }
    const auto signed_n = static_cast<std::int64_t>(n_);
    const auto out = static_cast<std::int64_t>(swaps_[k]->out_after);
    if (k == 0 && !persistent()) {
      return name(problem_, block_) + ": copy is false after operation " + text(swaps_[k]->out_after) +
             " without an earlier copy";
    }
    const Swap& before = *swaps_[k == 0 ? swaps_.size() - 1 : k - 1];
    const std::int64_t since = static_cast<std::int64_t>(before.out_after) - (k == 0 ? signed_n : 0);
    for (const Access& access : liveness_.accesses_of(block_)) {
      if (!access.write) continue;
      const auto at = static_cast<std::int64_t>(access.position);
      for (const std::int64_t q : {persistent() ? at - signed_n : at, at}) {
        if (since < q && q <= out) {
          return name(problem_, block_) + ": copy is false after operation " + text(swaps_[k]->out_after) +
                 ", but it was written since the copy before";
        }
      }
    }
    return std::nullopt;
  }

  const Problem& problem_;
  const Liveness& liveness_;
  std::uint32_t block_;
  std::vector<const Swap*> swaps_;
  std::uint64_t n_;
};

std::optional<std::string> fault_of_offsets(const std::vector<std::uint64_t>& offsets, std::uint64_t unit) {
  for (const std::uint64_t offset : offsets) {
    if (offset > kLargest) return "offset: expected at most 2^62";
    if (offset % unit != 0) return "offset: expected a multiple of " + text(unit) + ", found " + text(offset);
  }
  return std::nullopt;
}

std::string description(const Problem& problem, const Timing& timing) {
  const std::string block = name(problem, timing.culprit);
  switch (timing.fault) {
    case Fault::kDeadlock:
      return "deadlock: the operation that needs " + block + " must end before it can be copied in";
    case Fault::kCrossing:
      return block + " is copied in from an earlier iteration than that in which its bytes are given up";
    case Fault::kOverLimit:
      return "more bytes are wanted than the limit of " + text(problem.limit.value_or(0)) + " leaves, for " + block;
    default:
      return block + " and another are resident on the same bytes";
  }
}

// Of two instances that are there at once, each would need the address that only one of them can have.
std::optional<std::string> find_return_fault(const Problem& problem, const Liveness& liveness,
                                             const Decisions& decisions) {
  for (std::size_t j = 0; j < decisions.swaps.size(); ++j) {
    const Swap& swap = decisions.swaps[j];
    if (swap.returns_to.empty()) continue;
    if (!problem.layout) return element(j) + "offset: expected none, as there is no layout";
    if (lasts_iterations(problem, liveness, swap.block))
      return element(j) + "offset: expected none, as " + name(problem, swap.block) +
             " lives for an iteration or longer";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_swap_fault(const Problem& problem, const Liveness& liveness,
                                           const Decisions& decisions) {
  const std::vector<Swap>& swaps = decisions.swaps;
  std::vector<std::uint32_t> order(swaps.size());
  for (std::uint32_t j = 0; j < swaps.size(); ++j) {
    if (auto fault = fault_of_one(problem, liveness, swaps[j])) return element(j) + *fault;
    order[j] = j;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return swaps[a].block != swaps[b].block ? swaps[a].block < swaps[b].block : swaps[a].out_after < swaps[b].out_after;
  });
  for (std::size_t k = 0; k < order.size();) {
    const std::uint32_t block = swaps[order[k]].block;
    std::vector<const Swap*> own;
    for (; k < order.size() && swaps[order[k]].block == block; ++k) own.push_back(&swaps[order[k]]);
    if (auto fault = BlockSwaps(problem, liveness, block, std::move(own)).fault()) return fault;
  }
  return std::nullopt;
}

std::optional<std::string> find_place_fault(const Problem& problem, const Decisions& decisions) {
  if (decisions.places.size() != problem.blocks.size()) return "expected a place for each block, found none";
  std::vector<bool> swapped(problem.blocks.size());
  for (const Swap& swap : decisions.swaps) swapped[swap.block] = true;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const Place& place = decisions.places[b];
    const std::size_t most = problem.blocks[b].persistent ? 1 : kMostTurns;
    if (place.offsets.empty() || place.offsets.size() > most) {
      return name(problem, b) + ": offset: expected 1 to " + std::to_string(most) + " offsets, found " +
             std::to_string(place.offsets.size());
    }
    if ((swapped[b] || problem.blocks[b].whole_chunks) && !place.own && problem.chunk != 1) {
      return name(problem, b) + ": window: expected own, as it " + (swapped[b] ? "is swapped" : "lies in whole chunks");
    }
    const std::uint64_t unit = place.own ? problem.chunk : problem.align;
    if (auto fault = fault_of_offsets(place.offsets, unit)) return name(problem, b) + ": " + *fault;
  }
  for (std::size_t j = 0; j < decisions.swaps.size(); ++j) {
    const Swap& swap = decisions.swaps[j];
    if (swap.returns_to.empty()) continue;
    if (!problem.machine.remap_ns) return element(j) + "offset: expected none, as machine.remap_ns is not given";
    if (!swap.returns()) return element(j) + "offset: expected none, as it does not return";
    const std::size_t turns = decisions.places[swap.block].offsets.size();
    if (swap.returns_to.size() != turns) {
      return element(j) + "offset: expected " + std::to_string(turns) + ", as of " + name(problem, swap.block) +
             ", found " + std::to_string(swap.returns_to.size());
    }
    if (auto fault = fault_of_offsets(swap.returns_to, problem.chunk)) return element(j) + *fault;
  }
  const std::uint64_t footprint = footprint_of(problem, decisions);
  if (problem.limit && footprint > *problem.limit) {
    return "the footprint, " + text(footprint) + ", is above the limit of " + text(*problem.limit);
  }
  return std::nullopt;
}

std::uint64_t footprint_of(const Problem& problem, const Decisions& decisions) {
  std::uint64_t end = 0;
  for (std::size_t b = 0; b < decisions.places.size(); ++b) {
    for (const std::uint64_t offset : decisions.places[b].offsets)
      end = std::max(end, offset + problem.blocks[b].bytes);
  }
  if (decisions.places.empty()) return end;
  for (const Swap& swap : decisions.swaps) {
    for (const std::uint64_t offset : swap.returns_to) end = std::max(end, offset + problem.blocks[swap.block].bytes);
  }
  return end;
}

std::uint64_t least_limit(const Problem& problem, const Liveness& liveness, const Decisions& decisions) {
  Problem tried = problem;
  Simulator simulator(tried, liveness);
  const Timing timing = simulator.evaluate(decisions);
  const std::uint64_t limit = problem.limit.value_or(kNever);
  const auto holds = [&](std::uint64_t within) {
    tried.limit = within;
    const Timing now = simulator.evaluate(decisions);
    return now.fault == Fault::kNone && now.added_ns <= timing.added_ns + kSameTime && now.early_swap_ins == 0;
  };
  std::uint64_t too_low = timing.peak_resident;
  if (too_low >= limit || holds(too_low)) return std::min(too_low, limit);
  // A little above most of the time.
  const auto precision = std::max<std::uint64_t>(1, too_low >> 12);
  std::uint64_t step = 4 * precision;
  std::uint64_t enough = std::min(limit, too_low + step);
  while (enough < limit && !holds(enough)) {
    too_low = enough;
    step *= 2;
    enough = limit - enough > step ? enough + step : limit;
  }
  while (enough - too_low > precision) {
    const std::uint64_t half = too_low + (enough - too_low) / 2;
    (holds(half) ? enough : too_low) = half;
  }
  return enough;
}

Report verify(const Problem& problem, const Decisions& decisions, const Rules& rules) {
  try {
    return verify(problem, find_liveness(problem), decisions, rules);
  } catch (const Invalid& error) {
    Report report;
    report.fault = error.what();
    return report;
  }
}

Report verify(const Problem& problem, const Liveness& liveness, const Decisions& decisions, const Rules& rules) {
  Report report;
  report.peak_live = liveness.peak;
  if ((report.fault = find_swap_fault(problem, liveness, decisions))) return report;
  if ((report.fault = find_return_fault(problem, liveness, decisions))) return report;
  if (problem.layout) {
    if ((report.fault = find_place_fault(problem, decisions))) return report;
    if ((report.fault = find_overlap(problem, liveness, decisions))) return report;
    report.footprint = footprint_of(problem, decisions);
  }
  Simulator simulator(problem, liveness);
  report.timing = simulator.record(decisions);
  if (report.timing.fault != Fault::kNone) {
    report.fault = description(problem, report.timing);
    return report;
  }
  if (rules.no_early && report.timing.early_swap_ins > 0) {
    report.fault = "a swap-in is issued before its bytes were given up";
    return report;
  }
  if (problem.layout) {
    const Occupancy occupancy = find_occupancy(problem, liveness, decisions, simulator, report.timing);
    if ((report.fault = occupancy.fault)) return report;
    report.peak_resident = occupancy.peak;
  } else {
    report.peak_resident = report.timing.peak_resident;
  }
  double out = 0, in = 0;
  for (std::uint32_t j = 0; j < decisions.swaps.size(); ++j) {
    const Swap& swap = decisions.swaps[j];
    report.remapped_chunks += simulator.remapped_chunks(j);
    report.returns_elsewhere += simulator.remapped_chunks(j) != 0 ? 1 : 0;
    const std::uint64_t bytes = problem.blocks[swap.block].bytes;
    (swap.copy ? report.bytes_out : report.bytes_dropped) += bytes;
    if (swap.copy) out += problem.machine.out_ns(bytes);
    if (!swap.returns()) continue;
    report.bytes_in += bytes;
    in += problem.machine.in_ns(bytes);
  }
  if (const double length = problem.period + report.timing.added_ns; length > 0) {
    report.out_utilisation = out / length;
    report.in_utilisation = in / length;
  }
  return report;
}

}  // namespace memopt::swap
