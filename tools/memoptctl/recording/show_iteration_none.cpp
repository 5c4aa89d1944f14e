// Where no planner was built.
#include "tools/memoptctl/recording/show_iteration.h"

namespace memopt::tools {

IterationSearch find_iteration(const std::string&) { return {}; }

}  // namespace memopt::tools
