// A program's operations, told to a planner as the agent would, with check points where the daemon has them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/record_builder.h"
#include "shm/channel.h"

namespace memopt::planner {

struct FoundPlan {
  std::uint64_t at = 0;          // sequence
  std::uint64_t operations = 0;  // of the iteration
  IterationPlan plan;
};

class Stream {
 public:
  std::uint32_t lane = 0;
  IterationPlanner planner;
  RecordBuilder builder;
  std::vector<FoundPlan> plans;

  explicit Stream(const IterationPlanner::Options& options = {}) : planner(options) {}

  std::uint64_t malloc(std::uint64_t bytes, std::uint64_t stack = 1, std::uint64_t return_address = 7) {
    add(builder.malloc(next_block_, bytes, stack, return_address,
                       std::exchange(next_address_, next_address_ + bytes / 512 * 512 + 512)));
    return next_block_++;
  }
  void free(std::uint64_t block) { add(builder.free(block)); }
  void launch(std::uint32_t function, std::initializer_list<std::uint64_t> blocks) {
    add(builder.launch(function, {blocks.begin(), blocks.size()}));
  }
  void launch(std::uint32_t function, const std::vector<std::uint64_t>& blocks) {
    add(builder.launch(function, {blocks.data(), blocks.size()}));
  }
  // So long the last launch took, and so long nothing happened.
  void took(std::uint64_t ticks) { builder.ticks += ticks; }
  void pause(std::uint64_t ticks) { builder.ticks += ticks; }
  void deviate() { add(builder.state(shm::StateChange::kDeviated, plans.size(), 0)); }

  void add(const shm::RecordView& record) {
    planner.add(lane, record);
    if (builder.sequence() < check_point_) return;
    check_point_ = shm::next_check_point(check_point_);
    check();
  }
  void check() {
    if (!planner.check()) return;
    plans.push_back({builder.sequence(), planner.plan()->lifetimes.operations, *planner.plan()});
    planner.sent(plans.size());
  }

 private:
  std::uint64_t next_block_ = 1;
  std::uint64_t next_address_ = std::uint64_t{1} << 40;  // side by side, as an agent has early blocks
  std::uint64_t check_point_ = shm::kFirstCheckPoint;
};

}  // namespace memopt::planner
