#include <algorithm>
#include <map>
#include <utility>

#include "planner/recompute/observed/known.h"

namespace memopt::recompute {
namespace {

class Finder {
 public:
  Finder(const Known& known, const swap::Liveness& liveness, const Graph& graph)
      : known_(known), liveness_(liveness), graph_(graph), writers_(known.problem.blocks.size()) {
    for (std::uint32_t l = 0; l < graph.launches.size(); ++l) {
      for (const Use& write : graph.launches[l].writes) writers_[write.block].push_back(l);
    }
  }

  Doubts find() {
    Doubts result;
    for (const Launch& launch : graph_.launches) {
      if (launch.writes.empty()) continue;
      ++result.writing;
      if (makes_again(launch)) ++result.replayed;
    }
    std::map<std::pair<Doubt, std::uint32_t>, Doubts::Cause> causes;
    const std::vector<swap::Block>& blocks = known_.problem.blocks;
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].persistent || writers_[b].empty() || swap::lives_on(known_.problem, liveness_, b)) continue;
      result.bytes += blocks[b].bytes;
      ++result.blocks;
      if (graph_.lasts(b)) {
        result.lasting_bytes += blocks[b].bytes;
        ++result.lasting_blocks;
        continue;
      }
      const auto [doubt, launch] = cause_of(b);
      const std::uint32_t kernel = known_.origins[graph_.launches[launch].first].kernel;
      Doubts::Cause& cause = causes[{doubt, kernel}];
      cause.doubt = doubt;
      cause.kernel = kernel;
      cause.bytes += blocks[b].bytes;
      ++cause.blocks;
    }
    for (const auto& [key, cause] : causes) result.causes.push_back(cause);
    std::stable_sort(result.causes.begin(), result.causes.end(),
                     [](const Doubts::Cause& a, const Doubts::Cause& b) { return a.bytes > b.bytes; });
    return result;
  }

 private:
  static bool may_be_replayed(const Launch& launch) { return launch.valid_until >= launch.end; }

  // One that changes a block in place is of use only if the others that do may be replayed, too.
  bool makes_again(const Launch& launch) const {
    return may_be_replayed(launch) && std::any_of(launch.writes.begin(), launch.writes.end(), [&](const Use& write) {
             return graph_.can_be_made(write.block) && graph_.made_until[write.block] >= launch.end;
           });
  }

  bool touches_what_lives_on(const Launch& launch) const {
    const auto lives_on = [&](const Use& use) { return swap::lives_on(known_.problem, liveness_, use.block); };
    return std::any_of(launch.reads.begin(), launch.reads.end(), lives_on) ||
           std::any_of(launch.writes.begin(), launch.writes.end(), lives_on);
  }

  std::pair<Doubt, std::uint32_t> cause_of(std::uint32_t b) const {
    const std::vector<std::uint32_t>& writers = writers_[b];
    for (const std::uint32_t l : writers) {
      const Launch& launch = graph_.launches[l];
      if (may_be_replayed(launch)) continue;
      const Doubt doubt = known_.origins[launch.first].doubt;
      if (doubt != Doubt::kNoDoubt) return {doubt, l};
      return {touches_what_lives_on(launch) ? Doubt::kLivesOn : Doubt::kSourcesGone, l};
    }
    if (known_.problem.blocks[b].pinned) return {Doubt::kKept, writers.front()};
    // Nothing is in the way of its launches: it is read before it is written, they change other blocks too, or what
    // they read goes before its last use.
    if (!graph_.can_be_made(b)) return {Doubt::kMayChange, writers.front()};
    const auto until = [&](std::uint32_t l) { return graph_.launches[l].valid_until; };
    const std::uint32_t first_gone =
        *std::min_element(writers.begin(), writers.end(),
                          [&](std::uint32_t one, std::uint32_t other) { return until(one) < until(other); });
    if (until(first_gone) < graph_.last_use[b]) return {Doubt::kSourcesGone, first_gone};
    return {Doubt::kMayChange, writers.back()};
  }

  const Known& known_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> writers_;  // by block
};

}  // namespace

Doubts find_doubts(const Known& known, const swap::Liveness& liveness, const Graph& graph) {
  return Finder(known, liveness, graph).find();
}

}  // namespace memopt::recompute
