// A solution as a drawing: time across, offset up.
#pragma once

#include <string>

#include "planner/layout/files/instance.h"

namespace memopt::layout {

// An SVG document. Each buffer's colour is its own in all its intervals; fixed ones are grey; the dashed line is the
// lower bound. Up to some thousand buffers each has a tooltip with its id, size and times; beyond that all of a
// colour are one path (about 25 bytes a buffer). Coordinates are rounded to a tenth of a pixel.
std::string draw_svg(const Instance& instance, const Solution& solution, std::uint64_t lower_bound);

}  // namespace memopt::layout
