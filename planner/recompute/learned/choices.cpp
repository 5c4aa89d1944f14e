#include "planner/recompute/learned/choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "planner/recompute/combined/extended.h"
#include "planner/recompute/online/memory.h"
#include "planner/swap/model/load.h"

namespace memopt::recompute {
namespace {

constexpr double kScale = 10;  // of rewards
constexpr int kHalves = 4;     // in which the least budget for choices is looked for
// Of what all candidates are worth, those that are decided on: the least of these with which there is a plan.
constexpr double kParts[] = {0.95, 0.98, 1};
// Choices whose outcomes are remembered.
constexpr std::size_t kMostKnown = 100000;

double time_at(const swap::Problem& problem, std::uint64_t operation) {
  return operation < problem.operations.size() ? problem.operations[operation].time : problem.period;
}

// From 0 to 1, half at 1.
double squashed(double value) { return value / (1 + std::abs(value)); }

}  // namespace

std::vector<Candidate> find_candidates(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                       bool swaps, double part, std::size_t most) {
  std::vector<std::pair<double, Candidate>> all;  // worth
  std::vector<std::uint32_t> uses;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    const swap::Block& block = problem.blocks[b];
    if (block.pinned || block.persistent || block.bytes == 0 || swap::lives_on(problem, liveness, b)) continue;
    const bool can_be_made = graph.lasts(b);
    if (!can_be_made && !swaps) continue;
    uses.clear();
    for (const swap::Access& access : liveness.accesses_of(b)) {
      const std::uint32_t l = graph.launch_at[access.position];
      if (uses.empty() || uses.back() != l) uses.push_back(l);
    }
    Candidate one;
    one.block = b;
    for (std::size_t k = 1; k < uses.size(); ++k) {
      Gap gap{graph.launches[uses[k - 1]].end, graph.launches[uses[k]].first, 0};
      gap.ns = time_at(problem, gap.to) - time_at(problem, gap.from);
      if (can_be_made && uses[k - 1] >= graph.makers[b].back() && gap.ns > one.dropped.ns) one.dropped = gap;
      if (swaps && gap.ns > one.swapped.ns) one.swapped = gap;
    }
    const double longest = std::max(one.dropped.ns, one.swapped.ns);
    if (longest <= 0) continue;
    if (one.dropped.ns > 0) one.make_ns = graph.make_ns(b);
    all.emplace_back(longest * static_cast<double>(block.bytes), one);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  // Until they are so much of what all are worth.
  double rest = 0;
  for (const auto& [worth, one] : all) rest += part * worth;
  std::size_t count = 0;
  while (count < all.size() && rest > 0) rest -= all[count++].first;
  all.resize(std::min(count, most));
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return liveness.of[a.second.block].born < liveness.of[b.second.block].born;
  });
  std::vector<Candidate> candidates;
  for (const auto& [worth, one] : all) candidates.push_back(one);
  return candidates;
}

// What may be dropped leaves by the time of its next use, the latest first; all else only once it is not used any more.
class ChoiceEnvironment::Chosen : public Policy {
 public:
  Chosen(const ChoiceEnvironment& of, std::span<const Choice> choices)
      : foreseen_(of.foreseen_), next_(foreseen_.first_use), chosen_(next_.size()) {
    for (std::size_t k = 0; k < choices.size(); ++k)
      chosen_[of.candidates_[k].block] = choices[k] == Choice::kRecompute ? 1 : 0;
  }

  bool may_leave(std::uint32_t block, std::uint32_t operation) override {
    return chosen_[block] != 0 || next_use(block, operation) == kNone;
  }
  double value(std::uint32_t block, double /*now*/, std::uint32_t operation) override {
    const std::uint32_t next = next_use(block, operation);
    return next == kNone ? 0 : 1 / (1.0 + next - operation);
  }
  double at_least(std::uint32_t block, double now, std::uint32_t operation) override {
    return value(block, now, operation);
  }
  void dropped(std::uint32_t /*block*/) override {}
  void made(std::uint32_t /*block*/) override {}
  void used(std::uint32_t /*block*/, double /*now*/) override {}

 private:
  std::uint32_t next_use(std::uint32_t block, std::uint32_t operation) {
    std::uint32_t& next = next_[block];
    const std::uint32_t end = foreseen_.first_use[block + 1];
    while (next < end && foreseen_.uses[next] < operation) ++next;
    return next < end ? foreseen_.uses[next] : kNone;
  }

  const Foreseen& foreseen_;
  std::vector<std::uint32_t> next_;  // by block: into uses
  std::vector<std::uint8_t> chosen_;
};

ChoiceEnvironment::ChoiceEnvironment(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                     std::uint64_t budget, bool swaps, std::function<bool()> ends)
    : problem_(problem),
      liveness_(liveness),
      graph_(graph),
      budget_(budget),
      swaps_(swaps),
      ends_(std::move(ends)),
      foreseen_(problem, liveness, graph),
      away_(foreseen_.family) {
  for (const double part : kParts) {
    const std::size_t before = candidates_.size();
    candidates_ = find_candidates(problem, liveness, graph, swaps, part, kMostCandidates);
    if (candidates_.size() == before) continue;
    std::vector<Choice> all;
    for (const Candidate& one : candidates_) all.push_back(one.dropped.ns > 0 ? Choice::kRecompute : Choice::kKeep);
    can_drop_all_ = plan_of(all, budget).has_value();
    if (can_drop_all_) break;
  }
  part_begin_.push_back(0);
  for (const Candidate& one : candidates_) {
    for (const Gap& gap : {one.dropped, one.swapped}) {
      if (gap.ns > 0) part_begin_.insert(part_begin_.end(), {gap.from, gap.to});
    }
    all_bytes_ += static_cast<double>(problem.blocks[one.block].bytes);
  }
  std::sort(part_begin_.begin(), part_begin_.end());
  part_begin_.erase(std::unique(part_begin_.begin(), part_begin_.end()), part_begin_.end());
  swap::Load load = swap::live_load(problem, liveness);
  const std::vector<std::int64_t>& levels = load.levels();
  for (std::size_t k = 0; k < part_begin_.size(); ++k) {
    const std::size_t end = k + 1 < part_begin_.size() ? part_begin_[k + 1] : levels.size();
    part_load_.push_back(static_cast<double>(
        *std::max_element(levels.begin() + part_begin_[k], levels.begin() + static_cast<std::ptrdiff_t>(end))));
  }
  begin();
}

void ChoiceEnvironment::begin() {
  choices_.clear();
  load_ = part_load_;
  away_.clear();
  estimated_ns_ = out_free_ns_ = out_busy_ns_ = in_busy_ns_ = 0;
  rest_bytes_ = all_bytes_;
  dropped_ = swapped_ = 0;
  added_ns_.reset();
  is_best_ = false;
}

std::uint32_t ChoiceEnvironment::legal() const {
  const Candidate& one = candidates_[choices_.size()];
  return 1U << static_cast<unsigned>(Choice::kKeep) |
         (one.dropped.ns > 0 ? 1U << static_cast<unsigned>(Choice::kRecompute) : 0) |
         (one.swapped.ns > 0 ? 1U << static_cast<unsigned>(Choice::kSwap) : 0);
}

double ChoiceEnvironment::peak() const { return *std::max_element(load_.begin(), load_.end()); }

double ChoiceEnvironment::load_in(const Gap& gap) const {
  if (gap.ns <= 0) return 0;
  const auto begin = std::lower_bound(part_begin_.begin(), part_begin_.end(), gap.from) - part_begin_.begin();
  const auto end = std::lower_bound(part_begin_.begin(), part_begin_.end(), gap.to) - part_begin_.begin();
  return *std::max_element(load_.begin() + begin, load_.begin() + end);
}

// Of the copies, as far as both are not done in its gap.
double ChoiceEnvironment::copy_wait_ns(const Candidate& one) const {
  const std::uint64_t bytes = problem_.blocks[one.block].bytes;
  const double out = std::max(out_free_ns_, time_at(problem_, one.swapped.from)) + problem_.machine.out_ns(bytes);
  return std::max(0.0, out + problem_.machine.in_ns(bytes) - time_at(problem_, one.swapped.to));
}

void ChoiceEnvironment::observe(std::span<double> features) const {
  const Candidate& one = candidates_[choices_.size()];
  const auto budget = static_cast<double>(std::max<std::uint64_t>(1, budget_));
  const auto all = static_cast<double>(liveness_.peak);
  const double period = std::max(1.0, problem_.period);
  const std::uint64_t size = problem_.blocks[one.block].bytes;
  const auto bytes = static_cast<double>(size);
  const swap::Lifetime& life = liveness_.of[one.block];
  const double copies_ns =
      swaps_ ? problem_.machine.out_ns(size) + problem_.machine.in_ns(size) : std::numeric_limits<double>::infinity();
  const auto count = static_cast<double>(candidates_.size());
  const double above = peak() / budget - 1;
  const double ancestors_ns = one.make_ns > 0 ? away_.ancestors_ns(one.block) : 0;
  const double mean_bytes = all_bytes_ / count;
  std::size_t at = 0;
  const auto add = [&](double feature) { features[at++] = feature; };
  // The block.
  add(10 * bytes / all);
  add(squashed(bytes / mean_bytes));
  add((time_at(problem_, life.freed) - time_at(problem_, life.born)) / period);
  add(one.dropped.ns / period);
  add(one.swapped.ns / period);
  add(time_at(problem_, life.born) / period);
  add(one.make_ns > 0 ? 1 : 0);
  add(squashed(one.make_ns / period * all / bytes));  // a byte
  add(squashed(100 * one.make_ns / period));
  add(squashed(100 * ancestors_ns / period));
  add(squashed((one.make_ns + ancestors_ns) / period * all / bytes));
  // Copies, and what the engines have done so far.
  add(swaps_ && one.swapped.ns > 0 ? 1 : 0);
  add(swaps_ && one.swapped.ns > 0 ? squashed(copies_ns / one.swapped.ns) : 1);
  add(swaps_ && one.swapped.ns > 0 ? squashed(100 * copy_wait_ns(one) / period) : 1);
  add(std::min(2.0, std::max(out_busy_ns_, in_busy_ns_) / period));
  // The load.
  add(std::clamp(above, -1.0, 2.0));
  add(std::clamp(load_in(one.dropped.ns > 0 ? one.dropped : one.swapped) / budget - 1, -1.0, 2.0));
  add(all / budget - 1);
  // How much of what is ahead has to go.
  add(std::clamp(above * budget / std::max(1.0, rest_bytes_), -1.0, 2.0));
  // What was chosen.
  add(static_cast<double>(choices_.size()) / count);
  add(dropped_ / count);
  add(swapped_ / count);
}

double ChoiceEnvironment::potential() const {
  const auto budget = static_cast<double>(std::max<std::uint64_t>(1, budget_));
  return -std::max(0.0, peak() / budget - 1) - estimated_ns_ / std::max(1.0, problem_.period);
}

double ChoiceEnvironment::act(std::uint32_t action) {
  const double before = potential();
  const Candidate& one = candidates_[choices_.size()];
  const auto choice = static_cast<Choice>(action);
  const std::uint64_t bytes = problem_.blocks[one.block].bytes;
  const Gap& gap = choice == Choice::kRecompute ? one.dropped : one.swapped;
  if (choice == Choice::kRecompute) {
    // Where there is room all along, it stays.
    if (load_in(gap) > static_cast<double>(budget_)) estimated_ns_ += one.make_ns + away_.ancestors_ns(one.block);
    away_.set(one.block, true);
    ++dropped_;
  } else if (choice == Choice::kSwap) {
    estimated_ns_ += copy_wait_ns(one);
    out_free_ns_ = std::max(out_free_ns_, time_at(problem_, gap.from)) + problem_.machine.out_ns(bytes);
    out_busy_ns_ += problem_.machine.out_ns(bytes);
    in_busy_ns_ += problem_.machine.in_ns(bytes);
    ++swapped_;
  }
  if (choice != Choice::kKeep) {
    for (std::size_t k = 0; k < part_begin_.size(); ++k) {
      if (gap.from <= part_begin_[k] && part_begin_[k] < gap.to) load_[k] -= static_cast<double>(bytes);
    }
  }
  rest_bytes_ -= static_cast<double>(bytes);
  choices_.push_back(choice);
  return kScale * (is_over() ? judged() - before : potential() - before);
}

double ChoiceEnvironment::judged() {
  std::string key(choices_.size(), '\0');
  std::transform(choices_.begin(), choices_.end(), key.begin(), [](Choice one) { return static_cast<char>(one); });
  if (const auto found = known_.find(key); found != known_.end()) {
    added_ns_ = found->second.added_ns;
    return worth_ = found->second.reward;
  }
  Outcome outcome;
  if (auto plan = plan_of(choices_, budget_)) {
    outcome.added_ns = added_ns_ = plan->added_ns();
    outcome.reward = -*added_ns_ / std::max(1.0, problem_.period + *added_ns_);
    is_best_ = !best_ || *added_ns_ < best_->added_ns();
    if (is_best_) best_ = std::move(plan);
  } else {
    outcome.reward = -1 - least_excess(choices_);
  }
  if (known_.size() < kMostKnown) known_.emplace(std::move(key), outcome);
  return worth_ = outcome.reward;
}

// As a part of the budget, to a 16th of what there may be.
double ChoiceEnvironment::least_excess(std::span<const Choice> choices) {
  std::uint64_t too_low = budget_, enough = std::max(budget_, liveness_.peak);
  for (int k = 0; k < kHalves; ++k) {
    const std::uint64_t half = too_low + (enough - too_low) / 2;
    (plan_of(choices, half) ? enough : too_low) = half;
  }
  return static_cast<double>(enough - budget_) / static_cast<double>(std::max<std::uint64_t>(1, budget_));
}

// When copies out end if each begins as soon as it may, and when copies in begin if each ends just in time, one after
// the other: in between the bytes are away. Where that is no time the choice is to wait: they are away in the gap.
HiddenSwaps ChoiceEnvironment::copies_of(std::span<const Choice> choices) const {
  struct Copy {
    Gap gap;
    std::uint32_t block = 0;
    double out_end = 0, in_begin = 0;
  };
  std::vector<Copy> copies;
  for (std::size_t k = 0; k < choices.size(); ++k) {
    if (choices[k] == Choice::kSwap) copies.push_back({candidates_[k].swapped, candidates_[k].block});
  }
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.gap.to > b.gap.to; });
  double free = problem_.period;
  for (Copy& one : copies) {
    free = one.in_begin =
        std::min(free, time_at(problem_, one.gap.to)) - problem_.machine.in_ns(problem_.blocks[one.block].bytes);
  }
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.gap.from < b.gap.from; });
  free = 0;
  HiddenSwaps hidden;
  const auto& operations = problem_.operations;
  const auto by_time = [](double time, const swap::Operation& one) { return time < one.time; };
  for (Copy& one : copies) {
    free = one.out_end =
        std::max(free, time_at(problem_, one.gap.from)) + problem_.machine.out_ns(problem_.blocks[one.block].bytes);
    // The first operation behind the copy out, and the last before the copy in; none within a launch.
    auto from = static_cast<std::uint32_t>(
        std::lower_bound(operations.begin(), operations.end(), one.out_end,
                         [](const swap::Operation& a, double time) { return a.time < time; }) -
        operations.begin());
    while (from < operations.size() && graph_.launch_begin(from) != from) ++from;
    const auto behind = std::upper_bound(operations.begin(), operations.end(), one.in_begin, by_time);
    std::uint32_t to = behind == operations.begin()
                           ? 0
                           : graph_.launch_begin(static_cast<std::uint64_t>(behind - operations.begin() - 1));
    from = std::max(from, one.gap.from);
    to = std::min(to, one.gap.to);
    if (from >= to) {
      from = one.gap.from;
      to = one.gap.to;
    }
    swap::Swap swap;
    swap.block = one.block;
    swap.out_after = one.gap.from - 1;
    swap.in_after = to - 1;
    swap.need = one.gap.to;
    hidden.swaps.push_back(swap);
    hidden.absences.push_back({one.block, from, to});
  }
  return hidden;
}

std::optional<Combined> ChoiceEnvironment::plan_of(std::span<const Choice> choices, std::uint64_t budget) {
  const HiddenSwaps hidden = copies_of(choices);
  Chosen policy(*this, choices);
  std::vector<EarlyReturn> early;
  auto steps = run_online(problem_, liveness_, graph_, budget, hidden.absences, policy,
                          kMostIterations * problem_.period, ends_, early);
  if (!steps) return std::nullopt;
  if (!hidden.swaps.empty()) {
    Extended extended = extend(problem_, graph_, *steps);
    extended.problem.limit = budget;
    const swap::Liveness liveness = swap::find_liveness(extended.problem);
    const Cost cost = find_cost(problem_, liveness_, graph_, *steps);
    if (cost.fault) return std::nullopt;
    const auto judged = [&](CopiesIn copies) {
      return judge(*steps, cost, extended, liveness, place_swaps(hidden, extended, liveness, early, copies));
    };
    auto plan = judged(CopiesIn::kInTime);
    if (plan && plan->waits_ns == 0) return plan;
    // Where there is no time for both copies, copies in may be early, and take what others need.
    auto late = judged(CopiesIn::kAtTheEnd);
    return plan && (!late || plan->waits_ns <= late->waits_ns) ? std::move(plan) : std::move(late);
  }
  Combined plan;
  plan.cost = find_cost(problem_, liveness_, graph_, *steps);
  if (plan.cost.fault || plan.cost.peak > budget) return std::nullopt;
  plan.steps = std::move(*steps);
  return plan;
}

}  // namespace memopt::recompute
