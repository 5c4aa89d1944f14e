// One steady iteration as a plan has it, for drawing: where every block lies when, and what the copy engines do.
//
// Times are nanoseconds since the iteration began, offsets and sizes bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

enum class Phase : std::uint8_t { kThere, kCopiedIn, kCopiedOut };

struct DrawnBlock {
  std::uint32_t block = 0;
  Phase phase = Phase::kThere;
  std::uint64_t offset = 0;
  double from = 0;
  double to = 0;
};

struct DrawnCopy {
  std::uint32_t block = 0;
  bool in = false;  // to the device
  double from = 0;
  double to = 0;
};

// What begins at this time without the plan begins so much later with it.
struct DrawnWait {
  double unplanned = 0;
  double from = 0;
  double to = 0;
};

struct DrawnPlan {
  double length = 0;
  std::uint64_t rounds = 1;  // iterations after which all is where it was; the last simulated one is drawn
  std::vector<DrawnBlock> blocks;
  std::vector<DrawnCopy> copies;  // by the program's own engines none
  std::vector<DrawnWait> waits;
};

// The decisions must hold (swap::verify) and have places.
DrawnPlan draw(const swap::Problem& problem, const swap::Liveness& liveness, const swap::Decisions& decisions);

}  // namespace memopt::tools
