#include "planner/swap/search/parallel_annealing.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

namespace memopt::swap {
namespace {

bool is_done(const Worth& worth) { return worth.above_goal == 0 && worth.added_ns == 0; }

}  // namespace

std::uint64_t Budget::attempts(double from, double to, bool placed) const {
  if (!(from < to)) return 0;
  if (attempts_ == kUnlimited) return kUnlimited;
  const double all = static_cast<double>(attempts_) * static_cast<double>(placed ? 1 : kUnplacedPerAttempt);
  return static_cast<std::uint64_t>(all * to) - static_cast<std::uint64_t>(all * from);
}

ParallelAnnealing::ParallelAnnealing(const Problem& problem, const Liveness& liveness,
                                     const EvictionCandidates& candidates, Evaluator::Places places, std::uint64_t seed,
                                     unsigned threads)
    : placed_(places == Evaluator::Places::kFirstFit) {
  for (unsigned t = 0; t < std::max(1U, threads); ++t) {
    annealers_.push_back(std::make_unique<Annealing>(problem, liveness, candidates, places, seed * 1000003 + t));
  }
}

void ParallelAnnealing::anneal(const Budget& budget, double from, double to, const Choice& start,
                               const Annealing::Schedule& schedule) {
  const double end = budget.seconds() * to;
  const std::uint64_t share = budget.attempts(from, to, placed_);
  const auto anneal = [&](Annealing& annealing) {
    const std::uint64_t before = annealing.attempts();
    const auto left = [&] {
      const std::uint64_t used = annealing.attempts() - before;
      return used < share ? share - used : 0;
    };
    do {
      const double begin = budget.elapsed();
      if (!(begin < end)) return;
      Annealing::Schedule next = schedule;
      next.attempts = std::min(left(), schedule.attempts);
      const std::uint64_t tried = annealing.attempts();
      annealing.run(start, next, [&] { return (budget.elapsed() - begin) / (end - begin); });
      if (annealing.attempts() == tried) return;  // there is nothing to try
    } while (left() > 0 && !is_done(annealing.worth()));
  };
  std::vector<std::exception_ptr> failures(annealers_.size());
  const auto work = [&](std::size_t t) {
    try {
      anneal(*annealers_[t]);
    } catch (...) {
      failures[t] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < annealers_.size(); ++t) {
    try {
      others.emplace_back(work, t);
    } catch (const std::system_error&) {
      break;  // fewer will do
    }
  }
  work(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  std::vector<Found> found;
  for (const auto& annealing : annealers_) {
    // One that had no time knows nothing.
    const bool tried = annealing->best().order.size() == start.order.size();
    found.push_back({tried ? annealing->best() : start, annealing->worth()});
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.worth < b.worth; });
  found_ = std::move(found);  // only now: `start` may be one of those that were found before
}

void ParallelAnnealing::forget_worths() {
  for (const auto& annealing : annealers_) annealing->forget();
}

std::uint64_t ParallelAnnealing::attempts() const {
  std::uint64_t sum = 0;
  for (const auto& annealing : annealers_) sum += annealing->attempts();
  return sum;
}

}  // namespace memopt::swap
