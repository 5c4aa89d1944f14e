// The command line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace replay {

struct Options {
  std::string trace;
  std::optional<std::size_t> iterations;  // nothing: the trace as it stands
  std::optional<std::size_t> warm_up;
  unsigned streams = 1;
  unsigned threads = 1;
  std::uint64_t seed = 1;
  bool alike = false;
  bool think = false;
  bool trace_times = false;
  bool allocations_only = false;
  bool quiet = false;
  std::string json;    // empty: none
  std::string module;  // empty: beside the program
  std::optional<std::uint64_t> corrupt_at;
};

// Ends the program for --help (exit code 0) and for what it does not understand (2).
Options parse_options(int argc, char** argv);

}  // namespace replay
