#include "planner/swap/search/annealing.h"

#include <algorithm>
#include <cmath>

namespace memopt::swap {
namespace {

// Parts of all moves; the rest shifts.
constexpr double kReorders = 0.5, kStackToggles = 0.15, kToggles = 0.1, kExchanges = 0.15;
constexpr int kLooksForExchange = 16;
constexpr double kDelayMoves = 0.15;  // where operations may wait
constexpr double kTop = 0.97;         // of the height: items that reach so far count as on top
constexpr std::uint32_t kLongestStack = 64;
constexpr std::uint64_t kAttemptsPerLook = 32;

}  // namespace

Annealing::Annealing(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                     Evaluator::Places places, std::uint64_t seed)
    : problem_(problem),
      liveness_(liveness),
      candidates_(candidates),
      evaluator_(problem, liveness, candidates, places),
      random_(seed) {}

Choice Annealing::start() const {
  Choice choice = nothing_evicted(candidates_);
  std::vector<double> key;
  for (std::uint32_t i = 0; i < candidates_.items.size(); ++i) {
    double length = 0;
    for (const PointInterval& one : evaluator_.residency(i).intervals)
      length += static_cast<double>(one.end - one.begin);
    key.push_back(length * std::sqrt(static_cast<double>(problem_.blocks[candidates_.items[i].block].bytes)));
  }
  std::stable_sort(choice.order.begin(), choice.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key[a] > key[b]; });
  return choice;
}

Worth Annealing::worth_of(const Choice& choice, std::uint64_t goal) const {
  Worth worth;
  worth.height = evaluator_.height();
  worth.above_goal = worth.height > goal ? worth.height - goal : 0;
  for (const Delay& delay : choice.delays) worth.added_ns += delay.ns;
  return worth;
}

std::uint32_t Annealing::top_item() {
  std::uint32_t chosen = 0, seen = 0;
  for (std::uint32_t i = 0; i < candidates_.items.size(); ++i) {
    const bool on_top = static_cast<double>(evaluator_.top(i)) > kTop * static_cast<double>(height_);
    if (on_top && number_below(++seen) == 0) chosen = i;
  }
  return chosen;
}

std::uint32_t Annealing::item_of_stack() {
  const std::uint32_t top = top_item();
  std::uint32_t length = 1;
  for (std::uint32_t i = top; evaluator_.below(i) != Evaluator::kGround && length < kLongestStack;
       i = evaluator_.below(i))
    ++length;
  std::uint32_t chosen = top;
  for (std::uint32_t k = number_below(length); k > 0; --k) chosen = evaluator_.below(chosen);
  return chosen;
}

// To an earlier place, most of the time one before what it stands on.
bool Annealing::reorder(Choice& choice) {
  const std::size_t count = choice.order.size();
  const std::uint32_t item = chance(0.8) ? item_of_stack() : number_below(count);
  const std::uint32_t below = evaluator_.below(item);
  const std::size_t from = evaluator_.rank(item);
  std::size_t to = 0;
  const double kind = fraction();
  if (kind < 0.5 && below != Evaluator::kGround && evaluator_.rank(below) < from) {
    to = kind < 0.25 ? evaluator_.rank(below) : number_below(evaluator_.rank(below) + 1);
  } else {
    to = number_below(kind < 0.75 ? from + 1 : count);
  }
  const auto begin = choice.order.begin();
  const auto at = [&](std::size_t k) { return begin + static_cast<std::ptrdiff_t>(k); };
  if (to < from) std::rotate(at(to), at(from), at(from + 1));
  if (to > from) std::rotate(at(from), at(from + 1), at(to + 1));
  return to != from;
}

bool Annealing::toggle_in_stack(Choice& choice) {
  const Item& item = candidates_.items[item_of_stack()];
  if (item.evictions == 0) return false;
  choice.evicted[item.first_eviction + number_below(item.evictions)] ^= 1;
  if (chance(0.3)) choice.evicted[number_below(choice.evicted.size())] ^= 1;
  return true;
}

void Annealing::toggle_any(Choice& choice) {
  choice.evicted[number_below(choice.evicted.size())] ^= 1;
  if (chance(0.3)) choice.evicted[number_below(choice.evicted.size())] ^= 1;
}

// One of those that are away. False: none was come across.
bool Annealing::pick_evicted(const Choice& choice, std::uint32_t* picked) {
  *picked = number_below(choice.evicted.size());
  for (int k = 0; k < 20 && choice.evicted[*picked] == 0; ++k) *picked = number_below(choice.evicted.size());
  return choice.evicted[*picked] != 0;
}

// By when the block is back, or freed.
std::uint64_t Annealing::end_of(const Eviction& eviction) const {
  return eviction.returns() ? eviction.needed : liveness_.of[candidates_.items[eviction.item].block].freed;
}

// One that is away stays, and one that stays at some of the time is away instead.
bool Annealing::exchange(Choice& choice) {
  std::uint32_t a = 0;
  if (!pick_evicted(choice, &a)) return false;
  const Eviction& one = candidates_.evictions[a];
  const std::uint64_t circle = liveness_.operations;
  const std::uint64_t length = end_of(one) - one.leaves;
  for (int k = 0; k < kLooksForExchange; ++k) {
    const std::uint32_t b = number_below(choice.evicted.size());
    if (choice.evicted[b] != 0) continue;
    const Eviction& other = candidates_.evictions[b];
    const std::uint64_t behind = (other.leaves % circle + circle - one.leaves % circle) % circle;
    const std::uint64_t before = (circle - behind) % circle;
    if (behind >= length && before >= end_of(other) - other.leaves) continue;
    choice.evicted[a] = 0;
    choice.evicted[b] = 1;
    return true;
  }
  return false;
}

// Issues a copy out later, so that others go before it, or again at once.
bool Annealing::shift(Choice& choice) {
  std::uint32_t a = 0;
  if (!pick_evicted(choice, &a)) return false;
  const Eviction& eviction = candidates_.evictions[a];
  std::uint64_t to = eviction.leaves;
  if (chance(0.5)) {
    const std::uint64_t end = end_of(eviction);
    const Clock& clock = evaluator_.clock();
    const double left = clock.end(eviction.leaves);
    const double part = 0.5 * fraction() * fraction();
    to = clock.last_ended(left + part * (clock.begin(end) - left), eviction.leaves, end);
  }
  if (choice.out_after[a] == to) return false;
  choice.out_after[a] = to;
  return true;
}

// Delays what is about to take bytes, or an access to what comes back; or changes a delay.
bool Annealing::change_delay(Choice& choice) {
  auto& delays = choice.delays;
  const double kind = fraction();
  const auto add = [&](std::uint64_t operation, double ns) {
    operation %= liveness_.operations;
    const auto same =
        std::find_if(delays.begin(), delays.end(), [&](const Delay& one) { return one.operation == operation; });
    if (same != delays.end()) {
      same->ns += ns;
    } else {
      delays.push_back({operation, ns});
    }
  };
  if (!choice.evicted.empty() && chance(0.2)) {
    // Time for an eviction that is too short.
    const std::uint32_t a = number_below(choice.evicted.size());
    const Eviction& eviction = candidates_.evictions[a];
    if (choice.evicted[a] != 0 || eviction.short_ns <= 0) return false;
    choice.evicted[a] = 1;
    add(end_of(eviction), eviction.short_ns * (1 + 0.3 * fraction()) + 1);
  } else if (!delays.empty() && kind < 0.7) {
    Delay& one = delays[number_below(delays.size())];
    if (kind < 0.2 || one.ns < 1) {
      one = delays.back();
      delays.pop_back();
    } else if (kind < 0.5) {
      one.ns *= 2 * fraction();
    } else {
      one.ns *= 0.7;
    }
  } else {
    std::uint64_t operation = 0;
    if (!choice.evicted.empty() && chance(0.33)) {
      const Eviction& eviction = candidates_.evictions[number_below(choice.evicted.size())];
      operation = eviction.returns() ? eviction.needed : eviction.leaves;
    } else {
      const std::uint32_t item = chance(0.5) ? item_of_stack() : number_below(candidates_.items.size());
      const std::uint32_t block = candidates_.items[item].block;
      if (problem_.blocks[block].persistent) return false;
      operation = liveness_.of[block].start;
    }
    add(operation, problem_.period * 0.3 * std::pow(0.0005, fraction()));
  }
  std::sort(delays.begin(), delays.end(), [](const Delay& a, const Delay& b) { return a.operation < b.operation; });
  return true;
}

bool Annealing::change(Choice& choice, bool delays) {
  if (delays && chance(kDelayMoves)) return change_delay(choice);
  if (!evaluator_.placed() && choice.evicted.empty()) return false;
  // Where nothing is placed, the order does not matter.
  const double kind = evaluator_.placed() ? fraction() : kReorders + (1 - kReorders) * fraction();
  if (kind < kReorders || choice.evicted.empty()) return reorder(choice);
  if (kind < kReorders + kStackToggles) return toggle_in_stack(choice);
  if (kind >= kReorders + kStackToggles + kToggles + kExchanges) return shift(choice);
  if (kind >= kReorders + kStackToggles + kToggles) return exchange(choice);
  toggle_any(choice);
  return true;
}

void Annealing::run(const Choice& from, const Schedule& schedule, const Elapsed& elapsed) {
  Evaluator::Prices prices;
  if (schedule.delays) {
    prices.goal = static_cast<double>(schedule.goal);
    prices.above_goal = 4;
    // What the engines could copy in a nanosecond.
    prices.delay = schedule.delay_price * std::min(problem_.machine.out_bytes_per_ns, problem_.machine.in_bytes_per_ns);
  }
  evaluator_.set(prices);
  now_ = from;
  double cost = evaluator_.attempt(now_, Evaluator::kInfinite);
  if (cost == Evaluator::kInfinite) return;
  evaluator_.keep();
  height_ = evaluator_.height();
  if (const Worth worth = worth_of(now_, schedule.goal); worth < worth_) {
    worth_ = worth;
    best_ = now_;
  }
  if (candidates_.items.empty()) return;
  double part = 0, temperature = schedule.hot;
  for (std::uint64_t done = 0; done < schedule.attempts; ++done) {
    if (worth_.above_goal == 0 && worth_.added_ns == 0) return;
    if (done % kAttemptsPerLook == 0) {
      part = std::max(elapsed(), static_cast<double>(done) / static_cast<double>(schedule.attempts));
      if (part >= 1) return;
      temperature = schedule.hot * std::pow(schedule.cold / schedule.hot, part);
    }
    ++attempts_;  // also of moves that change nothing: there may be no others
    trial_ = now_;
    if (!change(trial_, schedule.delays)) continue;
    const double most = cost - temperature * std::log(1 - fraction());
    const double its = evaluator_.attempt(trial_, most);
    if (its > most) continue;
    evaluator_.keep();
    cost = its;
    height_ = evaluator_.height();
    std::swap(now_, trial_);
    if (const Worth worth = worth_of(now_, schedule.goal); worth < worth_) {
      worth_ = worth;
      best_ = now_;
    }
  }
}

}  // namespace memopt::swap
