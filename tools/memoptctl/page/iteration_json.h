// An iteration as the page's data has it (docs/report.md).
#pragma once

#include "planner/json/tree.h"
#include "tools/memoptctl/page/shown_iteration.h"

namespace memopt::tools {

nlohmann::json iteration_json(const ShownIteration& iteration);

}  // namespace memopt::tools
