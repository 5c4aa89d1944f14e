// `memoptctl plan` of a recording or a text trace, without swaps: the layout that a program under memopt gets.
#pragma once

#include <string>

#include "tools/memoptctl/plan/file_plan.h"

namespace memopt::tools {

struct PlanOptions {
  std::string file;
  std::string json;     // where to write the plan (memopt-plan-1); may be empty
  std::string buffers;  // where to write the layout problem (docs/formats/layout-csv.md); may be empty
};

std::string plan_table(const FilePlanning& planning);

// 0; 4 if no iteration was found.
int plan(const PlanOptions& options, input::File& file);

}  // namespace memopt::tools
