// `memoptctl solve`: lays out the buffers of a CSV file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memopt::tools {

inline constexpr int kExitError = 1;         // a file can't be read or written
inline constexpr int kExitBadInput = 2;      // or wrong use
inline constexpr int kExitInfeasible = 3;    // proven: nothing fits into the capacity
inline constexpr int kExitNothingFound = 4;  // in the time, or by a solver that does not take the problem
inline constexpr int kExitDoesNotHold = 5;   // --check

struct SolveOptions {
  std::string file;     // "-": standard input
  std::string compare;  // a folder, instead of a file
  std::string solver = "auto";
  std::vector<std::string> solvers;  // of the comparison; empty: all
  std::optional<std::uint64_t> capacity;
  std::optional<double> seconds;  // 0: no limit
  unsigned threads = 0;           // 0: as many as there are processors
  std::uint64_t seed = 1;
  bool json = false;
  bool list = false;
  bool check = false;
  bool keep_offsets = false;
  std::string output;  // "-": standard output
  std::string plot;
};

int solve(const SolveOptions& options);

// `--compare`: prints a table, a row for each .csv and .csv.gz below the folder, a column for each solver. 0, or
// kExitBadInput where a file could not be read (the others are shown), or kExitError if there was none.
int compare_solvers(const SolveOptions& options);

}  // namespace memopt::tools
