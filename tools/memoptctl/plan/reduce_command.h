// `memoptctl reduce`: keeps of a recording what a planner or a replay needs to find its iteration again.
#pragma once

#include <string>

#include "tools/memoptctl/plan/reduction.h"

namespace memopt::tools {

struct ReduceOptions {
  std::string file;
  std::string output;
  bool force = false;
  bool whole = false;  // every record, whether or not there is an iteration
  Reduction reduction;
};

// 0; 4 if no iteration was found, or what is written is not found to have the same.
int reduce(const ReduceOptions& options);

}  // namespace memopt::tools
