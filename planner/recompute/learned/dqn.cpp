#include "planner/recompute/learned/dqn.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

namespace memopt::recompute {
namespace {

std::vector<std::size_t> widths_of(std::size_t features, std::uint32_t actions, std::vector<std::size_t> hidden) {
  hidden.insert(hidden.begin(), features);
  hidden.push_back(actions);
  return hidden;
}

const DqnOptions& checked(const DqnOptions& options) {
  const std::pair<const char*, std::size_t> sizes[] = {{"batch", options.batch},
                                                       {"learn_every", options.learn_every},
                                                       {"update_every", options.update_every},
                                                       {"steps", options.steps}};
  for (const auto& [name, size] : sizes) {
    if (size == 0) throw std::invalid_argument(std::string("DqnOptions::") + name + ": expected more than 0");
  }
  if (options.memory < std::max(options.batch, options.first))
    throw std::invalid_argument("DqnOptions::memory: expected room for a batch, and for the first transitions");
  return options;
}

std::uint32_t best_of(std::span<const double> values, std::uint32_t legal) {
  auto best = static_cast<std::uint32_t>(std::countr_zero(legal));
  for (std::uint32_t a = best + 1; a < values.size(); ++a) {
    if ((legal >> a & 1) != 0 && values[a] > values[best]) best = a;
  }
  return best;
}

}  // namespace

Dqn::Dqn(std::size_t features, std::uint32_t actions, const DqnOptions& options)
    : options_(checked(options)),
      network_(widths_of(features, actions, options.hidden), options.seed),
      target_(network_),
      adam_(network_.parameters().size(), options.rate),
      random_(options.seed + 1) {}

std::uint32_t Dqn::best_action(std::span<const double> features, std::uint32_t legal) const {
  return best_of(network_.values(features), legal);
}

double Dqn::explore(Environment& environment, double epsilon) {
  std::vector<double> states, state(network_.inputs());  // of the episode, one after the other
  std::vector<std::uint32_t> actions;
  std::vector<double> rewards;
  // The one at `begin`, by the rewards up to `end`.
  const auto remember_from = [&](std::size_t begin, std::size_t end, std::uint32_t legal) {
    Transition transition;
    transition.action = actions[begin];
    for (std::size_t k = end; k-- > begin;) {
      transition.reward = rewards[k] + options_.discount * transition.reward;
      transition.discount *= options_.discount;
    }
    transition.next_legal = legal;
    remember(std::span(states).subspan(begin * state.size(), state.size()), transition, state);
  };
  double sum = 0;
  for (environment.begin(); !environment.is_over();) {
    environment.observe(state);
    const std::uint32_t legal = environment.legal();
    if (actions.size() >= options_.steps) remember_from(actions.size() - options_.steps, actions.size(), legal);
    std::uint32_t action = 0;
    if (static_cast<double>(random_() >> 11) * 0x1p-53 < epsilon) {
      auto left = random_() % static_cast<std::uint64_t>(std::popcount(legal));
      std::uint32_t rest = legal;
      for (; left > 0; --left) rest &= rest - 1;
      action = static_cast<std::uint32_t>(std::countr_zero(rest));
    } else {
      action = best_action(state, legal);
    }
    states.insert(states.end(), state.begin(), state.end());
    actions.push_back(action);
    rewards.push_back(environment.act(action));
    sum += rewards.back();
    if (seen_ >= options_.first && actions.size() % options_.learn_every == 0) learn();
  }
  for (std::size_t k = actions.size() - std::min(actions.size(), options_.steps); k < actions.size(); ++k)
    remember_from(k, actions.size(), 0);
  return sum;
}

double Dqn::exploit(Environment& environment) const {
  std::vector<double> state(network_.inputs());
  double sum = 0;
  for (environment.begin(); !environment.is_over();) {
    environment.observe(state);
    sum += environment.act(best_action(state, environment.legal()));
  }
  return sum;
}

void Dqn::remember(std::span<const double> state, const Transition& transition, std::span<const double> next) {
  const std::size_t place = seen_++ % options_.memory;
  if (place == transitions_.size()) {
    transitions_.push_back(transition);
    states_.insert(states_.end(), state.begin(), state.end());
    nexts_.insert(nexts_.end(), next.begin(), next.end());
    return;
  }
  transitions_[place] = transition;
  std::copy(state.begin(), state.end(), states_.begin() + static_cast<std::ptrdiff_t>(place * state.size()));
  std::copy(next.begin(), next.end(), nexts_.begin() + static_cast<std::ptrdiff_t>(place * next.size()));
}

void Dqn::learn() {
  const std::size_t features = network_.inputs(), actions = network_.outputs();
  std::vector<std::size_t> drawn;
  std::vector<double> states, nexts;
  for (std::size_t k = 0; k < options_.batch; ++k) {
    drawn.push_back(random_() % transitions_.size());
    const auto at = static_cast<std::ptrdiff_t>(drawn.back() * features),
               end = at + static_cast<std::ptrdiff_t>(features);
    states.insert(states.end(), states_.begin() + at, states_.begin() + end);
    nexts.insert(nexts.end(), nexts_.begin() + at, nexts_.begin() + end);
  }
  const std::vector<double> chosen = network_.values(nexts), valued = target_.values(nexts);
  std::vector<Network::Target> targets;
  for (std::size_t k = 0; k < drawn.size(); ++k) {
    const Transition& one = transitions_[drawn[k]];
    double value = one.reward;
    if (one.next_legal != 0) {
      const std::size_t row = k * actions;
      value += one.discount * valued[row + best_of(std::span(chosen).subspan(row, actions), one.next_legal)];
    }
    targets.push_back({one.action, value});
  }
  network_.loss(states, targets, gradient_);
  adam_.step(network_.parameters(), gradient_);
  if (++batches_ % options_.update_every == 0) target_ = network_;
}

}  // namespace memopt::recompute
