// Random problems that are small enough for exhaustive.h, and large enough for every strategy: blocks of whole MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

#include "planner/swap/model/model.h"

namespace memopt::swap::testing {

// How many a test should look at: MEMOPT_RANDOM_PROBLEMS where it is set, else the usual number, or a quarter of it
// with a sanitizer.
int problems_wanted(int usual);

class TinyProblems {
 public:
  // Seeds of another row where MEMOPT_RANDOM_SEED is set.
  explicit TinyProblems(std::uint64_t seed);

  // At most 4 blocks and 10 operations; two blocks at least, some of which persist or cross the boundary of the
  // iteration. No more choices of swaps than `most_candidates`. Without layout, the limit is one that all blocks meet.
  Problem next(bool layout, std::size_t most_candidates);

 private:
  Problem draw(bool layout);
  void draw_any(Problem& problem);
  void draw_nested(Problem& problem);
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  std::mt19937_64 random_;
};

}  // namespace memopt::swap::testing
