// Machines to plan for: how fast copies are, by name or as numbers.
//
// gtx1080ti is the machine of Zhang et al. 2019, by the constants of its public code (0.0756 ns a byte out, 0.0823 in);
// the others are those of integration/cudasim/driver/presets, where sources are named. The preset of the GTX 1080 Ti
// has the same numbers, its rates rounded to 13.23 and 12.15 bytes a nanosecond.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "planner/swap/model/model.h"

namespace memopt::swap {

struct NamedMachine {
  std::string_view name;
  Machine machine;
};

// The first is that of files in which none is measured.
inline constexpr std::array kMachines = {
    NamedMachine{"gtx1080ti", {13.227513227513228, 12.150668286755772, 47200, 9700}},
    NamedMachine{"a100-40g", {25, 25, 8000, 8000}},
    NamedMachine{"h200", {52, 52, 7000, 7000}},
};

// A name of kMachines, or OUT:IN or OUT:IN:OUT_LATENCY:IN_LATENCY: GB/s (1e9 bytes, which are bytes a nanosecond) and
// nanoseconds, latencies 0 where they are not given. Throws Invalid: neither; says what was expected.
Machine parse_machine(std::string_view text);

// The name, where the machine has one; else the numbers, as parse_machine takes them.
std::string name_of(const Machine& machine);

}  // namespace memopt::swap
