// What the system allows a process that matters to memopt: shared memory, locked memory, memory of the control group.
#pragma once

#include "tools/memoptctl/doctor/doctor_report.h"

namespace memopt::tools {

void check_limits(Report& report);

}  // namespace memopt::tools
