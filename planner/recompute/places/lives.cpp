#include "planner/recompute/places/lives.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "planner/layout/portfolio/solve.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/places/layout_problem.h"
#include "planner/swap/places/timeline.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::recompute {
namespace {

constexpr double kLittle = 0.01;  // of the limit: above it by more, a longer layout comes to nothing
constexpr double kSame = 1e-3;    // of the iteration: waits that count as the same

class LivesLayout {
 public:
  LivesLayout(const swap::Problem& problem, const Graph& graph, const Combined& plan, std::uint64_t limit,
              const LayoutEffort& effort)
      : plan_(plan),
        limit_(limit),
        effort_(effort),
        extended_(extend_with_layout(problem, graph, plan.steps, limit)),
        liveness_(swap::find_liveness(extended_.problem)),
        layout_(swap::make_layout_problem(extended_.problem, liveness_, {plan.decisions.swaps, {}})) {}

  LaidOut run() {
    if (!plan_.decisions.swaps.empty()) lay_out_as_by_load();
    if (!result_.as_fast) lay_out_by_operations();
    return std::move(result_);
  }

 private:
  // So that nothing waits that does not by load.
  void lay_out_as_by_load() {
    const auto solve = [&](const layout::Limits& limits, std::optional<std::uint64_t> capacity) {
      return swap::lay_out_as_by_load(extended_.problem, liveness_, plan_.decisions, plan_.load, limits, capacity);
    };
    auto placed = solve(effort_.brief, limit_);
    if (!placed) {
      const auto lowest = solve(effort_.brief, std::nullopt);
      if (!lowest) return;
      result_.footprint = swap::footprint_of(extended_.problem, *lowest);
      if (is_little_above(result_.footprint)) placed = solve(effort_.longer, limit_);
    }
    if (placed) offer(std::move(*placed));
  }

  void lay_out_by_operations() {
    auto placed = solve_briefly();
    if (!placed) return;
    const std::uint64_t footprint = swap::footprint_of(extended_.problem, *placed);
    if (result_.footprint == 0) result_.footprint = footprint;
    if (footprint <= limit_) {
      offer(*placed);
    } else {
      if (!is_little_above(footprint)) return;
      if (auto within = solve(limit_, effort_.longer)) offer(*(placed = std::move(within)));
    }
    // What waits may lie otherwise as it is simulated; and others between the turns of a block that lives for several
    // iterations, where nothing is swapped.
    if (result_.as_fast || (plan_.decisions.swaps.empty() && !swap::has_turns(*placed))) return;
    if (auto in_time = swap::lay_out_in_time(extended_.problem, liveness_, *placed, effort_.longer, limit_))
      offer(std::move(*in_time));
  }

  bool is_little_above(std::uint64_t footprint) const {
    return static_cast<double>(footprint) <= (1 + kLittle) * static_cast<double>(limit_);
  }

  // The lowest layout, or the first that is within the limit.
  std::optional<swap::Decisions> solve_briefly() {
    if (effort_.brief.time == std::chrono::nanoseconds::max()) {
      // Which of several threads is the first is not the same each time.
      auto within = solve(limit_, effort_.brief);
      return within ? std::move(within) : solve(std::nullopt, effort_.brief);
    }
    std::atomic<bool> enough = false;
    layout::Limits limits = effort_.brief;
    limits.cancelled = &enough;
    return solve(std::nullopt, limits, [&](const layout::Outcome& one) {
      if (one.solution.height <= limit_) enough = true;
    });
  }

  std::optional<swap::Decisions> solve(std::optional<std::uint64_t> capacity, const layout::Limits& limits,
                                       const layout::OnBetter& on_better = {}) {
    swap::Decisions decisions{plan_.decisions.swaps, {}};
    layout::Outcome outcome;
    if (!layout_.problem.buffers.empty()) {
      layout_.problem.capacity = capacity;
      outcome = layout::solve(layout_.problem, limits, on_better);
      if (!outcome.found(layout_.problem.buffers.size())) return std::nullopt;
    }
    swap::set_places(extended_.problem, layout_, outcome.solution, decisions);
    return decisions;
  }

  void offer(swap::Decisions decisions) {
    auto one = judge(plan_.steps, plan_.cost, extended_, liveness_, std::move(decisions));
    if (!one || (result_.plan && result_.plan->waits_ns <= one->waits_ns)) return;
    // Without swaps nothing is under way: the load is that of the steps.
    if (one->decisions.swaps.empty()) one->load = plan_.cost.peak;
    result_.as_fast = one->waits_ns <= plan_.waits_ns + kSame * extended_.problem.period;
    result_.plan = std::move(one);
  }

  const Combined& plan_;
  const std::uint64_t limit_;
  const LayoutEffort& effort_;
  const Extended extended_;
  const swap::Liveness liveness_;
  swap::LayoutProblem layout_;
  LaidOut result_;
};

}  // namespace

Extended extend_with_layout(const swap::Problem& problem, const Graph& graph, const Steps& steps, std::uint64_t limit) {
  Extended extended = extend(problem, graph, steps);
  extended.problem.layout = true;
  extended.problem.limit = limit;
  extended.problem.machine.remap_ns.reset();
  return extended;
}

LaidOut lay_out(const swap::Problem& problem, const Graph& graph, const Combined& plan, std::uint64_t limit,
                const LayoutEffort& effort) {
  return LivesLayout(problem, graph, plan, limit, effort).run();
}

}  // namespace memopt::recompute
