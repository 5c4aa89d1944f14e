// A problem as it stands in a file: with the names of its buffers, and a placement if one was given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/layout/problem/problem.h"

namespace memopt::layout {

struct Instance {
  Problem problem;
  std::vector<std::string> ids;        // of the buffers, in their order
  std::vector<std::uint32_t> lines;    // of the file, from 1
  std::vector<std::uint64_t> offsets;  // the placement in the file; empty if there is none

  std::string name(std::size_t buffer) const {
    return "line " + std::to_string(lines[buffer]) + " (id " + ids[buffer] + ")";
  }
};

}  // namespace memopt::layout
