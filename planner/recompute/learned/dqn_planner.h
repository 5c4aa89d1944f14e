// What is computed again, and swapped, as a deep Q-network chooses (choices.h): one that learns on the iteration itself
// for as long as it may, or one that has learned on generated ones, and is only asked.
//
// One thread; needs Eigen. The same seed and number of episodes give the same plan, unless time ends it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/learned/dqn.h"
#include "planner/recompute/model/graph.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

// Ends at whichever comes first.
struct Training {
  std::uint64_t episodes = ~std::uint64_t{0};
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
  const std::atomic<bool>* cancelled = nullptr;  // may be set by another thread
  std::uint64_t seed = 1;
};

struct Episode {
  double epsilon = 0;
  double worth = 0;                         // as in choices.h, not times 10, and without shaping
  std::optional<double> added_ns, best_ns;  // nothing: no plan; best of all until then
};

struct DqnPlan {
  std::optional<Combined> plan;  // the best of all episodes
  std::size_t decisions = 0;     // of an episode
  std::vector<Episode> episodes;
  std::size_t best_episode = 0;  // in which that was found first, from 1; 0: in none
  double training_s = 0;
};

// Random at first, then ever less: epsilon falls from 1 to 0.02 over 7 tenths of the episodes, or of the time. Each
// tenth episode is greedy. It ends with a plan that adds nothing.
DqnPlan dqn_plan(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t budget,
                 bool swaps, const Training& training);

// Learns on kGenerated iterations, each within those of 3 budgets in which dropping all that may be is a plan, for 6000
// episodes if no fewer are asked for.
class TransferredDqn {
 public:
  static constexpr std::uint64_t kGenerated = 30, kEpisodes = 6000;

  TransferredDqn(bool swaps, const Training& training);

  // One greedy episode; nothing is learned.
  DqnPlan plan(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
               std::uint64_t budget) const;

  // Of its training, on whichever iteration's turn it was; nothing is said of the best.
  const std::vector<Episode>& episodes() const { return episodes_; }
  // Mean worth of its greedy episodes on all of them, by the network that did best and is kept.
  double exam() const { return exam_; }
  double training_s() const { return training_s_; }

 private:
  bool swaps_;
  Dqn dqn_;
  std::vector<Episode> episodes_;
  double exam_ = 0, training_s_ = 0;
};

}  // namespace memopt::recompute
