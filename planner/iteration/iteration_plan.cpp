#include "planner/iteration/iteration_plan.h"

#include <algorithm>
#include <stdexcept>

#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"

namespace memopt::planner {
namespace {

// More would make a plan long for little.
constexpr std::uint32_t kMostRounds = 4;
// Rounds are worth less than this part of the peak load: a thread that leaves them comes back in the wrong one.
constexpr std::uint64_t kWorthUnrolling = 500;
// Another arrangement of chunks that are kept is tried where more than this part of the peak load is held beside it.
constexpr std::uint64_t kWorthSpacing = 200;
// Between fixed blocks the search takes longer: so many times the steps.
constexpr std::uint64_t kWorkOfSpacing = 4;

std::uint32_t rounds_needed(const IterationLifetimes& lifetimes) {
  std::uint32_t rounds = 1;
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (const MallocLife& malloc : lane.mallocs) rounds = std::max(rounds, malloc.places);
  }
  return rounds;
}

IterationPlan laid_out(IterationLifetimes lifetimes, std::uint32_t rounds, const layout::Limits& limits) {
  IterationPlan plan;
  plan.lifetimes = std::move(lifetimes);
  plan.rounds = rounds;
  plan.problem = layout_problem(plan.lifetimes, rounds);
  plan.outcome = layout::solve(plan.problem, limits);
  return plan;
}

IterationPlan pooled(IterationLifetimes lifetimes, const layout::Limits& limits) {
  IterationPlan plan;
  plan.pools = choose_pools(lifetimes);
  plan.problem = pooled_problem(lifetimes, *plan.pools);
  plan.lifetimes = std::move(lifetimes);
  plan.outcome = layout::solve(plan.problem, limits);
  return plan;
}

}  // namespace

void add_blocks_in_slab(const IterationLifetimes& lifetimes, std::uint64_t operations, layout::Problem& problem) {
  for (const BlockInSlab& block : lifetimes.in_slab) {
    problem.add(place_bytes(block.bytes), {0, operations}, 1, block.offset);
  }
}

layout::Problem layout_problem(const IterationLifetimes& lifetimes, std::uint32_t rounds) {
  layout::Problem problem;
  const std::uint64_t operations = lifetimes.operations * rounds;
  // Needed from one operation to another, both included, the second perhaps an iteration later.
  const auto add = [&](std::uint64_t bytes, std::uint64_t begin, std::uint64_t end) {
    if (end - begin >= operations - 1) {
      problem.add(bytes, {0, operations});
    } else if (end < operations) {
      problem.add(bytes, {begin, end + 1});
    } else {
      const layout::Interval parts[] = {{0, end - operations + 1}, {begin, operations}};
      problem.add(bytes, parts);
    }
  };
  for (const LaneMallocs& lane : lifetimes.lanes) {
    for (const MallocLife& malloc : lane.mallocs) {
      const std::uint64_t bytes = place_bytes(malloc.bytes);
      if (malloc.places == 0) continue;
      if (rounds > 1) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
          const std::uint64_t shift = round * lifetimes.operations;
          add(bytes, malloc.born + shift, malloc.freed + shift);
        }
      } else if (malloc.always) {
        for (std::uint32_t place = 0; place < malloc.places; ++place) add(bytes, 0, operations - 1);
      } else {
        add(bytes, malloc.born, malloc.freed);
      }
    }
  }
  add_blocks_in_slab(lifetimes, operations, problem);
  return problem;
}

std::vector<std::vector<std::uint64_t>> IterationPlan::offsets(std::size_t lane) const {
  if (pools) throw std::logic_error("places of pools belong to no malloc");
  const auto count = [&](const MallocLife& life) { return rounds > 1 && life.places != 0 ? rounds : life.places; };
  std::size_t first = 0;
  for (std::size_t i = 0; i < lane; ++i) {
    for (const MallocLife& life : lifetimes.lanes[i].mallocs) first += count(life);
  }
  const LaneMallocs& its = lifetimes.lanes[lane];
  std::vector<std::vector<std::uint64_t>> result(its.operations.size());
  // Of joined mallocs, each takes a turn.
  const std::size_t each = its.mallocs.empty() ? 0 : its.operations.size() / its.mallocs.size();
  for (std::size_t index = 0; index < its.mallocs.size(); ++index) {
    const std::size_t turns = count(its.mallocs[index]);
    for (std::size_t part = 0; part < each; ++part) {
      std::vector<std::uint64_t>& offsets = result[part * its.mallocs.size() + index];
      for (std::size_t k = 0; k < turns; ++k) {
        offsets.push_back(outcome.solution.offsets[first + (k * each + part) % turns]);
      }
    }
    first += turns;
  }
  return result;
}

namespace {

// Of the joined lifetimes, or where places are used in turn perhaps of the separate ones.
IterationPlan plan_lifetimes(IterationLifetimes joined, IterationLifetimes separate, bool in_turn,
                             const PlanningOptions& options) {
  IterationPlan plan;
  if (in_turn && options.pools) {
    plan = pooled(separate, options.limits);
  } else {
    plan = laid_out(std::move(joined), 1, options.limits);
  }
  if (!in_turn || !options.unroll) return plan;
  const std::uint32_t rounds = rounds_needed(separate);
  const std::uint64_t footprint = plan.footprint();
  const std::uint64_t possible = plan.lifetimes.peak_load;
  const bool worthwhile = footprint > possible + possible / kWorthUnrolling;
  // Two lanes that are told by nothing but their own operations may be in different rounds.
  const auto by_gaps = std::count_if(separate.lanes.begin(), separate.lanes.end(),
                                     [](const LaneMallocs& lane) { return !lane.gaps.empty(); });
  // Files say which block is meant.
  const bool in_step =
      by_gaps < 2 && std::all_of(separate.lanes.begin(), separate.lanes.end(), [&](const LaneMallocs& lane) {
        return lane.parts == 1 || (!options.pools && separate.lanes.size() == 1);
      });
  if (worthwhile && rounds > 1 && rounds <= kMostRounds && in_step) {
    IterationPlan unrolled = laid_out(std::move(separate), rounds, options.limits);
    if (unrolled.footprint() + (options.pools ? possible / kWorthUnrolling : 0) < footprint) plan = std::move(unrolled);
  }
  return plan;
}

// Sets of the chunks that a plan keeps to do without: all that earlier plans have not kept; with all of those, or the
// upper half of them by offset, but for chunks in which the slab itself has a block that stays.
std::vector<std::vector<KeptChunk>> chunks_to_leave_out(const IterationLifetimes& lifetimes,
                                                        const std::vector<KeptChunk>& kept,
                                                        const PlanningOptions& options) {
  const std::vector<KeptChunk>& before = options.slab.chunks;
  std::vector<KeptChunk> added = kept;
  std::erase_if(added,
                [&](const KeptChunk& chunk) { return std::find(before.begin(), before.end(), chunk) != before.end(); });
  std::vector<std::vector<KeptChunk>> sets;
  if (!added.empty()) sets.push_back(added);
  if (!options.gives_up_chunks) return sets;
  std::vector<KeptChunk> movable = before;
  std::erase_if(movable, [&](const KeptChunk& chunk) {
    return std::any_of(lifetimes.in_slab.begin(), lifetimes.in_slab.end(), [&](const BlockInSlab& block) {
      return block.offset < chunk.offset + options.slab.chunk_bytes && chunk.offset < block.offset + block.bytes;
    });
  });
  std::sort(movable.begin(), movable.end(), [](const KeptChunk& a, const KeptChunk& b) { return a.offset < b.offset; });
  for (std::size_t left = 0; left < movable.size(); left = left == 0 ? (movable.size() + 1) / 2 : movable.size()) {
    std::vector<KeptChunk>& set = sets.emplace_back(added);
    set.insert(set.end(), movable.begin() + static_cast<std::ptrdiff_t>(left), movable.end());
  }
  return sets;
}

}  // namespace

std::optional<IterationPlan> plan_iteration(const OperationStore& store, const Iteration& iteration,
                                            const PlanningOptions& options, std::string& fault) {
  IterationLifetimes joined = lifetimes(store, iteration, true, options.slab, options.unsteady);
  const bool in_turn = std::any_of(joined.lanes.begin(), joined.lanes.end(), [](const LaneMallocs& lane) {
    return std::any_of(lane.mallocs.begin(), lane.mallocs.end(),
                       [](const MallocLife& malloc) { return malloc.always; });
  });
  IterationLifetimes separate;
  if (in_turn && (options.pools || options.unroll)) {
    separate = lifetimes(store, iteration, false, options.slab, options.unsteady);
  }
  const auto planned = [&](std::span<const std::uint64_t> sizes, const PlanningOptions& with,
                           std::span<const KeptChunk> left_out = {}) {
    IterationLifetimes its = joined;
    IterationLifetimes its_separate = separate;
    keep_chunks(&its, options.slab, sizes, left_out);
    keep_chunks(&its_separate, options.slab, sizes, left_out);
    return plan_lifetimes(std::move(its), std::move(its_separate), in_turn, with);
  };
  IterationPlan plan = planned({}, options);
  const std::uint64_t bound = plan.lifetimes.peak_load + plan.lifetimes.peak_load / kWorthSpacing;
  PlanningOptions longer = options;
  longer.limits.work *= std::min(kWorkOfSpacing, ~std::uint64_t{0} / std::max<std::uint64_t>(longer.limits.work, 1));
  if (plan.footprint() > bound && plan.lifetimes.kept_chunks.size() > options.slab.chunks.size()) {
    IterationPlan spaced = planned(joined.sizes_at_peak, longer);
    if (spaced.footprint() < plan.footprint()) plan = std::move(spaced);
  }
  if (plan.footprint() > bound && !plan.lifetimes.kept_chunks.empty()) {
    // Where a chunk lies goes by what was known when it was kept, and it may be in the way of a large block. One that
    // is beside the slab counts whole.
    const std::vector<KeptChunk> kept = plan.lifetimes.kept_chunks;
    const std::uint64_t beside = plan.lifetimes.persistent_bytes;
    const auto held = [&](const IterationPlan& one) {
      const std::uint64_t left_out = kept.size() - one.lifetimes.kept_chunks.size();
      return one.outcome.solution.height + beside + left_out * options.slab.chunk_bytes;
    };
    std::uint64_t worth = plan.lifetimes.peak_load / kWorthSpacing;
    for (const std::vector<KeptChunk>& left_out : chunks_to_leave_out(joined, kept, options)) {
      // As a rule half of such a chunk is free: then not even the best layout would be a gain.
      const std::uint64_t bytes = left_out.size() * options.slab.chunk_bytes;
      if (plan.lifetimes.peak_load + bytes / 2 + worth >= held(plan)) continue;
      IterationPlan without = planned({}, longer, left_out);
      if (held(without) + worth >= held(plan)) continue;
      plan = std::move(without);
      worth = 0;
    }
  }
  plan.iteration = iteration;
  plan.detected_at = store.last_sequence();
  plan.chunk_bytes = options.slab.chunk_bytes;
  if (auto found = layout::validate(plan.problem, plan.outcome.solution)) {
    fault = std::move(*found);
    return std::nullopt;
  }
  return plan;
}

}  // namespace memopt::planner
