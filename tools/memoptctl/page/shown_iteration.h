// One steady iteration as the page shows it: its blocks, what the device does, and plans of it.
//
// Times are nanoseconds since the iteration began, sizes and offsets bytes; those of a file of buffers are in whatever
// units that has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/verify.h"
#include "tools/memoptctl/page/drawn_plan.h"

namespace memopt::tools {

// Of a name, or of a call stack.
inline constexpr std::uint32_t kNoName = 0xffffffffu;
inline constexpr std::uint32_t kNoStack = 0xffffffffu;

// The page has these numbers.
enum class StepKind : std::uint8_t { kMalloc, kFree, kLaunch, kCopy, kMemset, kReplay };

struct ShownBlock {
  std::uint64_t number = 0;  // of a block of a recording that stays: the program's own, else the record of its malloc;
                             // of a file that has one iteration: its own
  std::uint64_t bytes = 0;
  bool persistent = false;  // lives through all iterations
  bool pinned = false;      // may not leave the device, or has a fixed offset
  bool made_again = false;  // a later life of a block whose contents are computed again
  std::uint32_t stack = kNoStack;
  double born = 0;
  double freed = 0;             // may lie behind the iteration's end
  std::uint32_t accesses = 0;   // by how many steps
  std::uint32_t first_use = 0;  // into ShownIteration::uses
  std::uint32_t uses = 0;       // of those, as many as are kept
};

// What the device does in one go: a kernel, a copy, a memset.
struct ShownStep {
  double begin = 0;
  double length = 0;
  StepKind kind = StepKind::kLaunch;
  std::uint32_t name = kNoName;  // of the names of the page's operations
};

struct BlockUse {
  std::uint32_t step = 0;
  bool writes = false;
};

struct LoadLevel {
  double at = 0;
  std::uint64_t bytes = 0;  // the most until the next one
};

// A plan within a limit.
struct PlanPoint {
  std::uint64_t limit = 0;  // 0: the least footprint at no added time was asked for
  bool wanted = false;      // the limit that was asked for
  bool feasible = false;
  std::uint64_t footprint = 0;  // where infeasible: the least that was reached; 0: nothing
  swap::Decisions decisions;    // of a feasible one
  swap::Report report;
};

struct ShownPlan {
  PlanPoint point;
  bool swaps = true;     // false: the layout that a program under memopt gets without a limit
  bool of_file = false;  // the file's own
  std::optional<DrawnPlan> drawn;
};

struct ShownIteration {
  double period = 0;
  std::string times;    // where the times come from
  std::string machine;  // how fast copies are
  std::vector<ShownBlock> blocks;
  std::vector<std::string> block_names;  // by block, or empty
  std::vector<ShownStep> steps;
  std::vector<BlockUse> uses;
  std::vector<LoadLevel> load;
  double peak_at = 0;
  std::uint64_t peak_load = 0;
  std::vector<std::uint32_t> at_peak;  // blocks, largest first; of one that is there several times, each
  std::vector<ShownPlan> plans;        // the first is what others are compared with
  std::uint64_t least_limit = 0;       // no plan with swaps is below; 0: none was looked for
  std::size_t left_out = 0;            // limits for which there was no time
  bool interrupted = false;
};

// What the operations and blocks of a problem are called.
struct IterationLabels {
  struct Step {
    StepKind kind = StepKind::kLaunch;
    std::uint32_t name = kNoName;  // none: it is not shown
  };
  struct Block {
    std::uint64_t number = 0;
    std::uint32_t stack = kNoStack;
    bool made_again = false;
  };
  std::vector<std::uint64_t> ranks;  // by operation, not falling: those of one rank are one step
  std::vector<Step> steps;           // by rank
  std::vector<Block> blocks;         // by block
};

// All but the plans and the two texts. The problem's operations must be in order (swap::find_liveness). O(n log n).
ShownIteration show_iteration(const swap::Problem& problem, const swap::Liveness& liveness,
                              const IterationLabels& labels);

}  // namespace memopt::tools
