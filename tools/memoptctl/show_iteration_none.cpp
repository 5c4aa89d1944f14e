// Where no planner was built.
#include "show_iteration.h"

namespace memopt::tools {

IterationSearch find_iteration(const std::string&) { return {}; }

}  // namespace memopt::tools
