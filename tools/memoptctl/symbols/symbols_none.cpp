// Where memopt was built without libdw.
#include "tools/memoptctl/symbols/symbols.h"

namespace memopt::tools {

struct Symbols::Files {};

Symbols::Symbols(const planner::Modules& modules) : modules_(modules) {}
Symbols::~Symbols() = default;

std::string Symbols::of_call(std::uint64_t return_address) { return modules_.name(return_address); }

}  // namespace memopt::tools
