// The part of an iteration that lies before its turn, which is where its load peaks: what published strategies, made
// for layers that run forward and then backward, take as forward.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

struct Forward {
  Forward(const swap::Problem& problem, const Graph& graph);

  // Launches before the turn that use the block behind the one that makes it first, ascending.
  std::span<const std::uint32_t> users_of(std::uint32_t block) const {
    return std::span(users).subspan(first_user[block], first_user[block + 1] - first_user[block]);
  }
  bool is_used_within(std::uint32_t block, std::uint32_t from, std::uint32_t to) const {
    const auto of = users_of(block);
    const auto at = std::lower_bound(of.begin(), of.end(), from);
    return at != of.end() && *at < to;
  }
  // That the launch before the turn makes first.
  std::span<const std::uint32_t> made_by(std::uint32_t launch) const {
    return std::span(made).subspan(first_made[launch], first_made[launch + 1] - first_made[launch]);
  }

  // Before anything else happens from the operation on.
  bool is_freed_at_once(std::uint32_t block, std::uint32_t from) const {
    return freed[block] >= from && freed[block] < behind_frees[from];
  }

  std::uint32_t turn = 0;      // operation
  std::uint32_t launches = 0;  // that are before it
  // By launch: the operation before which replays for it come. Before its outputs are allocated.
  std::vector<std::uint32_t> before;
  // By block: made for good before the turn, and can be made again whatever is gone. Where a launch changes several
  // blocks in place, one of them could be made again only together with the others: such blocks stay.
  std::vector<std::uint8_t> may_leave;
  std::vector<std::uint32_t> last_read;     // by block: the last launch that reads it, or kNone
  std::vector<std::uint32_t> freed;         // by block: operation, or kNone
  std::vector<std::uint32_t> behind_frees;  // by operation: the first from there on that is no free
  std::vector<std::uint32_t> users, first_user, made, first_made;
};

}  // namespace memopt::recompute
