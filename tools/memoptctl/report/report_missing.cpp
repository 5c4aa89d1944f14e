// In the place of everything else here, where d3 was not found.
#include <stdexcept>

#include "tools/memoptctl/report/report_command.h"

namespace memopt::tools {

int report(const ReportOptions&) {
  throw std::runtime_error(
      "report is not in this build: d3 was not there when it was configured (Debian's package node-d3)");
}

}  // namespace memopt::tools
