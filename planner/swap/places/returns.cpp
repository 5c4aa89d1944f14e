#include "planner/swap/places/returns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace memopt::swap {
namespace {

double time_of(const Problem& problem, std::uint64_t position) {
  const std::uint64_t n = problem.operations.size();
  return static_cast<double>(position / n) * problem.period + problem.operations[position % n].time;
}

// More than there are returns: it is later by next to nothing each time.
constexpr std::size_t kMostPasses = 64;

bool may_remap(const Problem& problem) { return problem.machine.remap_ns && problem.layout; }

}  // namespace

// The host goes from one to the other, in order of copies in, iteration by iteration. What it has no time for is left
// out, and then it is begun again: each is left out once, and with all others it is later in each iteration, or ends.
std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                    std::vector<Absence> absences, double iteration) {
  std::vector<bool> free(decisions.swaps.size());
  if (!may_remap(problem)) return free;
  // On the circle of an iteration.
  for (Absence& one : absences) {
    const double shift = iteration > 0 ? std::floor(one.in_begin / iteration) * iteration : 0;
    one.out_end -= shift;
    one.in_begin -= shift;
  }
  std::sort(absences.begin(), absences.end(), [](const Absence& a, const Absence& b) {
    return a.in_begin != b.in_begin ? a.in_begin < b.in_begin : a.swap < b.swap;
  });
  for (const Absence& one : absences) {
    // Two instances would each need the address.
    free[one.swap] = !lasts_iterations(problem, liveness, decisions.swaps[one.swap].block);
  }
  // Until an iteration begins as the one before did.
  double busy = -std::numeric_limits<double>::infinity();
  std::size_t passes = 0;
  for (bool again = iteration > 0; again; busy -= iteration) {
    if (++passes > kMostPasses + absences.size()) return std::vector<bool>(decisions.swaps.size());
    const double before = busy;
    again = false;
    for (const Absence& one : absences) {
      if (!free[one.swap]) continue;
      // A freed block's addresses are mapped back, which its last return has to wait for as well.
      const Block& block = problem.blocks[decisions.swaps[one.swap].block];
      const std::uint64_t chunks = chunks_of(problem, block.bytes);
      const double ns = static_cast<double>(chunks) * *problem.machine.remap_ns * (block.persistent ? 1 : 2);
      const double done = std::max(one.out_end, busy) + ns;
      free[one.swap] = done <= one.in_begin;
      again = again || !free[one.swap];
      if (free[one.swap]) busy = done;
    }
    again = again || busy - iteration > before;
  }
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> last(problem.blocks.size(), kNone);  // return of each block
  for (const Absence& one : absences) {
    const Swap& swap = decisions.swaps[one.swap];
    std::uint32_t& latest = last[swap.block];
    if (latest == kNone || swap.need > decisions.swaps[latest].need) latest = one.swap;
  }
  for (const Absence& one : absences) {
    const std::uint32_t block = decisions.swaps[one.swap].block;
    if (!problem.blocks[block].persistent && !free[last[block]]) free[one.swap] = false;
  }
  return free;
}

std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions) {
  std::vector<Absence> absences;
  for (std::uint32_t j = 0; j < decisions.swaps.size(); ++j) {
    const Swap& swap = decisions.swaps[j];
    if (!swap.returns()) continue;
    const std::uint64_t bytes = problem.blocks[swap.block].bytes;
    // An operation has ended when the one behind it begins.
    const double left = time_of(problem, swap.out_after + 1) + (swap.copy ? problem.machine.out_ns(bytes) : 0);
    absences.push_back({j, left, time_of(problem, swap.need) - problem.machine.in_ns(bytes)});
  }
  return find_free_returns(problem, liveness, decisions, std::move(absences), problem.period);
}

std::vector<bool> find_free_returns(const Problem& problem, const Liveness& liveness, const Decisions& decisions,
                                    const Simulator& simulator, std::uint64_t iteration) {
  if (!may_remap(problem)) return std::vector<bool>(decisions.swaps.size());
  const std::uint64_t n = problem.operations.size();
  std::vector<Absence> absences;
  for (std::uint32_t j = 0; j < decisions.swaps.size(); ++j) {
    const Swap& swap = decisions.swaps[j];
    if (!swap.returns()) continue;
    absences.push_back({j, simulator.out_end(j, iteration - (swap.in_after / n - swap.out_after / n)),
                        simulator.in_begin(j, iteration)});
  }
  return find_free_returns(problem, liveness, decisions, std::move(absences),
                           simulator.iteration_end(iteration) - simulator.iteration_end(iteration - 1));
}

std::uint32_t group_stays(const std::vector<bool>& free_returns, std::span<const std::int32_t> in_swaps,
                          std::vector<std::uint32_t>& groups) {
  const auto is_free = [&](std::size_t k) {
    return in_swaps[k] >= 0 && free_returns[static_cast<std::size_t>(in_swaps[k])];
  };
  groups.clear();
  std::uint32_t group = 0;
  for (std::size_t k = 0; k < in_swaps.size(); ++k) {
    if (k > 0 && is_free(k)) ++group;
    groups.push_back(group);
  }
  // Round and round: what the first one begins with belongs to the last.
  if (group > 0 && in_swaps[0] >= 0 && !is_free(0)) {
    std::replace(groups.begin(), groups.end(), group, std::uint32_t{0});
    return group;
  }
  return in_swaps.empty() ? 1 : group + 1;
}

}  // namespace memopt::swap
