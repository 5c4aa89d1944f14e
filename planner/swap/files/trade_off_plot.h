// What plans cost over what they need, as a drawing: added time over footprint, one line for each strategy, and the
// bound below which no plan lies (as figures 9 and 11 of Zhang et al., "Efficient Memory Management for GPU-based Deep
// Learning Systems", 2019).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memopt::swap {

struct TradeOff {
  std::uint64_t footprint = 0;  // bytes
  double added_ns = 0;          // to an iteration
};

struct TradeOffLine {
  std::string name;
  std::vector<TradeOff> points;  // in any order; may be empty
  bool bound = false;            // dashed
};

// An SVG document. Each point tells its numbers when pointed at; a line without points is named as such.
std::string draw_trade_offs(const std::string& title, const std::vector<TradeOffLine>& lines);

}  // namespace memopt::swap
