// `memoptctl fit`: whether a program fits on a device, and what it takes, before it runs there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memopt::tools {

struct FitOptions {
  std::vector<std::string> command;  // a program with its arguments; empty: `file`
  std::string file;                  // a recording, or what import reads
  std::string device;                // as find_device() takes it
  std::string simulated;             // likewise
  std::string scale;                 // as parse_scale() takes it; empty: the command as it stands
  bool swaps = true;                 // are looked for
  double seconds = 20;               // of searching, for each row
  double run_seconds = 600;          // of running, for each row
  unsigned threads = 0;
  std::uint64_t seed = 1;
  bool json = false;
};

// 0: it fits in some way, or with some value; 3: in none; 4: memopt finds no iteration, and it does not fit without; 1:
// it can't be run or read, or not to its end; 2: wrong use.
int fit(const FitOptions& options);

}  // namespace memopt::tools
