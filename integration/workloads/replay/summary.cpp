#include "summary.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace replay {
namespace {

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + '"';
}

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
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (file == nullptr) return path + ": " + std::strerror(errno);
  std::FILE* out = file.get();
  std::fprintf(out, "{\n  \"trace\": %s,\n", quoted(s.trace).c_str());
  const auto number = [out](const char* key, std::uint64_t value) {
    std::fprintf(out, "  \"%s\": %" PRIu64 ",\n", key, value);
  };
  number("trace_operations", s.trace_operations);
  number("ignored", s.ignored);
  number("period", s.period);
  number("trace_iterations", s.trace_iterations);
  number("streams", s.streams);
  number("threads", s.threads);
  number("iterations", s.iterations);
  number("operations", s.operations);
  number("first_reads", s.first_reads);
  number("bytes_verified", s.bytes_verified);
  number("pages_verified", s.pages_verified);
  number("mismatches", s.mismatches);
  number("peak_load", s.peak_load);
  if (s.simulated) {
    const Summary::Simulated& sim = *s.simulated;
    number("footprint", sim.footprint);
    number("footprint_after_warm_up", sim.footprint_after_warm_up);
    number("warm_up", sim.warm_up);
    number("steady_iterations", sim.steady_iterations);
    std::fprintf(out,
                 "  \"per_iteration\": {\"vmm_calls\": %.4f, \"cuMemAlloc_v2\": %.4f, \"cuMemFree_v2\": %.4f, "
                 "\"host_synchronizations\": %.4f, \"launches\": %.4f, \"virtual_ns\": %.1f},\n",
                 sim.rates.vmm_calls, sim.rates.allocations, sim.rates.frees, sim.rates.synchronizations,
                 sim.rates.launches, sim.rates.host_ns);
  }
  std::fprintf(out, "  \"checksum\": \"%016" PRIx64 "\"\n}\n", s.checksum);
  if (std::fflush(out) != 0 || std::ferror(out) != 0) return path + ": " + std::strerror(errno);
  return std::nullopt;
}

}  // namespace replay
