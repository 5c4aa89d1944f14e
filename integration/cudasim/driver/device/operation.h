// One queued item: work, or a marker (event record, event wait) that only carries edges and a time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "checker/vector_clock.h"
#include "device/engine.h"
#include "units.h"

namespace cudasim {

struct Operation {
  std::uint64_t sequence = 0;  // order of issue
  ActorId actor{};
  ContextId context = ContextId::kNone;
  Work work;
  VectorClock clock;
  // The same by what the driver itself knows: edges and waits alone, nothing that a host function told the host. What
  // memory pools go by, so that their choices don't depend on when a host function ran. Kept once they are used.
  VectorClock order;

  // Declared edges whose earlier end has not yet had its bytes run. Cleared when this one has run.
  std::vector<std::shared_ptr<Operation>> predecessors;

  // Timing (Timeline).
  TimePoint ready{};  // final once untimed_predecessors is 0
  TimePoint start{}, end{};
  bool timed = false;
  std::uint32_t untimed_predecessors = 0;
  std::vector<Operation*> timing_successors;

  // Bytes (ByteRunner).
  bool run = false;
  bool posted = false;  // host function given to the callback thread
  std::uint32_t next_piece = 0;
  std::uint32_t eager_pieces = 0;  // with a seed: how many pieces run without being asked for
  std::uint64_t eager_from = 0;    // …and from which driver call on
  std::uint32_t unrun_predecessors = 0;
  std::vector<Operation*> run_successors;
  std::uint64_t visited = 0;

  bool is_host_function() const { return work.host_function != nullptr; }
  std::uint32_t pieces() const { return work.run ? work.pieces : 0; }
  bool ended(TimePoint now) const { return timed && end <= now; }
};
using OperationPtr = std::shared_ptr<Operation>;

}  // namespace cudasim
