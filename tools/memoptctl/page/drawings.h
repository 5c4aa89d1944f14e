// What `--plot` draws: pages of a plan, of a layout, and of what plans cost over what they need.
//
// Each returns one HTML file that needs nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/layout/files/instance.h"
#include "planner/recompute/combined/extended.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "tools/memoptctl/page/shown_iteration.h"

namespace memopt::tools {

// Before there is work. Throws std::invalid_argument for a name that a page should not have, std::runtime_error where
// pages are not in this build or the file can't be written. An empty path is none.
void expect_plot(const std::string& path);

// What operations and blocks of a file that has no other names for them are called; `operations` gets the names.
// `extended`: of which the problem is, or null.
IterationLabels plain_labels(const swap::Problem& problem, const recompute::Extended* extended,
                             std::vector<std::string>& operations);

struct PlanDrawing {
  std::string title;  // what was planned
  std::string facts;  // of the plan, a line
  std::string times;  // where its times come from; may be empty
  std::string file;   // that was read
  bool swaps = true;  // it may have some
  bool of_file = false;
};

// The decisions must have places and hold (swap::verify). `extended`: as for plain_labels.
std::string plan_page(const PlanDrawing& drawing, const swap::Problem& problem, const swap::Decisions& decisions,
                      const recompute::Extended* extended = nullptr);

// A solution of a problem of buffers, in the file's own units. `lower_bound`: of any solution.
std::string layout_page(const std::string& file, const layout::Instance& instance, const layout::Solution& solution,
                        std::uint64_t lower_bound);

struct TradeOff {
  std::uint64_t bytes = 0;  // of a plan's footprint, or of the limit that it was made for
  double added_ns = 0;      // to an iteration; infinite: there is no plan, and the line has a gap here
};

struct TradeOffLine {
  std::string name;
  std::vector<TradeOff> points;  // in any order; may be empty
  bool bound = false;            // below which no plan is
};

// Added time over memory, a line for each strategy (as figures 9 and 11 of Zhang et al., "Efficient Memory Management
// for GPU-based Deep Learning Systems", 2019): milliseconds over MiB of footprints.
std::string trade_off_page(const std::string& file, const std::string& title, const std::vector<TradeOffLine>& lines);

// Likewise in percent: of `period_ns` over limits in percent of `peak` bytes; both are above 0. Some strategies add
// many times what others do: the drawing ends at twice the most that has to be added at any of the limits, by the best
// strategy there, and what is above is a mark at its upper edge.
std::string trade_off_parts_page(const std::string& file, const std::string& title,
                                 const std::vector<TradeOffLine>& lines, std::uint64_t peak, double period_ns);

}  // namespace memopt::tools
