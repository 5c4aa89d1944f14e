#include "summary.h"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "planner/json/writer.h"

namespace replay {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

void print(const Summary& s, bool quiet) {
  if (!quiet) {
    std::printf("trace %s: %zu operations", s.trace.c_str(), s.trace_operations);
    if (s.ignored != 0) std::printf(" (%zu more on blocks that are not there ignored)", s.ignored);
    if (s.period != 0) {
      std::printf(", ends in %zu iteration%s of %zu\n", s.trace_iterations, s.trace_iterations == 1 ? "" : "s",
                  s.period);
    } else {
      std::printf(", no iteration found\n");
    }
    std::printf("played %zu iteration%s on %u stream%s in %u thread%s\n", s.iterations, s.iterations == 1 ? "" : "s",
                s.streams, s.streams == 1 ? "" : "s", s.threads, s.threads == 1 ? "" : "s");
    std::printf("operations %" PRIu64 "\n", s.operations);
    if (s.first_reads != 0) std::printf("reads of what nothing wrote %" PRIu64 ", written instead\n", s.first_reads);
    std::printf("verified %" PRIu64 " bytes in %" PRIu64 " pages\n", s.bytes_verified, s.pages_verified);
    std::printf("mismatches %" PRIu64 "\n", s.mismatches);
    std::printf("peak load %" PRIu64 " bytes (%.2f MiB)\n", s.peak_load, mib(s.peak_load));
    if (s.simulated) {
      const Summary::Simulated& sim = *s.simulated;
      std::printf("footprint %" PRIu64 " bytes (%.2f MiB), after iteration %zu %" PRIu64 " bytes (%.2f MiB)\n",
                  sim.footprint, mib(sim.footprint), sim.warm_up, sim.footprint_after_warm_up,
                  mib(sim.footprint_after_warm_up));
      std::printf(
          "each of the last %zu iterations: %.2f VMM calls, %.2f cuMemAlloc, %.2f cuMemFree, %.2f host "
          "synchronizations, "
          "%.2f launches, %.0f ns\n",
          sim.steady_iterations, sim.rates.vmm_calls, sim.rates.allocations, sim.rates.frees,
          sim.rates.synchronizations, sim.rates.launches, sim.rates.host_ns);
    }
  }
  std::printf("checksum %016" PRIx64 "\n", s.checksum);
}

std::optional<std::string> write_json(const Summary& s, const std::string& path) {
  std::ostringstream text;
  memopt::json::Writer json(text);
  json.begin_object({.before = "\n  ", .between = "\n  ", .colon = " ", .after = "\n"});
  json.member("trace", s.trace);
  json.member("trace_operations", s.trace_operations);
  json.member("ignored", s.ignored);
  json.member("period", s.period);
  json.member("trace_iterations", s.trace_iterations);
  json.member("streams", std::uint64_t{s.streams});
  json.member("threads", std::uint64_t{s.threads});
  json.member("iterations", s.iterations);
  json.member("operations", s.operations);
  json.member("first_reads", s.first_reads);
  json.member("bytes_verified", s.bytes_verified);
  json.member("pages_verified", s.pages_verified);
  json.member("mismatches", s.mismatches);
  json.member("peak_load", s.peak_load);
  if (s.simulated) {
    const Summary::Simulated& sim = *s.simulated;
    json.member("footprint", sim.footprint);
    json.member("footprint_after_warm_up", sim.footprint_after_warm_up);
    json.member("warm_up", sim.warm_up);
    json.member("steady_iterations", sim.steady_iterations);
    const auto rate = [&](const char* name, double value, int digits) {
      json.name(name);
      json.fixed(value, digits);
    };
    json.name("per_iteration");
    json.begin_object({.between = " ", .colon = " "});
    rate("vmm_calls", sim.rates.vmm_calls, 4);
    rate("cuMemAlloc_v2", sim.rates.allocations, 4);
    rate("cuMemFree_v2", sim.rates.frees, 4);
    rate("host_synchronizations", sim.rates.synchronizations, 4);
    rate("launches", sim.rates.launches, 4);
    rate("virtual_ns", sim.rates.host_ns, 1);
    json.end_object();
  }
  std::array<char, 17> checksum{};
  std::snprintf(checksum.data(), checksum.size(), "%016" PRIx64, s.checksum);
  json.member("checksum", checksum.data());
  json.end_object();
  text << '\n';

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (file == nullptr) return path + ": " + std::strerror(errno);
  const std::string written = std::move(text).str();
  if (std::fwrite(written.data(), 1, written.size(), file.get()) != written.size() || std::fflush(file.get()) != 0) {
    return path + ": " + std::strerror(errno);
  }
  return std::nullopt;
}

}  // namespace replay
