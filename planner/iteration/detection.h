// Finds the iteration: the outermost repeat at the end of the operation stream that leaves memory as it found it, and
// is not a shorter one several times.
//
// The *main lane* is the one that allocates most. A period p of it is an iteration if
//  - its last 2p operations are two equal halves of tokens;
//  - every other lane repeats as well, with as many operations as fall into p of the main lane (a lane that does not is
//    left out: its blocks are not placed);
//  - it is balanced: what was allocated in the second half and lives at the end has a counterpart, allocated one period
//    earlier, that lived in the middle, and the other way round, through as many periods as the block lives. So blocks
//    which cross the boundary do not disturb, and forward without backward is no iteration;
//  - accesses agree in most operations: what both halves name is the same block that stays, or was allocated equally
//    long ago in its lane. So the layers of an inference pass are no iterations. In most only, since parameters hold
//    stale words, which name other blocks each time; and a period that has gone on for very long is not asked;
//  - something is allocated in it.
// Time is counted lane by lane from the end of the half, so that threads may interleave differently in each iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/iteration/operation_store.h"

namespace memopt::planner {

// A lane's part in an iteration: its last 2 * period operations before `end` are two repeats.
struct LanePeriod {
  std::uint32_t lane;
  std::uint32_t end;  // lane_index behind the last operation
  std::uint32_t period;

  std::uint32_t middle() const { return end - period; }
  std::uint32_t begin() const { return end - 2 * period; }
};

struct Iteration {
  std::vector<LanePeriod> lanes;  // by lane; only those that are planned
  std::uint32_t main = 0;         // into lanes
  std::uint32_t repeated = 0;     // operations of the main lane, back from the end, that have this period
  std::uint64_t signature = 0;    // the same wherever in the iteration it was found
  bool partial = false;           // a lane that does not repeat allocated meanwhile

  const LanePeriod* find(std::uint32_t lane) const {
    for (const LanePeriod& candidate : lanes) {
      if (candidate.lane == lane) return &candidate;
    }
    return nullptr;
  }
  // Where operation `index` of a lane stands at the same place of the iteration before.
  std::uint32_t operations() const {
    std::uint32_t sum = 0;
    for (const LanePeriod& lane : lanes) sum += lane.period;
    return sum;
  }
};

struct DetectionOptions {
  std::uint32_t longer_than = 0;  // only periods of the main lane above this one, and none that is it several times
  std::uint32_t horizon = 0;      // operations of the main lane that are looked at; 0: all
  // Asked about each iteration that is found, shortest first, but for those that are one before several times. The last
  // one that it says yes to counts. Empty: it does always.
  std::function<bool(const Iteration&)> accept;
};

struct Detection {
  std::optional<Iteration> iteration;
  // A period that repeats, but is no iteration, with the reason: the shortest above a few operations. Empty: there was
  // none.
  std::uint32_t missed_period = 0;
  std::string miss;
};

// The lane that allocated most bytes; kNone where nothing was allocated.
std::uint32_t main_lane(const OperationStore& store);

Detection detect(const OperationStore& store, const DetectionOptions& options);

// Whether the block is one instance of an iteration's malloc (true), or lives through all of them.
bool is_transient(const OperationStore& store, const Iteration& iteration, std::uint32_t block);

}  // namespace memopt::planner
