// Deep Q-learning: Mnih et al., "Human-level control through deep reinforcement learning" (Nature 518, 2015), algorithm
// 1. From there: the replay memory of which batches are drawn uniformly, the second network that targets come from and
// that is set to the first now and then, epsilon-greedy behaviour, a clipped error. The next action of a target is
// chosen by the first network and valued by the second (double Q-learning: van Hasselt, Guez and Silver, AAAI 2016).
// Targets may add up the rewards of several steps (as in Rainbow: Hessel et al., AAAI 2018).
// Our own choice: Adam instead of RMSProp; and actions that are not legal in a state, which are never taken nor valued.
//
// One thread, and the same numbers for the same seed. Needs Eigen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "planner/recompute/learned/network.h"

namespace memopt::recompute {

// A task in episodes.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual std::size_t features() const = 0;
  virtual std::uint32_t actions() const = 0;  // at most 32

  virtual void begin() = 0;  // an episode
  virtual bool is_over() const = 0;
  // Of the state that it is in, which is not over: by feature; and a bit for each action that is legal, at least one.
  virtual void observe(std::span<double> features) const = 0;
  virtual std::uint32_t legal() const = 0;
  virtual double act(std::uint32_t action) = 0;  // the reward
};

struct DqnOptions {
  std::vector<std::size_t> hidden = {64, 64};
  std::size_t memory = 20000;  // transitions
  std::size_t batch = 32;
  std::size_t first = 500;         // transitions before it learns
  std::size_t learn_every = 2;     // transitions
  std::size_t update_every = 500;  // batches, after which the second network is set to the first
  double rate = 3e-4;
  std::size_t steps = 4;  // whose rewards a target adds up, before what the network says of the rest
  double discount = 1;    // episodes end
  std::uint64_t seed = 1;
};

class Dqn {
 public:
  // Throws std::invalid_argument for options that are 0 and may not be, and for a replay memory that is smaller than a
  // batch, or than what it begins with.
  Dqn(std::size_t features, std::uint32_t actions, const DqnOptions& options);

  // One episode: a random action with this probability, else the one of the highest value; learns from it, and from
  // those before. The sum of all rewards.
  double explore(Environment& environment, double epsilon);
  // One episode of the actions of the highest value. Learns nothing.
  double exploit(Environment& environment) const;

  std::uint32_t best_action(std::span<const double> features, std::uint32_t legal) const;
  const Network& network() const { return network_; }

 private:
  struct Transition {
    std::uint32_t action = 0;
    double reward = 0;
    double discount = 1;           // of what comes then
    std::uint32_t next_legal = 0;  // 0: nothing comes then
  };

  void remember(std::span<const double> state, const Transition& transition, std::span<const double> next);
  void learn();

  DqnOptions options_;
  Network network_, target_;
  Adam adam_;
  std::mt19937_64 random_;
  // A ring: once it is full, what came first is overwritten.
  std::vector<Transition> transitions_;
  std::vector<double> states_, nexts_;
  std::uint64_t seen_ = 0, batches_ = 0;
  std::vector<double> gradient_;
};

}  // namespace memopt::recompute
