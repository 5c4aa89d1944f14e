// Internal to the room: plans within a limit that makes much wait, by ruin and recreate (Schrimpf, Schneider,
// Stamm-Wilbrandt and Dueck, J. Comput. Phys. 159, 2000). Some evictions of a covering (covering.h) are given up, what
// is too much then is covered anew by changed costs, and the whole is laid out and simulated. It is kept if it is
// better, or hardly worse (simulated annealing): above the limit by fewer bytes first, then by the time that it adds.
//
// Annealing (annealing.h) changes one eviction at a time and names each wait beforehand, which finds the last percents.
// From a covering of very many evictions, or of few large ones, it finds nothing better: there each needs the others.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/layout/problem/outcome.h"
#include "planner/layout/problem/problem.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/search/covering.h"
#include "planner/swap/search/incumbent.h"
#include "planner/swap/search/parallel_annealing.h"
#include "planner/swap/simulation/simulator.h"

namespace memopt::swap {

// Not thread-safe. What it is given must outlive it.
class RuinAndRecreate {
 public:
  using Ends = std::function<bool()>;

  // The problem has a limit. `layout`: for each layout at the beginning; `thorough`: where that is above the limit, and
  // need not be. A layout that has begun is not cancelled before it has found something better. What holds is offered
  // to the incumbent.
  RuinAndRecreate(const Problem& problem, const Liveness& liveness, const layout::Limits& layout,
                  const layout::Limits& thorough, std::uint64_t seed, Incumbent& incumbent);

  // A covering within the limit, whatever it costs; or the smallest that was found. False: there is none at all, or
  // `ends` said yes before there was one.
  bool begin(const Ends& ends = {});
  // For so much of the budget's time, from its beginning, and so many tries at most, each of some milliseconds. Above
  // the limit it begins with what it takes to come below it, which may be longer by a quarter, or three fifths of all
  // the budget's time, or half as many thorough layouts as there are tries, while they come nearer; then it has the
  // same again.
  void run(const Budget& budget, double part, std::uint64_t tries);

 private:
  struct Result {
    std::uint64_t above = ~std::uint64_t{0};  // bytes beyond the limit
    std::uint64_t bound = 0;                  // no layout is smaller
    double added_ns = 0;
    std::vector<Place> places;
  };

  double least_covered(double goal, const Ends& ends);
  // At this temperature, in nanoseconds of the time that is added.
  void attempt(double temperature);
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }  // in [0, 1)
  // Some of the evictions that are used, of all or of those that begin or end in one part of the iteration.
  void ruin();
  std::optional<Result> recreate();
  std::optional<Result> evaluate(const layout::Limits& limits, bool within);
  layout::Outcome lay_out(const layout::Problem& problem, layout::Limits limits);
  void use_none();
  void return_to_kept();

  const Problem& problem_;
  const Liveness& liveness_;
  const layout::Limits layout_, thorough_;
  Incumbent& incumbent_;
  const std::uint64_t limit_;
  Covering covering_;
  Simulator simulator_;
  std::mt19937_64 random_;
  std::uint64_t layouts_ = 0;  // from nothing
  double goal_ = 0;            // for loads; what lies between them and the limit is lost to layout
  double least_ = 0;           // of all loads that can be covered, as far as is known
  double highest_ = 0;         // load that is tried: as high as can be laid out in one try of a few
  std::vector<std::uint8_t> kept_;
  Result current_;
};

}  // namespace memopt::swap
