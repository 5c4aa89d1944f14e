// Memory of a fixed size in which an iteration goes on, operation by operation: what is dropped when there is no room,
// and what is replayed when it is needed, in the order in which an online policy comes to it. What it does are steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"

namespace memopt::recompute {

// A policy: what it may see, and when.
class Policy {
 public:
  virtual ~Policy() = default;
  // Of a block that is in memory, and may be dropped: whether it is to be asked about at all.
  virtual bool may_leave(std::uint32_t /*block*/, std::uint32_t /*operation*/) { return true; }
  // Of a block that is in memory and may be dropped: the least value is dropped first. `now`: nanoseconds, replays
  // included; `operation`: the one ahead.
  virtual double value(std::uint32_t block, double now, std::uint32_t operation) = 0;
  // A value that is found faster, and is no higher: of most blocks it says that others go first.
  virtual double at_least(std::uint32_t block, double now, std::uint32_t operation) = 0;
  virtual void dropped(std::uint32_t block) = 0;
  virtual void made(std::uint32_t block) = 0;  // by its launch, or a replay
  virtual void used(std::uint32_t block, double now) = 0;
};

// A block that is swapped: it is not in memory from before operation `from` until before operation `to`, and not
// dropped until then. One that persists may be away over the end of the iteration: `to` is below `from` then. kNone: it
// is freed before. Neither is within a launch; no launch from `from` on that begins before `to` touches the block, the
// one that begins at `to` may. Absences of a block don't overlap.
struct Absence {
  std::uint32_t block = 0;
  std::uint32_t from = 0, to = kNone;

  friend bool operator==(const Absence&, const Absence&) = default;
};

// A replay needs it before: it comes back before that operation, behind so many of the steps.
struct EarlyReturn {
  std::uint32_t absence = 0;
  std::uint32_t before = 0;
  std::uint32_t steps = 0;

  friend bool operator==(const EarlyReturn&, const EarlyReturn&) = default;
};

// Replays that take more iterations than that are worth nothing.
inline constexpr double kMostIterations = 20;

// The steps by which the iteration stays within `budget` bytes, or nothing where the policy finds no way. What a replay
// needed though the program has freed it stays until there is no room, or the end. Not more than `most_ns` of replays:
// it is given up then, with some hundred replays of each launch, and where `ends` says so. Thread-safe, a policy each.
std::optional<Steps> run_online(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, Policy& policy, double most_ns,
                                const std::function<bool()>& ends = {});

// The same beside swaps, for which there is always time: what is away is not in memory, and comes back in any case.
// `early`: those that do before it was planned, in order.
std::optional<Steps> run_online(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, std::span<const Absence> absences, Policy& policy, double most_ns,
                                const std::function<bool()>& ends, std::vector<EarlyReturn>& early);

}  // namespace memopt::recompute
