// What there is to be kept or made again, when the program needs it, and when each launch can be replayed: of any plan
// that the format allows (docs/formats/plan-json.md, "Computing again"). graph.h says less where our own planner allows
// itself less.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

// A block that can be made again, in the version in which one launch of the program leaves it.
struct Content {
  std::uint32_t block = 0;
  std::uint32_t maker = 0;        // launch
  std::uint32_t there_until = 0;  // the last launch that begins before the program overwrites or frees it
  double bytes = 0;
};

class Contents {
 public:
  Contents(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph);

  std::uint32_t launches() const { return static_cast<std::uint32_t>(graph_.launches.size()); }
  double ns(std::uint32_t launch) const { return graph_.launches[launch].ns; }
  // Those of a block are side by side.
  const std::vector<Content>& all() const { return contents_; }

  // What the launch reads; and what has to be there for it if the program runs it: what it overwrites, too.
  const std::vector<std::uint32_t>& reads(std::uint32_t launch) const { return reads_[launch]; }
  const std::vector<std::uint32_t>& finds(std::uint32_t launch) const { return finds_[launch]; }

  // The last launch behind which it can be replayed: what it reads and can't be made again is overwritten by the next
  // one, or freed before that. Below 0: never.
  std::int64_t replayed_until(std::uint32_t launch) const { return replayed_until_[launch]; }
  // When the launch begins to run, besides contents: blocks that can't be made again, and what is not written yet.
  std::uint64_t other_bytes(std::uint32_t launch) const { return other_bytes_[launch]; }

 private:
  void find_contents(const swap::Problem& problem, const swap::Liveness& liveness);
  void find_replays(const swap::Problem& problem, const swap::Liveness& liveness);
  void find_other_bytes(const swap::Problem& problem, const swap::Liveness& liveness);
  std::uint32_t last_before(std::uint64_t operation) const;

  const Graph& graph_;
  std::vector<Content> contents_;
  std::vector<std::uint32_t> first_;                       // content, by block
  std::vector<std::vector<std::uint32_t>> reads_, finds_;  // by launch
  std::vector<std::int64_t> replayed_until_;
  std::vector<std::uint64_t> other_bytes_;
};

}  // namespace memopt::recompute
