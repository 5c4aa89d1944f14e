#include "tools/memoptctl/metrics/metrics_command.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "tools/memoptctl/metrics/http_server.h"
#include "tools/memoptctl/metrics/open_metrics.h"
#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {
namespace {

// A process that is stopped must not keep a scrape waiting for its whole time.
constexpr std::chrono::milliseconds kPatience{1000};

std::string text_now() { return open_metrics(take_snapshot(std::nullopt, kPatience)); }

}  // namespace

std::string listen_fault(const std::string& text) {
  ListenAddress address;
  return parse_listen_address(text, &address);
}

int metrics(const MetricsOptions& options) {
  if (options.markdown) {
    fmt::print("{}", metrics_markdown());
    return 0;
  }
  if (options.listen.empty()) {
    fmt::print("{}", text_now());
    return 0;
  }
  ListenAddress address;
  parse_listen_address(options.listen, &address);
  HttpServer server(address, [] { return HttpServer::Answer{kOpenMetricsType, text_now()}; });
  fmt::print(stderr, "memoptctl: metrics at {}\n", server.url());
  server.run();
  return 0;
}

}  // namespace memopt::tools
