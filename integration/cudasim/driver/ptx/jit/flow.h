// The steps of a function as a graph, in the order in which a warp goes through it: of all places at which lanes wait,
// the first in this order goes on. As the order has every loop in one piece and what follows after what it follows,
// lanes that part meet again where their ways join. ("Thread frontiers": Diamos et al., "SIMD re-convergence at thread
// frontiers", 2011.)
#pragma once
#include <cstdint>
#include <vector>

#include "ptx/execution/executable.h"

namespace cudasim::ptx::jit {

enum class Ending : std::uint8_t {
  kFalls,   // into the next block
  kGoto,    // successors[0]
  kBranch,  // successors: taken, next
  kSwitch,  // its targets, as the list has them, then next
  kReturn,  // return and exit; with a guard the next is successors[0]
  kLeaves,  // native code ends before its only step, which the warp does: barriers and calls
};

struct FlowBlock {
  std::uint32_t first, last;  // steps
  Ending ending = Ending::kFalls;
  bool waits = false;  // begins with an operation of the warp, for which lanes may have to wait
  std::vector<std::uint32_t> successors;
  // Blocks at which other lanes may wait while this one runs; all are behind it.
  std::vector<std::uint32_t> pending;
  std::vector<bool> live;  // rows that are read in it or behind before they are written
  std::uint32_t entry = kNoIndex;
};

// Rows of the frame that a step reads and writes.
struct Touched {
  std::vector<std::uint32_t> reads, writes;
};
Touched touched(const Code& code, const Step& step);
bool is_frame(Ref ref);
bool is_constant(Ref ref);  // the same in all lanes, known when the code is made
std::uint32_t row_of(Ref ref);

struct Flow {
  std::vector<FlowBlock> blocks;       // in their order; blocks[0] is not always where the function begins
  std::vector<std::uint32_t> entries;  // blocks; the first is where the function begins
};
Flow flow_of(const Code& code);

}  // namespace cudasim::ptx::jit
