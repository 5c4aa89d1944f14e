#include "tools/memoptctl/report/report_model.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "planner/sending/swap_plan.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/load.h"
#include "planner/swap/model/machines.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kMostLevels = 4000;
constexpr std::size_t kMostUses = 400'000;
// Of all plans with swaps together: the page has to be read.
constexpr std::size_t kMostDrawn = 150'000;

class IterationBuilder {
 public:
  IterationBuilder(const planner::IterationProblem& observed, const RecordedProgram& program)
      : observed_(observed),
        problem_(observed.problem),
        program_(program),
        liveness_(swap::find_liveness(observed.problem)) {}

  const swap::Liveness& liveness() const { return liveness_; }

  ReportedIteration build() {
    result_.period = problem_.period;
    result_.machine = problem_.machine;
    add_steps();
    add_blocks();
    add_uses();
    add_load();
    return std::move(result_);
  }

 private:
  // Of an operation of any iteration from this one on.
  double time(std::uint64_t position) const {
    const std::uint64_t n = problem_.operations.size();
    return problem_.operations[position % n].time + static_cast<double>(position / n) * problem_.period;
  }

  void add_steps() {
    step_of_.assign(program_.steps.size(), kNoName);
    const auto& operations = problem_.operations;
    for (std::size_t i = 0; i < operations.size();) {
      const std::uint64_t rank = observed_.ranks[i];
      // Idle time before the first operation has its rank, and so has that behind any other.
      const bool idle_first =
          i == 0 && operations[0].kind == swap::Kind::kNothing && operations.size() > 1 && observed_.ranks[1] == rank;
      const std::size_t first = idle_first ? 1 : i;
      std::size_t end = first + 1;
      while (end < operations.size() && observed_.ranks[end] == rank && operations[end].kind != swap::Kind::kNothing) {
        ++end;
      }
      const double until = end < operations.size() ? operations[end].time : problem_.period;
      while (end < operations.size() && observed_.ranks[end] == rank) ++end;
      i = end;
      const RecordedProgram::Step& step = program_.steps.at(rank);
      if (step.name == kNoName) continue;
      step_of_[rank] = static_cast<std::uint32_t>(result_.steps.size());
      result_.steps.push_back({operations[first].time, until - operations[first].time, step.kind, step.name});
    }
  }

  void add_blocks() {
    std::size_t persistent = 0;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      const swap::Block& block = problem_.blocks[b];
      ReportedBlock reported{.number = 0, .bytes = block.bytes, .persistent = block.persistent, .pinned = block.pinned};
      if (block.persistent) {
        reported.freed = problem_.period;
        if (persistent < observed_.persistent_numbers.size()) {
          reported.number = observed_.persistent_numbers[persistent];
          reported.stack = program_.persistent_stack[persistent];
        }
        ++persistent;
      } else {
        const swap::Lifetime& life = liveness_.of[b];
        const std::uint64_t rank = observed_.ranks[life.born % liveness_.operations];
        reported.number = observed_.origins[rank].sequence;
        reported.stack = program_.steps[rank].stack;
        reported.born = time(life.born);
        reported.freed = time(life.freed);
      }
      result_.blocks.push_back(reported);
    }
  }

  // By block, each step once.
  void add_uses() {
    std::vector<std::vector<BlockUse>> of(problem_.blocks.size());
    std::size_t all = 0;
    for (std::size_t i = 0; i < problem_.operations.size(); ++i) {
      const swap::Operation& operation = problem_.operations[i];
      if (!swap::is_access(operation)) continue;
      const std::uint32_t step = step_of_[observed_.ranks[i]];
      if (step == kNoName) continue;
      const bool writes = operation.kind == swap::Kind::kWrite;
      std::vector<BlockUse>& uses = of[operation.block];
      if (!uses.empty() && uses.back().step == step) {
        uses.back().writes = uses.back().writes || writes;
      } else {
        uses.push_back({step, writes});
        ++all;
      }
    }
    std::size_t most = all;
    if (all > kMostUses) {
      for (most = 64; most > 2; most /= 2) {
        std::size_t kept = 0;
        for (const auto& uses : of) kept += std::min(uses.size(), most);
        if (kept <= kMostUses) break;
      }
    }
    for (std::uint32_t b = 0; b < of.size(); ++b) {
      ReportedBlock& block = result_.blocks[b];
      block.accesses = static_cast<std::uint32_t>(of[b].size());
      block.first_use = static_cast<std::uint32_t>(result_.uses.size());
      // The first and the last ones say most.
      for (std::size_t i = 0; i < of[b].size(); ++i) {
        if (i < most - most / 2 || of[b].size() - i <= most / 2) result_.uses.push_back(of[b][i]);
      }
      block.uses = static_cast<std::uint32_t>(result_.uses.size()) - block.first_use;
    }
  }

  void add_load() {
    swap::Load load(liveness_.operations);
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      load.add_life(problem_, liveness_, b, static_cast<std::int64_t>(problem_.blocks[b].bytes));
    }
    const std::vector<std::int64_t>& levels = load.levels();
    const auto peak = static_cast<std::size_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
    result_.peak_load = static_cast<std::uint64_t>(levels[peak]);
    result_.peak_at = problem_.operations[peak].time;
    const std::size_t together = (levels.size() + kMostLevels - 1) / kMostLevels;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const auto bytes = static_cast<std::uint64_t>(levels[i]);
      const double at = problem_.operations[i].time;
      std::vector<LoadLevel>& known = result_.load;
      if (i % together != 0 || (!known.empty() && known.back().at == at)) {
        known.back().bytes = std::max(known.back().bytes, bytes);
      } else if (known.empty() || known.back().bytes != bytes) {
        known.push_back({at, bytes});
      }
    }
    const std::uint64_t n = liveness_.operations;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      const swap::Lifetime& life = liveness_.of[b];
      if (problem_.blocks[b].persistent) {
        result_.at_peak.push_back(b);
        continue;
      }
      // Instances of earlier iterations may live there, too.
      for (std::uint64_t at = peak; at <= life.freed; at += n) {
        if (at >= life.start) result_.at_peak.push_back(b);
      }
    }
    std::stable_sort(result_.at_peak.begin(), result_.at_peak.end(), [this](std::uint32_t a, std::uint32_t b) {
      return problem_.blocks[a].bytes > problem_.blocks[b].bytes;
    });
  }

  const planner::IterationProblem& observed_;
  const swap::Problem& problem_;
  const RecordedProgram& program_;
  swap::Liveness liveness_;
  std::vector<std::uint32_t> step_of_;  // by rank
  ReportedIteration result_;
};

void add_plans(const swap::Problem& problem, const swap::Liveness& liveness, const ModelOptions& options,
               ReportModel& model) {
  SweepOptions sweep = options.sweep;
  if (!options.limit.empty()) sweep.limit = limit_of("--limit", options.limit, liveness.peak);
  if (sweep.seconds <= 0) {
    model.no_swaps = "no time was given for planning swaps (--time-budget 0)";
    return;
  }
  if (const auto reason = planner::why_not_swapped(problem)) {
    model.no_swaps = *reason;
    return;
  }
  Sweep swept = sweep_limits(problem, liveness, sweep);
  ReportedIteration& iteration = *model.iteration;
  iteration.least_limit = swept.least;
  iteration.left_out = swept.left_out;
  iteration.interrupted = swept.interrupted;
  const std::uint64_t layout = iteration.plans.front().point.footprint;
  for (SweepPoint& point : swept.points) {
    // Swaps that save nothing are none.
    if (point.limit == 0 && point.footprint >= layout) continue;
    iteration.plans.push_back({std::move(point), true, std::nullopt});
  }
  const auto is_with_swaps = [](const ReportedPlan& plan) { return plan.swaps && plan.point.feasible; };
  if (std::none_of(iteration.plans.begin(), iteration.plans.end(), is_with_swaps)) {
    model.no_swaps =
        swept.interrupted ? "interrupted before there was a plan" : "none that needs less was found in the time for it";
  }
  // That which was asked for is drawn first.
  std::size_t drawn = 0;
  for (const bool wanted : {true, false}) {
    for (ReportedPlan& plan : iteration.plans) {
      if (!plan.swaps || !plan.point.feasible || plan.point.wanted != wanted || drawn >= kMostDrawn) continue;
      DrawnPlan drawing = draw(problem, liveness, plan.point.decisions);
      if (drawing.blocks.size() > kMostDrawn - drawn && !wanted) continue;
      drawn += drawing.blocks.size();
      plan.drawn = std::move(drawing);
    }
  }
}

}  // namespace

ReportModel make_report(input::File& file, const ModelOptions& options) {
  const auto say = [&](const char* what) {
    if (options.sweep.progress) options.sweep.progress(what);
  };
  const std::optional<swap::Machine> machine = machine_of(options.machine);
  // Said before there is work.
  if (!options.limit.empty() && limit_of("--limit", options.limit, std::uint64_t{1} << 40) == 0) {
    throw std::invalid_argument("--limit: expected more than 0 bytes");
  }
  ReportModel model;
  say("looking for the iteration");
  model.planning = plan_file(file, {.iteration = true});
  planner::IterationProblem* const observed = model.planning.plan ? &*model.planning.plan->iteration : nullptr;
  say("reading the operations");
  model.program = read_program(file, observed, model.planning.plan ? model.planning.plan->found_at : 0);
  if (observed == nullptr) {
    model.no_iteration = model.planning.note.empty() ? "there is no operation" : model.planning.note;
    return model;
  }
  if (machine) observed->problem.machine = *machine;
  try {
    planner::join_launches(observed->ranks, observed->problem);
    IterationBuilder builder(*observed, model.program);
    model.iteration = builder.build();
    swap::Decisions layout{{}, observed->places};
    ReportedPlan first;
    first.swaps = false;
    first.point.feasible = true;
    first.point.decisions = layout;
    first.point.report = swap::verify(observed->problem, builder.liveness(), layout);
    // Which may be of a later iteration than that of the plan's figures, laid out as that one.
    first.point.footprint = first.point.report.footprint.value_or(0);
    if (first.point.report.fault) throw std::runtime_error("the layout does not hold: " + *first.point.report.fault);
    say("drawing the layout");
    first.drawn = draw(observed->problem, builder.liveness(), layout);
    model.iteration->plans.push_back(std::move(first));
    add_plans(observed->problem, builder.liveness(), options, model);
  } catch (const swap::Invalid& error) {
    // Threads that change their order from iteration to iteration can do that.
    model.iteration.reset();
    model.no_iteration = std::string("its blocks can't be drawn in one iteration: ") + error.what();
  }
  return model;
}

}  // namespace memopt::tools
