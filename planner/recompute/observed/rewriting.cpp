#include "planner/recompute/observed/rewriting.h"

#include <algorithm>

namespace memopt::recompute {

Rewriting::Rewriting(const swap::Problem& problem) {
  known_.problem = problem;
  known_.problem.operations.clear();
  known_.problem.operations.reserve(problem.operations.size());
  known_.origins.reserve(problem.operations.size());
}

void Rewriting::pass(swap::Operation operation) {
  operation.continues = false;
  known_.problem.operations.push_back(operation);
  known_.origins.emplace_back();
}

void Rewriting::launch(const swap::Operation& first, std::span<const Used> used, Known::Origin origin, bool unseen) {
  first_ = first;
  continues_ = false;
  // What writes nothing is not replayed for anything.
  unseen = unseen && std::any_of(used.begin(), used.end(), [](const Used& one) { return one.writes; });
  for (const Used& one : used) {
    if (one.reads) append(swap::Kind::kRead, one.block, one.age, origin);
  }
  if (unseen) append(swap::Kind::kRead, unseen_block(), 0, origin);
  for (const Used& one : used) {
    if (one.writes) append(swap::Kind::kWrite, one.block, one.age, origin);
  }
  if (unseen) append(swap::Kind::kWrite, unseen_block(), 0, origin);
  if (!continues_) append(swap::Kind::kNothing, swap::kNoBlock, 0, origin);
}

std::uint32_t Rewriting::unseen_block() {
  std::vector<swap::Block>& blocks = known_.problem.blocks;
  if (unseen_block_ != swap::kNoBlock) return unseen_block_;
  std::uint64_t id = 0;
  for (const swap::Block& block : blocks) id = std::max(id, block.id + 1);
  unseen_block_ = static_cast<std::uint32_t>(blocks.size());
  blocks.push_back({.id = id, .bytes = 1, .persistent = true, .pinned = true, .name = "what is not seen"});
  return unseen_block_;
}

void Rewriting::append(swap::Kind kind, std::uint32_t block, std::uint32_t age, Known::Origin origin) {
  known_.problem.operations.push_back({.kind = kind,
                                       .block = block,
                                       .time = first_.time,
                                       .age = age,
                                       .stream = first_.stream,
                                       .continues = continues_});
  known_.origins.push_back(origin);
  continues_ = true;
}

}  // namespace memopt::recompute
