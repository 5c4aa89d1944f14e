// A plan as a drawing: one steady iteration across, offsets up, and what the copy engines do below.
#pragma once

#include <string>

#include "planner/swap/model/model.h"

namespace memopt::swap {

// An SVG document: a rectangle for each residency interval of a block, its copies in and out in colours of their own,
// with the id, size and times told when pointed at; lines for the footprint and for a limit near it; lanes for both
// engines and for waits. Where places are used in turn it is one iteration of several. Deterministic.
//
// The problem must have a layout and verify() must find no fault in the decisions.
std::string draw_plan(const Problem& problem, const Decisions& decisions);

}  // namespace memopt::swap
