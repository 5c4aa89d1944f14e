// The report at the end of the process, for whom the environment names a file.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "pool.h"

namespace caching_pool {
namespace {

pid_t started_in = 0;

__attribute__((constructor)) void remember_process() { started_in = getpid(); }

std::string report_path() {
  const char* name = std::getenv("CACHING_POOL_REPORT");
  std::string path = name != nullptr ? name : "";
  if (const auto at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

// A forked child has its parent's counts but did none of it.
__attribute__((destructor)) void write_report() {
  const std::string path = report_path();
  if (path.empty() || getpid() != started_in) return;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "caching pool: cannot write the report to '%s' (CACHING_POOL_REPORT)\n", path.c_str());
    return;
  }
  const PoolStatistics pool = Pool::instance().statistics();
  const StreamStatistics streams = Pool::instance().stream_statistics();
  const struct {
    const char* name;
    unsigned long long value;
  } fields[] = {
      {"peak_live_bytes", pool.live_bytes_peak},
      {"peak_requested_bytes", pool.requested_bytes_peak},
      {"peak_reserved_bytes", pool.reserved_bytes_peak},
      {"live_bytes", pool.live_bytes},
      {"reserved_bytes", pool.reserved_bytes},
      {"mallocs", pool.mallocs},
      {"hits", pool.hits},
      {"frees", pool.frees},
      {"passed_through", pool.passed_through},
      {"segments_allocated", pool.segments_allocated},
      {"segments_released", pool.segments_released},
      {"out_of_memory", pool.out_of_memory},
      {"events_recorded", streams.events_recorded},
      {"stream_waits", streams.waits_issued},
      {"host_waits", streams.host_waits},
  };
  std::fputs("{", file);
  const char* separator = "\n";
  for (const auto& field : fields) {
    std::fprintf(file, "%s  \"%s\": %llu", separator, field.name, field.value);
    separator = ",\n";
  }
  std::fputs("\n}\n", file);
  if (std::fclose(file) != 0) std::fprintf(stderr, "caching pool: the report '%s' is incomplete\n", path.c_str());
}

}  // namespace
}  // namespace caching_pool
