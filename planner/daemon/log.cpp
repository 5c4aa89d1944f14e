#include "planner/daemon/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace memopt::planner {

LogLine open_log(const std::string& path, bool standard_error) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (!path.empty()) {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } else if (standard_error) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::null_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>("memoptd", std::move(sink));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e memoptd[%P] %v");
  logger->flush_on(spdlog::level::info);
  return [logger = std::move(logger)](std::string_view line) { logger->info("{}", line); };
}

}  // namespace memopt::planner
