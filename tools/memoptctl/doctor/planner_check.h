// Is there a planner that this memopt can talk to? One is started under a name of its own, greeted as an agent does,
// and ended: the user's own planner is left in peace.
#pragma once
#include <string>

#include "tools/memoptctl/doctor/doctor_report.h"

namespace memopt::tools {

// `version`: of the library that would talk to it.
void check_planner(Report& report, const std::string& version);

// The wire version in the name of a planner's socket "memoptd-<uid>-<version>-<instance>" in a /proc/net/unix listing;
// negative: there is none.
int planner_wire_version(const std::string& listing, unsigned uid, const std::string& instance);

}  // namespace memopt::tools
