// A plan small enough to follow by hand: two blocks of 100 bytes, copies of 10 bytes a nanosecond, operations of 10 ns.
#pragma once

#include "planner/swap/model/model.h"

namespace memopt::swap::testing {

struct Plan {
  Problem problem;
  Decisions decisions;
};

// Block 0 lives from operation 0 to 9, block 1 from 3 to 6, side by side; nothing is swapped.
inline Plan two_blocks() {
  Plan plan;
  plan.problem.blocks = {{.id = 0, .bytes = 100}, {.id = 1, .bytes = 100}};
  using enum Kind;
  plan.problem.operations = {{kMalloc, 0, 0}, {kWrite, 0, 10}, {kNothing, kNoBlock, 20}, {kMalloc, 1, 30},
                             {kWrite, 1, 40}, {kRead, 1, 50},  {kFree, 1, 60},           {kNothing, kNoBlock, 70},
                             {kRead, 0, 80},  {kFree, 0, 90}};
  plan.problem.period = 100;
  plan.problem.machine = {10, 10, 0, 0};
  plan.problem.chunk = 1;
  plan.decisions.places = {{{0}, true}, {{100}, false}};
  return plan;
}

// Both on the same bytes: block 0 is away while block 1 lives.
inline Plan one_place() {
  Plan plan = two_blocks();
  plan.decisions.places[1].offsets = {0};
  plan.decisions.swaps = {{.block = 0, .out_after = 1, .in_after = 6, .need = 8}};
  return plan;
}

// The same, but block 0 returns 100 bytes higher: its one chunk is mapped there, and back until it is allocated again.
inline Plan returns_elsewhere(double remap_ns) {
  Plan plan = one_place();
  plan.problem.machine.remap_ns = remap_ns;
  plan.problem.chunk = 100;
  plan.decisions.swaps[0].returns_to = {100};
  return plan;
}

// The same without places: bytes are interchangeable. The copy out ends at 45, and block 1 comes at 30.
inline Plan load_only(std::uint64_t limit) {
  Plan plan = one_place();
  plan.problem.layout = false;
  plan.problem.limit = limit;
  plan.problem.machine.out_bytes_per_ns = 4;
  plan.decisions.places.clear();
  return plan;
}

}  // namespace memopt::swap::testing
