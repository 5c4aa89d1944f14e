// Planning as a task in episodes: block by block, in order of birth, whether it is kept, may be computed again, or is
// swapped; at the end, what that comes to.
//
// After "GPU Memory Management for Deep Neural Networks Using Deep Q-Network" (submitted to ICLR 2020, withdrawn;
// openreview BJxg7eHYvB). Known of it are its abstract and a summary; its text was not at hand. The paper's: a deep
// Q-network decides which variables are swapped or computed again; it acts epsilon-greedily and learns from a replay
// memory; an episode's reward is minus the waits and the time of what is computed again. The paper also tells its
// network six features of each node, gathered over four hops of the graph: that is not here. Our own: the order of the
// decisions, features that are numbers of one block and of the choices so far (ChoiceEnvironment::observe) without an
// embedding of the graph, what becomes of a choice, the penalty where it is no plan, and the shaping of the rewards.
//
// What becomes of a choice: what is swapped leaves the device once, for the longest time between two uses, copies one
// after the other as the engines allow; blocks that persist, or live on into the next iteration, stay. Beside them
// memory of the budget's size (memory.h) drops what may be dropped, of that what is used next the latest, and what the
// program does not use any more. Nothing else is ever dropped. All is judged by find_cost and, with swaps,
// swap::verify: what the network believes decides nothing.
//
// The reward: at the end -a / (p + a), where a is the time that is added to the period p; or -1 - e, where it is no
// plan, and would need e budgets more (the least of a few that are tried). Before, the change of a potential (Ng,
// Harada and Russell, ICML 1999, by which the best policy stays the same): minus the excess of the estimated load, in
// budgets, and minus the estimated time, in periods. All of them times 10.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/combined/hidden_swaps.h"
#include "planner/recompute/learned/dqn.h"
#include "planner/recompute/model/graph.h"
#include "planner/recompute/online/family.h"
#include "planner/recompute/search/foresight.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

enum class Choice : std::uint8_t { kKeep, kRecompute, kSwap };
inline constexpr std::uint32_t kChoices = 3;

// Between two launches that touch a block: operations [from, to), none of which does.
struct Gap {
  std::uint32_t from = 0, to = 0;
  double ns = 0;  // 0: there is none
};

// A block that is decided on.
struct Candidate {
  std::uint32_t block = 0;
  Gap dropped, swapped;  // the longest in which it may be
  double make_ns = 0;    // of all of its makers; 0 if it can't be dropped
};

// Of those that can be away, the most bytes by longest gap first, so many that they are this part of all, but not more
// than `most`; by birth.
std::vector<Candidate> find_candidates(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                       bool swaps, double part, std::size_t most);

// The problem, its liveness and graph must outlive it. One thread each.
class ChoiceEnvironment : public Environment {
 public:
  static constexpr std::size_t kFeatures = 22;
  static constexpr std::size_t kMostCandidates = 160;

  // Swaps are a choice where `swaps` says so. Within `budget` bytes. `ends`: asked while it judges; what is judged from
  // then on is no plan.
  ChoiceEnvironment(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                    std::uint64_t budget, bool swaps, std::function<bool()> ends = {});

  std::size_t features() const override { return kFeatures; }
  std::uint32_t actions() const override { return kChoices; }
  void begin() override;
  bool is_over() const override { return choices_.size() == candidates_.size(); }
  void observe(std::span<double> features) const override;
  std::uint32_t legal() const override;
  double act(std::uint32_t action) override;

  const std::vector<Candidate>& candidates() const { return candidates_; }
  // Whether it is a plan to drop whatever may be.
  bool can_drop_all() const { return can_drop_all_; }
  // What choices for all candidates come to; nothing: no plan.
  std::optional<Combined> plan_of(std::span<const Choice> choices, std::uint64_t budget);

  // Of the last episode, when it is over: what it was worth, without shaping; and what it adds; nothing: no plan.
  double worth() const { return worth_; }
  std::optional<double> added_ns() const { return added_ns_; }
  // Of all episodes; whether the last one was the first with it.
  const std::optional<Combined>& best() const { return best_; }
  bool is_best() const { return is_best_; }

 private:
  class Chosen;
  struct Outcome {
    double reward = 0;
    std::optional<double> added_ns;
  };

  double potential() const;
  double judged();
  double least_excess(std::span<const Choice> choices);
  double load_in(const Gap& gap) const;
  double peak() const;
  HiddenSwaps copies_of(std::span<const Choice> choices) const;
  double copy_wait_ns(const Candidate& one) const;

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t budget_;
  const bool swaps_;
  const std::function<bool()> ends_;
  const Foreseen foreseen_;
  std::vector<Candidate> candidates_;
  // Estimated load, between the ends of gaps: operation at which each part begins, and its highest load.
  std::vector<std::uint32_t> part_begin_;
  std::vector<double> part_load_;
  double all_bytes_ = 0;  // of all candidates
  bool can_drop_all_ = false;

  std::vector<Choice> choices_;  // of this episode
  std::vector<double> load_;     // by part, with the choices
  mutable Away away_;            // what may be dropped; asking keeps notes
  double estimated_ns_ = 0;
  double out_free_ns_ = 0, out_busy_ns_ = 0, in_busy_ns_ = 0;
  double rest_bytes_ = 0;  // of the candidates ahead
  std::uint32_t dropped_ = 0, swapped_ = 0;
  std::unordered_map<std::string, Outcome> known_;  // by all choices of an episode
  double worth_ = 0;
  std::optional<double> added_ns_;
  std::optional<Combined> best_;
  bool is_best_ = false;
};

}  // namespace memopt::recompute
