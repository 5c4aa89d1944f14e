// A recording's summary, for people and for programs.
#pragma once

#include <string>

#include "planner/json/tree.h"
#include "planner/recording/info.h"
#include "planner/recording/summary.h"
#include "tools/memoptctl/recording/show_iteration.h"
#include "tools/memoptctl/symbols/symbols.h"

namespace memopt::tools {

struct Shown {
  planner::RecordingInfo info;
  planner::Summary summary;
  IterationSearch iteration;
  Symbols* symbols = nullptr;  // of summary.modules
  std::size_t stacks = 5;      // largest blocks to be shown
};

std::string to_text(const Shown& shown);
nlohmann::json to_json(const Shown& shown);

}  // namespace memopt::tools
