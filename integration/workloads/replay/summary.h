// What is printed at the end, and written as JSON.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "meter.h"
#include "options.h"
#include "steady.h"
#include "trace.h"

namespace replay {

struct Summary {
  std::string trace;
  std::size_t trace_operations = 0;
  std::size_t ignored = 0;
  std::size_t period = 0;  // operations of an iteration; 0: none was found
  std::size_t trace_iterations = 0;
  unsigned streams = 1;
  unsigned threads = 1;
  std::size_t iterations = 0;
  std::uint64_t operations = 0;
  std::uint64_t first_reads = 0;
  std::uint64_t bytes_verified = 0;
  std::uint64_t pages_verified = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t peak_load = 0;
  std::uint64_t checksum = 0;

  struct Simulated {
    std::uint64_t footprint = 0;
    std::uint64_t footprint_after_warm_up = 0;
    std::size_t warm_up = 0;
    std::size_t steady_iterations = 0;
    Meter::Rates rates;
  };
  std::optional<Simulated> simulated;
};

void print(const Summary& summary, bool quiet);
// An error text, or nothing.
std::optional<std::string> write_json(const Summary& summary, const std::string& path);

}  // namespace replay
