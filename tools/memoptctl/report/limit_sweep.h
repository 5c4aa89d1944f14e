// What the program would need within several limits: plans with swaps, one each, and what they add to an iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "tools/memoptctl/page/shown_iteration.h"

namespace memopt::tools {

struct SweepOptions {
  std::optional<std::uint64_t> limit;  // to be among them
  double seconds = 10;   // for all searches together: a search of very many blocks may take some more; 0: none
  unsigned threads = 0;  // 0: as many as there are processors
  std::uint64_t seed = 1;
  std::function<void(const std::string&)> progress;  // what is done now; may be empty
};

struct Sweep {
  std::uint64_t least = 0;  // no plan is below: pinned blocks and what one operation touches
  // Largest limit first; that without one stands at its footprint. None for limits above that, within which it holds,
  // but for the wanted one.
  std::vector<PlanPoint> points;
  std::size_t left_out = 0;  // limits for which there was no time
  bool interrupted = false;  // the best until then
};

// A plan for a narrower limit holds within a wider one, and is taken where it adds less. Every plan was verified.
// Throws std::runtime_error where one does not hold, which is a mistake of ours.
Sweep sweep_limits(const swap::Problem& problem, const swap::Liveness& liveness, const SweepOptions& options);

// The limits that are tried, beside the one that is wanted: round parts of the peak load, largest first, none below the
// least.
std::vector<std::uint64_t> swept_limits(std::uint64_t peak, std::uint64_t least);

}  // namespace memopt::tools
