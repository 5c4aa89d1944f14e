// The device that a program is to fit on, and the simulated one that stands for it.
#pragma once

#include <cstdint>
#include <string>

#include "planner/swap/model/model.h"

namespace memopt::tools {

struct FitDevice {
  std::string simulated;       // as --sim takes it
  std::uint64_t capacity = 0;  // bytes, of the device that is asked about
  swap::Machine machine;       // its copies
  bool given = false;          // the capacity, as a size
};

// `device`: a size, a preset, a device file, or nothing (a100-40g). `simulated`: what stands for it, or nothing: the
// same, or a100-40g for a size. Throws std::invalid_argument that names the option.
FitDevice find_device(const std::string& device, const std::string& simulated);

}  // namespace memopt::tools
