// Who is made of whom, as far as both can be made again, and what it takes to bring back what is away.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recompute/model/graph.h"

namespace memopt::recompute {

struct Family {
  explicit Family(const Graph& graph);

  std::vector<std::vector<std::uint32_t>> parents, children;  // by block, each once
  std::vector<double> make_ns;                                // by block: of all of its makers
};

// Which blocks are away: dropped, or freed. The family must outlive it; one thread each.
class Away {
 public:
  explicit Away(const Family& family);

  void clear();
  // Whether that is new.
  bool set(std::uint32_t block, bool away);
  bool is(std::uint32_t block) const { return away_[block] != 0; }

  // Nanoseconds of all that is away among the block's ancestors, or descendants, reached through nothing that is there.
  double ancestors_ns(std::uint32_t block) { return walk(block, family_.parents); }
  double descendants_ns(std::uint32_t block) { return walk(block, family_.children); }

 private:
  double walk(std::uint32_t block, const std::vector<std::vector<std::uint32_t>>& next);

  const Family& family_;
  std::vector<std::uint8_t> away_;
  std::uint64_t walks_ = 0;
  std::vector<std::uint64_t> seen_;  // in the walk of this number
  std::vector<std::uint32_t> stack_;
};

}  // namespace memopt::recompute
