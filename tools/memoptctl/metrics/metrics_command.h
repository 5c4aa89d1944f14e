// `memoptctl metrics`: what `status` knows, for Prometheus and its like: once, or by HTTP until it is ended.
#pragma once

#include <string>

namespace memopt::tools {

struct MetricsOptions {
  std::string listen;     // empty: once, to standard output
  bool markdown = false;  // the table of docs/metrics.md instead
};

// What is wrong with an address to listen at; empty: nothing.
std::string listen_fault(const std::string& text);

// 0. Throws std::runtime_error where the address can't be listened at.
int metrics(const MetricsOptions& options);

}  // namespace memopt::tools
