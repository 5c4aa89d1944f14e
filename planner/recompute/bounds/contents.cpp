#include "planner/recompute/bounds/contents.h"

#include <algorithm>
#include <cstddef>

namespace memopt::recompute {

Contents::Contents(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph)
    : graph_(graph),
      first_(problem.blocks.size(), kNone),
      reads_(graph.launches.size()),
      finds_(graph.launches.size()) {
  find_contents(problem, liveness);
  find_replays(problem, liveness);
  find_other_bytes(problem, liveness);
}

// The last launch that begins before the operation.
std::uint32_t Contents::last_before(std::uint64_t operation) const {
  const auto found = std::partition_point(graph_.launches.begin(), graph_.launches.end(),
                                          [&](const Launch& launch) { return launch.first < operation; });
  return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, found - graph_.launches.begin()) - 1);
}

void Contents::find_contents(const swap::Problem& problem, const swap::Liveness& liveness) {
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (!graph_.can_be_made(b)) continue;
    first_[b] = static_cast<std::uint32_t>(contents_.size());
    const std::vector<std::uint32_t>& makers = graph_.makers[b];
    for (std::size_t v = 0; v < makers.size(); ++v) {
      const std::uint32_t until = v + 1 < makers.size() ? makers[v + 1] : last_before(liveness.of[b].freed);
      contents_.push_back({b, makers[v], until, static_cast<double>(problem.blocks[b].bytes)});
    }
  }
  for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
    const Launch& launch = graph_.launches[l];
    for (const Use& read : launch.reads) {
      if (graph_.can_be_made(read.block)) reads_[l].push_back(first_[read.block] + read.version - 1);
    }
    finds_[l] = reads_[l];
    for (const Use& write : launch.writes) {
      if (!graph_.can_be_made(write.block)) continue;
      const std::uint32_t c = first_[write.block] + write.version - 1;
      if (write.version > 1 && std::find(finds_[l].begin(), finds_[l].end(), c - 1) == finds_[l].end()) {
        finds_[l].push_back(c - 1);
      }
    }
  }
}

// What a replay writes and can't be made again stays as it is, so only what it reads counts, and what lives on.
void Contents::find_replays(const swap::Problem& problem, const swap::Liveness& liveness) {
  std::vector<std::vector<std::uint32_t>> writers(problem.blocks.size());
  for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
    for (const Use& write : graph_.launches[l].writes) writers[write.block].push_back(l);
  }
  const auto lives_on = [&](std::uint32_t b) { return swap::lives_on(problem, liveness, b); };
  for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
    const Launch& launch = graph_.launches[l];
    auto until = static_cast<std::int64_t>(graph_.launches.size());
    for (const Use& write : launch.writes) {
      if (lives_on(write.block)) until = -1;
    }
    for (const Use& read : launch.reads) {
      const std::uint32_t b = read.block;
      if (lives_on(b)) until = -1;
      if (graph_.can_be_made(b) || lives_on(b)) continue;
      if (read.version < writers[b].size()) {
        until = std::min<std::int64_t>(until, std::int64_t{writers[b][read.version]} - 1);
      } else if (!problem.blocks[b].persistent) {
        until = std::min<std::int64_t>(until, last_before(liveness.of[b].freed));
      }
    }
    replayed_until_.push_back(until < l ? -1 : until);
  }
}

void Contents::find_other_bytes(const swap::Problem& problem, const swap::Liveness& liveness) {
  const std::uint64_t n = problem.operations.size();
  std::uint64_t bytes = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    bytes += swap::instances_at_begin(problem, liveness, b) * problem.blocks[b].bytes;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const swap::Operation& operation = problem.operations[i];
    if (operation.kind == swap::Kind::kMalloc) {
      bytes += problem.blocks[operation.block].bytes;
    } else if (operation.kind == swap::Kind::kFree) {
      // A block that can be made again is a content since it was written.
      if (!graph_.can_be_made(operation.block)) bytes -= problem.blocks[operation.block].bytes;
    } else if (graph_.begins(i)) {
      const std::uint32_t l = graph_.launch_at[i];
      other_bytes_.push_back(bytes);
      for (const Use& write : graph_.launches[l].writes) {
        if (write.version == 1 && graph_.can_be_made(write.block)) bytes -= problem.blocks[write.block].bytes;
      }
    }
  }
}

}  // namespace memopt::recompute
