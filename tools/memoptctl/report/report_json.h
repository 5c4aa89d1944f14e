// The data of the page (docs/report.md): JSON in which columns of numbers are base64, the longer ones packed by
// zlib.
#pragma once

#include <string>

#include "tools/memoptctl/report/report_model.h"

namespace memopt::tools {

// Can be put between <script> tags: there is no '<' in it. `version`: of this memopt.
std::string report_json(const ReportModel& model, const std::string& file, const std::string& version);

}  // namespace memopt::tools
