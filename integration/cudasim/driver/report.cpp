#include "report.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "contexts.h"
#include "driver.h"

namespace cudasim {
namespace {

using Json = nlohmann::ordered_json;

Json counters_json(const CudasimCounters& totals) {
  return {
      {"bytes_held", totals.bytes_held},
      {"bytes_held_peak", totals.bytes_held_peak},
      {"bytes_live", totals.bytes_live},
      {"bytes_live_peak", totals.bytes_live_peak},
      {"blocks_live", totals.blocks_live},
      {"blocks_live_at_peak", totals.blocks_live_at_peak},
      {"blocks_2mib_live_at_peak", totals.blocks_2mib_live_at_peak},
      {"capacity", totals.capacity},
      {"calls", totals.calls},
      {"launches", totals.launches},
      {"copies", totals.copies},
      {"bytes_copied_in", totals.bytes_copied_in},
      {"bytes_copied_out", totals.bytes_copied_out},
      {"host_synchronizations", totals.host_synchronizations},
      {"vmm_calls", totals.vmm_calls},
      {"unknown_kernels", totals.unknown_kernels},
      {"races", totals.races},
  };
}

Json schedule_json(const Driver& driver) {
  if (!driver.schedule) return {};
  return {{"seed", *driver.config.schedule},
          {"steps", driver.schedule->steps()},
          {"switches", driver.schedule->switches()},
          {"trace_hash", driver.schedule->trace_hash()}};
}

// "12.3 MiB": three digits are enough to be read.
std::string readable_bytes(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string readable_time(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", double(time.count()) / 1e6);
  return text;
}

void write_exit_report(Driver& driver) {
  const std::string& where = driver.config.report;
  if (where == "off") return;
  if (where == "stderr") {
    std::fputs(report_text(driver).c_str(), stderr);
    return;
  }
  const auto path = with_process_id(where);
  if (const int error = write_file(path, report_json(driver))) {
    std::fprintf(stderr, "cudasim: CUDASIM_REPORT: %s: %s\n", path.c_str(), std::strerror(error));
  }
}

bool lock_within(std::mutex& mutex, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!mutex.try_lock()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Runs after the program's own exit handlers and static destructors, which still free and synchronise: an atexit
// handler of ours, registered at the first call, would come too early for those.
__attribute__((destructor)) void finish() {
  Driver* const driver = Driver::if_made();
  if (driver == nullptr || Driver::in_forked_child() || !driver->initialized) return;
  // A thread that was stopped inside a call (exit() under a kernel, say) keeps the lock for ever.
  if (!lock_within(driver->mutex, std::chrono::seconds(2))) {
    std::fputs("cudasim: no report: a driver call is still running at exit\n", stderr);
    return;
  }
  std::uint64_t races = 0;
  try {
    driver->engine.drain();
    driver->engine.finish_timeline();
    if (driver->schedule) driver->schedule->flush_trace();
    races = driver->checker.races();
    write_exit_report(*driver);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: report at exit: %s\n", problem.what());
  }
  driver->mutex.unlock();
  if (races == 0) return;
  std::fprintf(stderr, "cudasim: %llu race%s; exit code %d\n", static_cast<unsigned long long>(races),
               races == 1 ? "" : "s", CUDASIM_RACE_EXIT_CODE);
  std::fflush(nullptr);
  _exit(CUDASIM_RACE_EXIT_CODE);
}

}  // namespace

std::string report_json(Driver& driver) {
  const Config& config = driver.config;
  Counters& counters = driver.counters;
  CudasimCounters totals = counters.totals;
  totals.races = driver.checker.races();
  Json report{
      {"interface_version", CUDASIM_INTERFACE_VERSION},
      {"program", program_invocation_short_name},
      {"pid", getpid()},
      {"device",
       {{"preset", config.device.preset},
        {"name", config.device.name},
        {"compute_capability",
         std::to_string(config.device.compute_major) + "." + std::to_string(config.device.compute_minor)},
        {"capacity", driver.memory.capacity()}}},
      {"seed", config.seed ? Json(*config.seed) : Json()},
      {"serialize", config.serialize},
      {"schedule", schedule_json(driver)},
      {"pace", config.pace},
      {"check", config.check},
      {"kernels_instrumented", config.instrument},
      {"host_end_ns", driver.engine.host_now().time_since_epoch().count()},
      {"device_end_ns", driver.engine.device_now().time_since_epoch().count()},
      {"launches", totals.launches},
      {"busy_ns",
       {{"compute", counters.compute_busy.count()},
        {"copy_in", counters.copy_in_busy.count()},
        {"copy_out", counters.copy_out_busy.count()}}},
      {"counters", counters_json(totals)},
      {"held_history",
       {{"peaks", counters.held_history.peaks(totals.calls)},
        {"calls_per_piece", counters.held_history.calls_per_piece()}}},
      {"calls", Json::object()},
      {"unknown_kernels", counters.unknown_kernels},
      {"interpreted_ptx", counters.interpreted_ptx},
      {"races", totals.races},
      {"last_race", driver.checker.last_race()},
  };
  for (const auto& [symbol, count] : counters.calls) {
    if (count > 0) report["calls"][symbol] = count;
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_text(Driver& driver) {
  const Config& config = driver.config;
  const Counters& counters = driver.counters;
  const CudasimCounters& totals = counters.totals;
  std::string text;
  const auto line = [&](const std::string& words) { text += "cudasim: " + words + "\n"; };
  line(config.device.name + ", " + readable_bytes(driver.memory.capacity()) + "; " +
       (config.seed ? "adversary with seed " + std::to_string(*config.seed) : "nominal order") + ", checker " +
       (!config.check       ? "off"
        : config.instrument ? "on, kernels instrumented"
                            : "on, kernels not instrumented"));
  line("memory: " + readable_bytes(totals.bytes_held_peak) + " held at peak, " +
       readable_bytes(totals.bytes_live_peak) + " live in " + std::to_string(totals.blocks_live_at_peak) + " blocks (" +
       std::to_string(totals.blocks_2mib_live_at_peak) + " of at least 2 MiB); at the end " +
       readable_bytes(totals.bytes_held) + " held");
  line("calls: " + std::to_string(totals.calls) + ", launches: " + std::to_string(totals.launches) +
       ", copies: " + std::to_string(totals.copies) + " (" + readable_bytes(totals.bytes_copied_in) + " in, " +
       readable_bytes(totals.bytes_copied_out) + " out), host synchronisations: " +
       std::to_string(totals.host_synchronizations) + ", VMM calls: " + std::to_string(totals.vmm_calls));
  line("virtual time: host " + readable_time(driver.engine.host_now().time_since_epoch()) + ", device " +
       readable_time(driver.engine.device_now().time_since_epoch()) + "; busy: compute " +
       readable_time(counters.compute_busy) + ", in " + readable_time(counters.copy_in_busy) + ", out " +
       readable_time(counters.copy_out_busy));
  for (const auto& [name, count] : counters.unknown_kernels) {
    line("unknown kernel, modelled as a no-op: " + name + " (" + std::to_string(count) + " launches)");
  }
  if (driver.checker.races() > 0)
    line("races: " + std::to_string(driver.checker.races()) + "; the last: " + driver.checker.last_race());
  return text;
}

int write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return errno;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = written ? 0 : errno;
  return std::fclose(file) == 0 ? error : (error != 0 ? error : errno);
}

}  // namespace cudasim
