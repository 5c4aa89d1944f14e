#include "planner/recompute/learned/dqn_planner.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/recompute/learned/choices.h"
#include "planner/recompute/learned/generated.h"

namespace memopt::recompute {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastEpsilon = 0.02, kExploring = 0.7;  // part of all, until it is that low
constexpr std::size_t kGreedy = 10;                       // each of so many episodes
constexpr double kBudgets[] = {0.4, 0.6, 0.8};            // of the peak load, of generated iterations
constexpr std::size_t kExam = 100;                        // each of so many episodes, what was learned is tried

class Course {
 public:
  explicit Course(const Training& training) : training_(training) {}

  bool is_stopped() const {
    return (training_.cancelled != nullptr && training_.cancelled->load(std::memory_order_relaxed)) ||
           (timed() && Clock::now() - begin_ >= training_.time);
  }
  bool is_over(std::size_t episodes) const { return episodes >= training_.episodes || is_stopped(); }

  double epsilon(std::size_t episodes) const {
    if (episodes % kGreedy == kGreedy - 1) return 0;
    double part = static_cast<double>(episodes) / static_cast<double>(training_.episodes);
    if (timed()) part = std::max(part, seconds() / std::chrono::duration<double>(training_.time).count());
    return std::max(kLeastEpsilon, 1 - (1 - kLeastEpsilon) * part / kExploring);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  bool timed() const { return training_.time != std::chrono::nanoseconds::max(); }

  const Training& training_;
  const Clock::time_point begin_ = Clock::now();
};

DqnOptions options_of(const Training& training) {
  DqnOptions options;
  options.seed = training.seed;
  return options;
}

// Where nothing is to be decided on, or nothing has to be.
bool decide_nothing(ChoiceEnvironment& environment, const swap::Liveness& liveness, std::uint64_t budget,
                    DqnPlan& result) {
  result.decisions = environment.candidates().size();
  if (result.decisions > 0 && liveness.peak > budget) return false;
  result.decisions = 0;
  result.plan = environment.plan_of({}, budget);
  return true;
}

DqnPlan with_load(DqnPlan result, const swap::Problem& problem, const Graph& graph, std::uint64_t budget) {
  if (result.plan) find_load(problem, graph, budget, *result.plan);
  return result;
}

}  // namespace

DqnPlan dqn_plan(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t budget,
                 bool swaps, const Training& training) {
  const Course course(training);
  ChoiceEnvironment environment(problem, liveness, graph, budget, swaps, [&] { return course.is_stopped(); });
  DqnPlan result;
  if (decide_nothing(environment, liveness, budget, result))
    return with_load(std::move(result), problem, graph, budget);
  Dqn dqn(environment.features(), environment.actions(), options_of(training));
  const auto is_best = [&] { return environment.best() && environment.best()->added_ns() <= 0; };
  while (!course.is_over(result.episodes.size()) && !is_best()) {
    Episode episode;
    episode.epsilon = course.epsilon(result.episodes.size());
    dqn.explore(environment, episode.epsilon);
    episode.worth = environment.worth();
    episode.added_ns = environment.added_ns();
    if (environment.best()) episode.best_ns = environment.best()->added_ns();
    result.episodes.push_back(episode);
    if (environment.is_best()) result.best_episode = result.episodes.size();
  }
  result.plan = environment.best();
  result.training_s = course.seconds();
  return with_load(std::move(result), problem, graph, budget);
}

TransferredDqn::TransferredDqn(bool swaps, const Training& training)
    : swaps_(swaps), dqn_(ChoiceEnvironment::kFeatures, kChoices, options_of(training)) {
  struct Lesson {
    explicit Lesson(std::uint64_t seed)
        : problem(generated_iteration(seed)),
          liveness(swap::find_liveness(problem)),
          graph(make_graph(problem, liveness)) {}

    const swap::Problem problem;
    const swap::Liveness liveness;
    const Graph graph;
  };
  Training whole = training;
  whole.episodes = std::min(training.episodes, kEpisodes);
  const Course course(whole);
  std::vector<std::unique_ptr<Lesson>> lessons;
  std::vector<std::unique_ptr<ChoiceEnvironment>> within;
  for (std::uint64_t k = 0; k < kGenerated; ++k) {
    lessons.push_back(std::make_unique<Lesson>(training.seed * kGenerated + k));
    const Lesson& one = *lessons.back();
    for (const double part : kBudgets) {
      const auto budget = static_cast<std::uint64_t>(part * static_cast<double>(one.liveness.peak));
      auto environment = std::make_unique<ChoiceEnvironment>(one.problem, one.liveness, one.graph, budget, swaps,
                                                             [&course] { return course.is_stopped(); });
      // Where nothing helps there is nothing to learn.
      if (environment->can_drop_all()) within.push_back(std::move(environment));
    }
  }
  if (within.empty()) return;
  Dqn learner = dqn_;
  bool has_passed = false;
  // What is learned last is not the best: the network that did best on all of them is kept.
  const auto examine = [&] {
    double sum = 0;
    for (const auto& one : within) {
      learner.exploit(*one);
      sum += one->worth();
    }
    const double mean = sum / static_cast<double>(within.size());
    if (has_passed && mean <= exam_) return;
    dqn_ = learner;
    exam_ = mean;
    has_passed = true;
  };
  while (!course.is_over(episodes_.size())) {
    const std::size_t k = episodes_.size();
    ChoiceEnvironment& environment = *within[k % within.size()];
    Episode episode;
    episode.epsilon = course.epsilon(k);
    learner.explore(environment, episode.epsilon);
    episode.worth = environment.worth();
    episode.added_ns = environment.added_ns();
    episodes_.push_back(episode);
    if (episodes_.size() % kExam == 0) examine();
  }
  if (episodes_.size() % kExam != 0) examine();
  training_s_ = course.seconds();
}

DqnPlan TransferredDqn::plan(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                             std::uint64_t budget) const {
  ChoiceEnvironment environment(problem, liveness, graph, budget, swaps_);
  DqnPlan result;
  if (!decide_nothing(environment, liveness, budget, result)) {
    dqn_.exploit(environment);
    result.plan = environment.best();
  }
  return with_load(std::move(result), problem, graph, budget);
}

}  // namespace memopt::recompute
