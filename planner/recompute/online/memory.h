// Memory of a fixed size in which an iteration goes on, operation by operation: what is dropped when there is no room,
// and what is replayed when it is needed, in the order in which an online policy comes to it. What it does are steps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"

namespace memopt::recompute {

// A policy: what it may see, and when.
class Policy {
 public:
  virtual ~Policy() = default;
  // Of a block that is in memory and may be dropped: the least value is dropped first. `now`: nanoseconds, replays
  // included; `operation`: the one ahead.
  virtual double value(std::uint32_t block, double now, std::uint32_t operation) = 0;
  // A value that is found faster, and is no higher: of most blocks it says that others go first.
  virtual double at_least(std::uint32_t block, double now, std::uint32_t operation) = 0;
  virtual void dropped(std::uint32_t block) = 0;
  virtual void made(std::uint32_t block) = 0;  // by its launch, or a replay
  virtual void used(std::uint32_t block, double now) = 0;
};

// The steps by which the iteration stays within `budget` bytes, or nothing where the policy finds no way. What a replay
// needed though the program has freed it stays until there is no room, or the end. Not more than `most_ns` of replays:
// it is given up then, with some hundred replays of each launch, and where `ends` says so. Thread-safe, a policy each.
std::optional<Steps> run_online(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, Policy& policy, double most_ns,
                                const std::function<bool()>& ends = {});

}  // namespace memopt::recompute
