// AutoSwap: which blocks to swap, as published (Zhang et al., "Efficient Memory Management for GPU-based Deep Learning
// Systems", 2019, section IV). Candidates are gaps of at least 1 MiB between two accesses that lie across the peak of
// the load; they are taken in order of a score until the rest fits into the limit; copies go first in, first out, each
// copy in as late as it can without being late.
//
// Different from the paper, because a running program can't do otherwise: a block that comes back takes its bytes when
// its copy begins, not when it ends; no copy in is issued before its bytes are given up; blocks have places.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "planner/layout/problem/limits.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

enum class Score {
  kDoa,    // duration of absence: the gap less both copies
  kAoa,    // area of absence: DOA times size (divided by it where negative)
  kWdoa,   // weighted duration: the area under the load curve over the gap
  kSwdoa,  // submodular weighted duration: the same, the load being updated after each choice
};

inline constexpr std::array kScores = {Score::kDoa, Score::kAoa, Score::kWdoa, Score::kSwdoa};

std::string_view name_of(Score score);

struct Gap {
  std::uint32_t block = 0;
  std::uint64_t out_after = 0;  // the access before
  std::uint64_t need = 0;       // the access behind

  friend bool operator==(const Gap&, const Gap&) = default;
};

// The candidates, best first. O(c n) for c candidates, SWDOA O(c^2 n).
std::vector<Gap> rank_candidates(const Problem& problem, const Liveness& liveness, Score score);

// All scores of all candidates. Those of SWDOA depend on what was chosen before: it is the value at which it was
// chosen.
struct Scored {
  std::vector<Gap> gaps;
  std::array<std::vector<double>, kScores.size()> scores;  // of each gap, by score
};

Scored score_candidates(const Problem& problem, const Liveness& liveness);  // as long as ranking by each

// The candidates by the weighted sum of their standardised scores (mean 0, variance 1; 0 where all are the same), best
// first. O(c log c).
using Weights = std::array<double, kScores.size()>;
std::vector<Gap> rank(const Scored& scored, const Weights& weights);

struct AutoSwapPlan {
  bool feasible = false;        // within problem.limit
  Decisions decisions;          // legal and placed; where infeasible, the smallest that was found
  std::uint64_t footprint = 0;  // of the decisions; without layout, the least limit under which they hold
  std::size_t candidates = 0, chosen = 0;
};

// With as few candidates as the limit of the problem allows; without a limit, with as many as give the least footprint
// at no more than 0.1 % added time. `limits` are for each of the layouts that are tried. O(c) layouts.
AutoSwapPlan auto_swap(const Problem& problem, const Liveness& liveness, Score score, const layout::Limits& limits);

// The same for candidates in any order.
AutoSwapPlan auto_swap(const Problem& problem, const Liveness& liveness, std::vector<Gap> ranked,
                       const layout::Limits& limits);

// The first candidates of a ranking as swaps, each copy in issued so that it ends in time, first in, first out.
std::vector<Swap> schedule(const Problem& problem, const Liveness& liveness, std::span<const Gap> gaps);

}  // namespace memopt::swap
