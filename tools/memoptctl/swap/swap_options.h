// What `memoptctl plan` is told about swaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace memopt::tools {

struct SwapPlanOptions {
  std::string file;
  std::string json;     // where to write the plan, or the comparison; may be empty
  std::string plot;     // where to draw it; may be empty
  std::string machine;  // as swap::parse_machine takes it; empty: the file's
  std::string limit;    // of the footprint, as given; empty: the file's, else least footprint at no added time
  std::string strategy = "memopt";
  std::string objective;     // "footprint" or "time"; empty: time where there is a limit
  bool clean_drops = false;  // of memopt's own, swap::Problem::clean_drops
  bool idle = true;          // times when the device of a recording had nothing to do count; no option of a line
  double remap_us = 0;       // of memopt's own, swap::Machine::remap_ns; only if it is given
  double seconds = 2;        // for each search of memopt's own
  std::uint64_t attempts =
      0;                // of memopt's own, instead of seconds, as swap::search_by_steps has it; only if it is given
  bool swap = false;    // of --recompute: swaps besides
  std::string kernels;  // of --recompute of a recording: a list of kernels; may be empty
  std::string assume;   // of the same, or of a text trace: what is taken for granted; may be empty
  bool places = false;  // of --recompute: where all lies, too
  std::uint64_t episodes = 0;  // of --recompute by what learns; 0: as many as there is time for
  std::string training_curve;  // of the same: where to write its episodes; may be empty
  unsigned threads = 0;        // of it; 0: as many as there are processors
  std::uint64_t seed = 1;
  double layout_seconds = 0.2;  // for each layout that other strategies try
  bool bound = true;
  double bound_seconds = 60;  // for each linear programme

  bool compare = false;
  std::vector<std::string> limits;      // of the comparison, as given; empty: some parts of the peak load
  std::vector<std::string> strategies;  // of it; empty: all there are

  std::vector<std::string> given;  // names of the options that were on the line

  bool has(const std::string& name) const { return std::find(given.begin(), given.end(), name) != given.end(); }
};

}  // namespace memopt::tools
