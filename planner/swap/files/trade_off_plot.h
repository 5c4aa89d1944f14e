// What plans cost over what they need, as a drawing: added time over memory, one line for each strategy, and the bound
// below which no plan lies (as figures 9 and 11 of Zhang et al., "Efficient Memory Management for GPU-based Deep
// Learning Systems", 2019).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memopt::swap {

struct TradeOff {
  std::uint64_t bytes = 0;  // of a plan's footprint, or of the limit that it was made for
  double added_ns = 0;      // to an iteration; infinite: there is no plan, and the line has a gap here
};

struct TradeOffLine {
  std::string name;
  std::vector<TradeOff> points;  // in any order; may be empty
  bool bound = false;            // dashed
};

// An SVG document: milliseconds over MiB of footprints. Each point tells its numbers when pointed at; a line without
// points is named as such.
std::string draw_trade_offs(const std::string& title, const std::vector<TradeOffLine>& lines);

// Likewise in percent: of `period_ns` over limits in percent of `peak` bytes; both are above 0. Some strategies add
// many times what others do: the drawing ends at twice the most that has to be added at any of the limits, by the best
// strategy there, and what is above is a mark at its upper edge.
std::string draw_trade_off_parts(const std::string& title, const std::vector<TradeOffLine>& lines, std::uint64_t peak,
                                 double period_ns);

}  // namespace memopt::swap
