// An iteration in which it is known, or assumed, what each launch reads and writes; and where it is not, why.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"

namespace memopt::recompute {

// Why a launch can't be replayed, or not for as long as its blocks are used.
enum class Doubt : std::uint8_t {
  kNoDoubt,
  kMayChange,    // it changes blocks that were there before, or may have
  kPositions,    // the same, as it names another number of blocks than its line of the list
  kNever,        // the list says so
  kFromHost,     // what it writes comes from the host
  kFromNothing,  // of a text trace: it reads nothing, so what it writes comes from where is not seen
  kEscaped,      // it touches a block whose address was stored where uses are not seen
  kBlind,        // its parameters could not be read
  kElsewhere,    // it touches memory that is no block of the iteration
  kLivesOn,      // it touches a block that lives on into the next iteration
  kSourcesGone,  // what it reads is changed or freed before its block is used last, and can't be made again until then
  kKept,         // the block's own: it lives while a blind launch runs, or may not leave the device
};

struct Known {
  // What one operation of the program accesses is one launch, which reads first, then writes. Where launches touch what
  // is not seen, there is one more block, the last: persistent, pinned, one byte. Each of these launches changes it, so
  // that by the rules of graph.h none is replayed.
  swap::Problem problem;
  struct Origin {
    std::uint32_t kernel = kNone;   // into Observation::kernels
    Doubt doubt = Doubt::kNoDoubt;  // of its own, as far as its record says
  };
  std::vector<Origin> origins;       // by operation of the problem
  std::vector<std::uint64_t> rules;  // by line of the list: the launches for which it was asked
  std::uint64_t blind = 0;           // launches
  std::uint64_t kept = 0;            // blocks that stay as they live while one of these runs
  // Of a text trace.
  std::uint64_t launches = 0;    // that its lines were taken together to
  std::uint64_t pointers = 0;    // lines right before a free that are taken for part of it
  std::uint64_t workspaces = 0;  // blocks that persist, are written and never read
};

// What of the blocks that live within the iteration can be made again for as long as they are used, and what is in the
// way of the others: the first of their launches that can't be replayed.
struct Doubts {
  struct Cause {
    Doubt doubt = Doubt::kNoDoubt;
    std::uint32_t kernel = kNone;
    std::uint64_t bytes = 0;
    std::uint32_t blocks = 0;
  };

  std::uint64_t writing = 0, replayed = 0;  // launches that write something; those of them that can make a block again
  std::uint64_t bytes = 0, blocks = 0;      // that live within the iteration, and are written
  std::uint64_t lasting_bytes = 0, lasting_blocks = 0;  // those of them that can be made again up to their last use
  std::vector<Cause> causes;  // of the others: of each reason and kernel one, the most bytes first
};

// O(n + a).
Doubts find_doubts(const Known& known, const swap::Liveness& liveness, const Graph& graph);

}  // namespace memopt::recompute
