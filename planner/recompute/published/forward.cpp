#include "planner/recompute/published/forward.h"

namespace memopt::recompute {
namespace {

using swap::Kind;

std::uint32_t find_turn(const swap::Problem& problem) {
  std::int64_t load = 0, peak = 0;
  std::uint32_t turn = 0;
  for (std::uint32_t i = 0; i < problem.operations.size(); ++i) {
    const swap::Operation& operation = problem.operations[i];
    if (operation.kind != Kind::kMalloc && operation.kind != Kind::kFree) continue;
    const auto bytes = static_cast<std::int64_t>(problem.blocks[operation.block].bytes);
    load += operation.kind == Kind::kMalloc ? bytes : -bytes;
    if (load <= peak) continue;
    peak = load;
    turn = i;
  }
  return turn;
}

// Whenever it is used it can be made again.
bool is_lasting(const Graph& graph, std::uint32_t block) { return graph.lasts(block); }

// By block: that can be made again, but not on its own, or of such a block.
std::vector<std::uint8_t> find_entangled(const Graph& graph) {
  std::vector<std::uint8_t> entangled(graph.makers.size());
  for (const Launch& launch : graph.launches) {
    for (const Use& read : launch.reads) {
      const std::uint32_t r = read.block;
      const bool in_place = graph.can_be_made(r) && names(launch.writes, r);
      const bool made = is_lasting(graph, r) && read.version == graph.last_version(r);
      if (!in_place && (!made || entangled[r] == 0)) continue;
      for (const Use& write : launch.writes) {
        if (write.block != r) entangled[write.block] = 1;
      }
    }
  }
  return entangled;
}

}  // namespace

Forward::Forward(const swap::Problem& problem, const Graph& graph) : turn(find_turn(problem)) {
  const std::size_t blocks = problem.blocks.size();
  while (launches < graph.launches.size() && graph.launches[launches].first < turn) ++launches;
  before.reserve(graph.launches.size());
  for (const Launch& launch : graph.launches) {
    std::uint32_t at = launch.first;
    while (at > 0 && problem.operations[at - 1].kind == Kind::kMalloc) --at;
    before.push_back(at);
  }
  const auto n = static_cast<std::uint32_t>(problem.operations.size());
  freed.assign(blocks, kNone);
  behind_frees.resize(n + 1, n);
  for (std::uint32_t i = n; i-- > 0;) {
    const bool frees = problem.operations[i].kind == Kind::kFree;
    behind_frees[i] = frees ? behind_frees[i + 1] : i;
    if (frees) freed[problem.operations[i].block] = i;
  }
  may_leave = find_entangled(graph);
  for (std::uint32_t b = 0; b < blocks; ++b) {
    may_leave[b] = is_lasting(graph, b) && graph.makers[b].back() < launches && may_leave[b] == 0 ? 1 : 0;
  }

  std::vector<std::vector<std::uint32_t>> used(blocks);
  last_read.assign(blocks, kNone);
  for (std::uint32_t l = 0; l < graph.launches.size(); ++l) {
    for (const Use& read : graph.launches[l].reads) last_read[read.block] = l;
    if (l >= launches) continue;
    first_made.push_back(static_cast<std::uint32_t>(made.size()));
    for (const std::vector<Use>* uses : {&graph.launches[l].reads, &graph.launches[l].writes}) {
      for (const Use& use : *uses) {
        if (!graph.can_be_made(use.block)) continue;
        if (graph.makers[use.block].front() == l) {
          made.push_back(use.block);
        } else if (used[use.block].empty() || used[use.block].back() != l) {
          used[use.block].push_back(l);
        }
      }
    }
  }
  first_made.push_back(static_cast<std::uint32_t>(made.size()));
  for (const std::vector<std::uint32_t>& of : used) {
    first_user.push_back(static_cast<std::uint32_t>(users.size()));
    users.insert(users.end(), of.begin(), of.end());
  }
  first_user.push_back(static_cast<std::uint32_t>(users.size()));
}

}  // namespace memopt::recompute
