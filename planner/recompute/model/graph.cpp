#include "planner/recompute/model/graph.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace memopt::recompute {
namespace {

using swap::Kind;
using swap::Operation;

class Maker {
 public:
  Maker(const swap::Problem& problem, const swap::Liveness& liveness)
      : problem_(problem),
        liveness_(liveness),
        read_by_(problem.blocks.size(), kNone),
        written_by_(problem.blocks.size(), kNone),
        begins_by_reading_(problem.blocks.size()) {}

  Graph make() {
    find_launches();
    find_makers();
    find_changed();
    for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
      Launch& launch = graph_.launches[l];
      mark(l);
      launch.valid_until = valid_until(launch);
      for (const Use& write : launch.writes) {
        if (graph_.can_be_made(write.block) && graph_.makers[write.block].back() == l) decide(write.block);
      }
    }
    find_needs();
    return std::move(graph_);
  }

 private:
  // What a launch reads and writes, found by block: it may have as many arguments as there are blocks. Of one launch at
  // a time.
  void mark(std::uint32_t l) {
    for (const Use& read : graph_.launches[l].reads) read_by_[read.block] = l;
    for (const Use& write : graph_.launches[l].writes) written_by_[write.block] = l;
    marked_ = l;
  }
  bool is_read(std::uint32_t b) const { return read_by_[b] == marked_; }
  bool is_written(std::uint32_t b) const { return written_by_[b] == marked_; }

  void find_launches() {
    const auto n = static_cast<std::uint32_t>(problem_.operations.size());
    std::vector<std::uint32_t> version(problem_.blocks.size());
    graph_.launch_at.assign(n, kNone);
    for (std::uint32_t i = 0; i < n;) {
      const auto end = static_cast<std::uint32_t>(swap::end_of_launch(problem_, i));
      const Operation& operation = problem_.operations[i];
      if (operation.kind == Kind::kMalloc || operation.kind == Kind::kFree) {
        i = end;
        continue;
      }
      Launch launch;
      launch.first = i;
      launch.end = end;
      launch.ns = (end < n ? problem_.operations[end].time : problem_.period) - operation.time;
      const auto number = static_cast<std::uint32_t>(graph_.launches.size());
      for (; i < end; ++i) {
        const Operation& one = problem_.operations[i];
        graph_.launch_at[i] = number;
        if (!swap::is_access(one) || problem_.blocks[one.block].bytes == 0) continue;
        const bool writes = one.kind == Kind::kWrite;
        if (std::exchange((writes ? written_by_ : read_by_)[one.block], number) == number) continue;
        (writes ? launch.writes : launch.reads).push_back({one.block, version[one.block]});
      }
      for (Use& write : launch.writes) {
        if (version[write.block] == 0) begins_by_reading_[write.block] = read_by_[write.block] == number;
        write.version = ++version[write.block];
      }
      graph_.launches.push_back(std::move(launch));
    }
  }

  // Of blocks that live within the iteration. Of one that lives on into the next, a replay would be of another
  // instance.
  void find_makers() {
    graph_.makers.resize(problem_.blocks.size());
    graph_.made_until.resize(problem_.blocks.size());
    graph_.last_use.resize(problem_.blocks.size());
    for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
      for (const Use& write : graph_.launches[l].writes) graph_.makers[write.block].push_back(l);
    }
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (!graph_.can_be_made(b)) continue;
      const Launch& first = graph_.launches[graph_.makers[b].front()];
      const swap::Block& block = problem_.blocks[b];
      const std::uint64_t used = liveness_.accesses_of(b).front().position;
      if (block.persistent || block.pinned || lives_on(b) || used < first.first || used >= first.end ||
          begins_by_reading_[b]) {
        graph_.makers[b].clear();
      }
    }
  }

  std::uint64_t valid_until(const Launch& launch) const {
    std::uint64_t until = problem_.operations.size();
    for (const Use& read : launch.reads) {
      const std::uint32_t b = read.block;
      if (graph_.can_be_made(b) && is_written(b)) continue;  // in place: its makers come in order
      until = std::min(until, there_until(read, launch));
    }
    for (const Use& write : launch.writes) {
      // Of those that are not made again, one that is changed in place could not be read as it was, and one that lives
      // on into the next iteration is not touched. What else is written anew (a workspace that is there all the time)
      // a replay writes to bytes of its own.
      const bool made = graph_.can_be_made(write.block);
      if (!made && (is_read(write.block) || lives_on(write.block))) until = 0;
    }
    return until;
  }

  bool lives_on(std::uint32_t b) const {
    return !problem_.blocks[b].persistent && liveness_.of[b].freed >= problem_.operations.size();
  }

  std::uint64_t made_until(std::uint32_t b) const {
    std::uint64_t until = problem_.operations.size();
    for (const std::uint32_t l : graph_.makers[b]) until = std::min(until, graph_.launches[l].valid_until);
    return until;
  }

  void find_changed() {
    changed_.resize(graph_.launches.size());
    for (std::uint32_t l = 0; l < graph_.launches.size(); ++l) {
      mark(l);
      for (const Use& read : graph_.launches[l].reads) {
        if (graph_.can_be_made(read.block) && is_written(read.block)) changed_[l].add(read.block);
      }
    }
  }

  // A maker changes another block in place, too: replayed for one, it would need the other as it was before.
  bool is_entangled(std::uint32_t b) const {
    return std::any_of(graph_.makers[b].begin(), graph_.makers[b].end(),
                       [&](std::uint32_t l) { return changed_[l].other_than(b); });
  }

  // As the launch read it: it can be made again, or is not dropped while it is needed.
  std::uint64_t there_until(const Use& read, const Launch& launch) const {
    const std::uint32_t b = read.block;
    const bool whole = graph_.can_be_made(b) && read.version == graph_.last_version(b);
    if (whole && graph_.last_use[b] <= graph_.made_until[b]) return graph_.made_until[b];
    return changed(b, launch);
  }

  // First change or end of what a launch reads, behind it.
  std::uint64_t changed(std::uint32_t b, const Launch& launch) const {
    const std::uint64_t n = problem_.operations.size();
    const bool persistent = problem_.blocks[b].persistent;
    // It may be another iteration's instance.
    if (lives_on(b)) return 0;
    std::uint64_t until = persistent ? n : liveness_.of[b].freed;
    for (const swap::Access& access : liveness_.accesses_of(b)) {
      const std::uint64_t at = persistent ? access.position % n : access.position;
      if (access.write && at >= launch.first) until = std::min(until, at);
    }
    return until;
  }

  void find_needs() {
    graph_.last_need = graph_.last_use;
    for (std::size_t l = graph_.launches.size(); l-- > 0;) {
      const Launch& launch = graph_.launches[l];
      std::uint64_t need = 0;
      for (const Use& write : launch.writes) {
        if (graph_.can_be_made(write.block)) need = std::max(need, graph_.last_need[write.block]);
      }
      for (const Use& read : launch.reads) {
        graph_.last_need[read.block] = std::max(graph_.last_need[read.block], need);
      }
    }
  }

  // Once all of its makers are known.
  void decide(std::uint32_t b) {
    graph_.made_until[b] = is_entangled(b) ? 0 : made_until(b);
    graph_.last_use[b] = liveness_.accesses_of(b).back().position;
  }

  // Of the blocks that a launch changes in place and that can be made again: two, if there are so many.
  struct Changed {
    std::uint32_t one = kNone, another = kNone;

    void add(std::uint32_t b) { (one == kNone ? one : another) = b; }
    bool other_than(std::uint32_t b) const { return (one != kNone && one != b) || (another != kNone && another != b); }
  };

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  Graph graph_;
  std::vector<std::uint32_t> read_by_, written_by_;  // by block: the last launch that was marked
  std::uint32_t marked_ = kNone;
  std::vector<bool> begins_by_reading_;  // by block: the first launch that writes it
  std::vector<Changed> changed_;         // by launch
};

}  // namespace

Graph make_graph(const swap::Problem& problem, const swap::Liveness& liveness) {
  return Maker(problem, liveness).make();
}

}  // namespace memopt::recompute
