// Places for the lives of a plan that was made by load alone: what is dropped, replayed and swapped is given, and where
// all lies is offline dynamic storage allocation (planner/layout), a buffer for each life. What is swapped is aligned
// to chunks and returns to where it was; another life of the same block may lie elsewhere.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/layout/problem/limits.h"
#include "planner/recompute/combined/combine.h"
#include "planner/recompute/combined/extended.h"
#include "planner/recompute/model/graph.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

// The iteration with its steps as a problem with places, of so many bytes. No swap returns elsewhere.
Extended extend_with_layout(const swap::Problem& problem, const Graph& graph, const Steps& steps, std::uint64_t limit);

// For each layout of one plan.
struct LayoutEffort {
  layout::Limits brief;   // at first
  layout::Limits longer;  // where it is a little that is missing, or operations wait for their bytes
};

struct LaidOut {
  std::optional<Combined> plan;  // within the limit; nothing: no layout was found that is
  bool as_fast = false;          // it takes no longer than by load
  std::uint64_t footprint = 0;  // where it is not as fast: of the lowest layout by which it would be; 0: none was found
};

// `plan` must hold by load; its places, if it has any, are not looked at. With swaps it is laid out as the simulator
// has it by load, so that it waits no longer; where that is not within the limit, as its operations have it, and it may
// wait for bytes of one place, though others are free. Deterministic where the effort has no times. Thread-safe.
LaidOut lay_out(const swap::Problem& problem, const Graph& graph, const Combined& plan, std::uint64_t limit,
                const LayoutEffort& effort);

}  // namespace memopt::recompute
