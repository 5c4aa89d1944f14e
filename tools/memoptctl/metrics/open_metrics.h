// What `status` knows as OpenMetrics 1.0 text, which Prometheus and its like read.
#pragma once

#include <string>
#include <vector>

#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {

inline constexpr const char* kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// All families, each with a sample for every process that says something of it, and the end mark. Nothing of a process
// can break the text: values of labels are escaped, and only whole families are written.
std::string open_metrics(const Snapshot& snapshot);

// A table of the families for docs/metrics.md.
std::string metrics_markdown();

}  // namespace memopt::tools
