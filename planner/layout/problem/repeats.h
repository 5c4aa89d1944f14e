// Internal to planner/layout: a part of a problem that is the same again and again, as the steps of an epoch are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/layout/problem/problem.h"
#include "planner/layout/problem/sections.h"

namespace memopt::layout {

struct Repeat {
  std::vector<std::uint32_t> run;  // buffers by begin: number i and number i + `buffers` differ in time alone
  std::uint32_t buffers = 0;       // of one repetition
  std::uint32_t sections = 0;      // by which it lies behind the last one

  std::size_t times() const { return run.size() / buffers; }
};

// The longest one, where it has at least half of the buffers and comes three times or more; of those that are about as
// long the one with the shortest repetition. Where buffers are needed longer than that, several count as one. O(n),
// besides the sorting of buffers that begin together. Sees neither fixed buffers nor those with several intervals.
std::optional<Repeat> find_repeat(const Problem& problem, const Sections& sections);

// One repetition as a problem of its own, whose end is followed by its beginning.
struct Repetition {
  Problem problem;
  // Of the problem's buffers: of `run`, from 0 up; then those that are needed throughout and do not repeat.
  std::vector<std::uint32_t> numbers;
  std::size_t repeated = 0;  // so many of them repeat
};

// Without buffers that are needed longer than a repetition lasts: their next ones can't have the same place.
Repetition one_of(const Problem& problem, const Sections& sections, const Repeat& repeat);

// The places of all repetitions by those of one, and of what is needed throughout; kAnywhere for all others.
std::vector<std::uint64_t> places_in_all(const Problem& problem, const Repeat& repeat, const Repetition& one,
                                         std::span<const std::uint64_t> offsets);

// Before the first repetition and behind the last one there are often parts of some: others are given the place of the
// buffer of their size that begins at about the same point of a repetition, if there is one. These may conflict.
void guess_others(const Problem& problem, const Sections& sections, const Repeat& repeat, const Repetition& one,
                  std::span<const std::uint64_t> offsets, std::vector<std::uint64_t>& places);

}  // namespace memopt::layout
