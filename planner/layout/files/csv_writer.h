// Problems and solutions in MiniMalloc's CSV (docs/formats/layout-csv.md).
#pragma once

#include <span>
#include <string>

#include "planner/layout/files/instance.h"

namespace memopt::layout {

// Columns that no buffer needs are left out (alignment, gaps, fixed; offset without offsets). Times and ids are as they
// were read; read_csv of it gives the same problem. O(n).
std::string write_csv(const Instance& instance, std::span<const std::uint64_t> offsets = {});

}  // namespace memopt::layout
