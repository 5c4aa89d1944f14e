#include "tools/memoptctl/recompute/learned_strategy.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#if MEMOPT_HAS_DQN
#include "planner/recompute/learned/dqn_planner.h"
#endif
#include "tools/memoptctl/common/interruption.h"

namespace memopt::tools {

std::string name_of(Learned strategy) { return strategy == Learned::kDqn ? "dqn" : "dqn:transfer"; }

std::optional<Learned> learned_strategy(const std::string& name) {
  for (const Learned one : {Learned::kDqn, Learned::kTransfer}) {
    if (name != name_of(one)) continue;
    if (!MEMOPT_HAS_DQN) throw std::runtime_error(name + " is not in this build: Eigen (libeigen3-dev) was not there");
    return one;
  }
  return std::nullopt;
}

#if MEMOPT_HAS_DQN

namespace {

constexpr double kSeconds = 30;  // of dqn, where the options have none

}  // namespace

struct LearnedPlanner::State {
  const SwapPlanOptions& options;
  std::optional<recompute::TransferredDqn> transferred = {};
  recompute::DqnPlan last = {};
  bool has_learned = false;  // on the iteration

  recompute::Training training() const {
    recompute::Training training;
    training.cancelled = &end_at_interrupt();
    training.seed = options.seed;
    if (options.episodes != 0) training.episodes = options.episodes;
    return training;
  }
};

LearnedPlanner::LearnedPlanner(const SwapPlanOptions& options) : state_(new State{options}) {}
LearnedPlanner::~LearnedPlanner() = default;

std::optional<recompute::Combined> LearnedPlanner::plan(Learned strategy, const swap::Problem& problem,
                                                        const swap::Liveness& liveness, const recompute::Graph& graph,
                                                        std::uint64_t limit, double part) {
  const SwapPlanOptions& options = state_->options;
  recompute::Training training = state_->training();
  state_->has_learned = strategy == Learned::kDqn;
  if (strategy == Learned::kTransfer) {
    if (!state_->transferred) state_->transferred.emplace(options.swap, training);
    state_->last = state_->transferred->plan(problem, liveness, graph, limit);
  } else {
    // With a number of episodes, and no time, time does not count.
    if (options.episodes != 0) {
      training.episodes = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(options.episodes)));
    }
    if (options.has("--time-budget") || options.episodes == 0) {
      training.time = std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(part * (options.has("--time-budget") ? options.seconds : kSeconds)));
    }
    state_->last = recompute::dqn_plan(problem, liveness, graph, limit, options.swap, training);
  }
  return std::move(state_->last.plan);
}

std::vector<std::pair<std::string, std::string>> LearnedPlanner::rows() const {
  const recompute::DqnPlan& last = state_->last;
  const auto decisions = fmt::format("{} an episode", last.decisions);
  if (!state_->has_learned) {
    return {{"training",
             fmt::format("{} episodes on {} generated iterations in {:.2f} s", state_->transferred->episodes().size(),
                         recompute::TransferredDqn::kGenerated, state_->transferred->training_s())},
            {"decisions", decisions}};
  }
  std::string training = fmt::format("{} episodes in {:.2f} s", last.episodes.size(), last.training_s);
  if (last.best_episode != 0) {
    training += fmt::format("; the best in episode {}, epsilon {:.2f}", last.best_episode,
                            last.episodes[last.best_episode - 1].epsilon);
  }
  return {{"training", training}, {"decisions", decisions}};
}

std::string LearnedPlanner::training_curve() const {
  std::string text = "episode,epsilon,return,added_ns,best_added_ns\n";
  const auto ns = [](const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : ""; };
  std::size_t number = 0;
  for (const recompute::Episode& one : state_->has_learned ? state_->last.episodes : state_->transferred->episodes()) {
    text +=
        fmt::format("{},{:.4f},{:.6f},{},{}\n", ++number, one.epsilon, one.worth, ns(one.added_ns), ns(one.best_ns));
  }
  return text;
}

#else

// Never asked for: learned_strategy() throws before.
struct LearnedPlanner::State {};

LearnedPlanner::LearnedPlanner(const SwapPlanOptions& /*options*/) {}
LearnedPlanner::~LearnedPlanner() = default;
std::optional<recompute::Combined> LearnedPlanner::plan(Learned, const swap::Problem&, const swap::Liveness&,
                                                        const recompute::Graph&, std::uint64_t, double) {
  return std::nullopt;
}
std::vector<std::pair<std::string, std::string>> LearnedPlanner::rows() const { return {}; }
std::string LearnedPlanner::training_curve() const { return {}; }

#endif

}  // namespace memopt::tools
