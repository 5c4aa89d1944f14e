// `memoptctl plan` on a memopt-plan-1 file: what leaves the device in one iteration, when, and what that costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace memopt::tools {

struct SwapPlanOptions {
  std::string file;
  std::string json;   // where to write the plan; may be empty
  std::string limit;  // of the footprint, as given; empty: the file's, else least footprint at no added time
  std::string strategy = "memopt";
  std::string objective;  // "footprint" or "time"; empty: time where there is a limit
  double seconds = 2;     // for memopt's own search
  unsigned threads = 0;   // of it; 0: as many as there are processors
  std::uint64_t seed = 1;
  double layout_seconds = 0.2;  // for each layout that AutoSwap tries; 0: no limit of time
  bool bound = true;
};

// Whether the file is JSON rather than a recording or a text trace: it begins with a brace.
bool is_plan_file(const std::string& path);

// Bytes: a number, with K, M or G (binary), KiB, MiB, GiB behind it, or a percentage of `whole`. Nothing if it is none.
std::optional<std::uint64_t> parse_limit(const std::string& text, std::uint64_t whole);

// 0; 2 for options that can't be; 3 if no plan of the strategy fits into the limit: the least that does is named.
int swap_plan(const SwapPlanOptions& options);

}  // namespace memopt::tools
