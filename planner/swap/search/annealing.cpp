#include "planner/swap/search/annealing.h"

#include <algorithm>
#include <cmath>

namespace memopt::swap {
namespace {

constexpr double kReorders = 0.5, kStackToggles = 0.2, kToggles = 0.2;  // parts of all moves; the rest shifts
constexpr double kDelayMoves = 0.15;                                    // where operations may wait
constexpr double kTop = 0.97;  // of the height: items that reach so far count as on top
constexpr std::uint32_t kLongestStack = 64;
constexpr std::uint64_t kAttemptsPerLook = 32;

}  // namespace

Annealing::Annealing(const Problem& problem, const Lives& lives, const Candidates& candidates, Fitting::Places places,
                     std::uint64_t seed)
    : problem_(problem),
      lives_(lives),
      candidates_(candidates),
      fitting_(problem, lives, candidates, places),
      random_(seed) {}

Choice Annealing::start() const {
  Choice choice = nothing_away(candidates_);
  std::vector<double> key;
  for (std::uint32_t i = 0; i < candidates_.items.size(); ++i) {
    double length = 0;
    for (const Stretch& one : fitting_.stay(i).when) length += static_cast<double>(one.end - one.begin);
    key.push_back(length * std::sqrt(static_cast<double>(problem_.blocks[candidates_.items[i].block].bytes)));
  }
  std::stable_sort(choice.order.begin(), choice.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key[a] > key[b]; });
  return choice;
}

Worth Annealing::worth_of(const Choice& choice, std::uint64_t goal) const {
  Worth worth;
  worth.height = fitting_.height();
  worth.above_goal = worth.height > goal ? worth.height - goal : 0;
  for (const Delay& delay : choice.delays) worth.added_ns += delay.ns;
  return worth;
}

std::uint32_t Annealing::top_item() {
  std::uint32_t chosen = 0, seen = 0;
  for (std::uint32_t i = 0; i < candidates_.items.size(); ++i) {
    const bool on_top = static_cast<double>(fitting_.top(i)) > kTop * static_cast<double>(height_);
    if (on_top && number_below(++seen) == 0) chosen = i;
  }
  return chosen;
}

std::uint32_t Annealing::item_of_stack() {
  const std::uint32_t top = top_item();
  std::uint32_t length = 1;
  for (std::uint32_t i = top; fitting_.below(i) != Fitting::kGround && length < kLongestStack; i = fitting_.below(i))
    ++length;
  std::uint32_t chosen = top;
  for (std::uint32_t k = number_below(length); k > 0; --k) chosen = fitting_.below(chosen);
  return chosen;
}

// To an earlier place, most of the time one before what it stands on.
bool Annealing::reorder(Choice& choice) {
  const std::size_t count = choice.order.size();
  const std::uint32_t item = chance(0.8) ? item_of_stack() : number_below(count);
  const std::uint32_t below = fitting_.below(item);
  const std::size_t from = fitting_.rank(item);
  std::size_t to = 0;
  const double kind = fraction();
  if (kind < 0.5 && below != Fitting::kGround && fitting_.rank(below) < from) {
    to = kind < 0.25 ? fitting_.rank(below) : number_below(fitting_.rank(below) + 1);
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
  if (item.absences == 0) return false;
  choice.away[item.first_absence + number_below(item.absences)] ^= 1;
  if (chance(0.3)) choice.away[number_below(choice.away.size())] ^= 1;
  return true;
}

void Annealing::toggle_any(Choice& choice) {
  choice.away[number_below(choice.away.size())] ^= 1;
  if (chance(0.3)) choice.away[number_below(choice.away.size())] ^= 1;
}

// Issues a copy out later, so that others go before it, or again at once.
bool Annealing::shift(Choice& choice) {
  std::uint32_t a = number_below(choice.away.size());
  for (int k = 0; k < 20 && choice.away[a] == 0; ++k) a = number_below(choice.away.size());
  if (choice.away[a] == 0) return false;
  const Absence& absence = candidates_.absences[a];
  std::uint64_t to = absence.leaves;
  if (chance(0.5)) {
    const std::uint64_t end =
        absence.returns() ? absence.needed : lives_.of[candidates_.items[absence.item].block].freed;
    const Clock& clock = fitting_.clock();
    const double left = clock.end(absence.leaves);
    const double part = 0.5 * fraction() * fraction();
    to = clock.last_ended(left + part * (clock.begin(end) - left), absence.leaves, end);
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
    operation %= lives_.operations;
    const auto same =
        std::find_if(delays.begin(), delays.end(), [&](const Delay& one) { return one.operation == operation; });
    if (same != delays.end()) {
      same->ns += ns;
    } else {
      delays.push_back({operation, ns});
    }
  };
  if (!choice.away.empty() && chance(0.2)) {
    // Time for an absence that is too short.
    const std::uint32_t a = number_below(choice.away.size());
    const Absence& absence = candidates_.absences[a];
    if (choice.away[a] != 0 || absence.short_ns <= 0) return false;
    choice.away[a] = 1;
    const std::uint64_t end =
        absence.returns() ? absence.needed : lives_.of[candidates_.items[absence.item].block].freed;
    add(end, absence.short_ns * (1 + 0.3 * fraction()) + 1);
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
    if (!choice.away.empty() && chance(0.33)) {
      const Absence& absence = candidates_.absences[number_below(choice.away.size())];
      operation = absence.returns() ? absence.needed : absence.leaves;
    } else {
      const std::uint32_t item = chance(0.5) ? item_of_stack() : number_below(candidates_.items.size());
      const std::uint32_t block = candidates_.items[item].block;
      if (problem_.blocks[block].persistent) return false;
      operation = lives_.of[block].start;
    }
    add(operation, problem_.period * 0.3 * std::pow(0.0005, fraction()));
  }
  std::sort(delays.begin(), delays.end(), [](const Delay& a, const Delay& b) { return a.operation < b.operation; });
  return true;
}

bool Annealing::change(Choice& choice, bool delays) {
  if (delays && chance(kDelayMoves)) return change_delay(choice);
  if (!fitting_.placed() && choice.away.empty()) return false;
  // Where nothing is placed, the order does not matter.
  const double kind = fitting_.placed() ? fraction() : kReorders + (1 - kReorders) * fraction();
  if (kind < kReorders || choice.away.empty()) return reorder(choice);
  if (kind < kReorders + kStackToggles) return toggle_in_stack(choice);
  if (kind >= kReorders + kStackToggles + kToggles) return shift(choice);
  toggle_any(choice);
  return true;
}

void Annealing::run(const Choice& from, const Course& course, const Elapsed& elapsed) {
  Fitting::Prices prices;
  if (course.delays) {
    prices.goal = static_cast<double>(course.goal);
    prices.above_goal = 4;
    // What the engines could copy in a nanosecond.
    prices.delay = course.delay_price * std::min(problem_.machine.out_bytes_per_ns, problem_.machine.in_bytes_per_ns);
  }
  fitting_.set(prices);
  now_ = from;
  double cost = fitting_.attempt(now_, Fitting::kInfinite);
  if (cost == Fitting::kInfinite) return;
  fitting_.keep();
  height_ = fitting_.height();
  if (const Worth worth = worth_of(now_, course.goal); worth < worth_) {
    worth_ = worth;
    best_ = now_;
  }
  if (candidates_.items.empty()) return;
  double part = 0, temperature = course.hot;
  for (std::uint64_t done = 0; done < course.attempts; ++done) {
    if (worth_.above_goal == 0 && worth_.added_ns == 0) return;
    if (done % kAttemptsPerLook == 0) {
      part = std::max(elapsed(), static_cast<double>(done) / static_cast<double>(course.attempts));
      if (part >= 1) return;
      temperature = course.hot * std::pow(course.cold / course.hot, part);
    }
    ++attempts_;  // also of moves that change nothing: there may be no others
    trial_ = now_;
    if (!change(trial_, course.delays)) continue;
    const double most = cost - temperature * std::log(1 - fraction());
    const double its = fitting_.attempt(trial_, most);
    if (its > most) continue;
    fitting_.keep();
    cost = its;
    height_ = fitting_.height();
    std::swap(now_, trial_);
    if (const Worth worth = worth_of(now_, course.goal); worth < worth_) {
      worth_ = worth;
      best_ = now_;
    }
  }
}

}  // namespace memopt::swap
