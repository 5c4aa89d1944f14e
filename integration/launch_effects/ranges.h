// Which bytes of a block have been written: disjoint ranges of offsets.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace launch_effects {

struct Range {
  std::uint64_t begin;
  std::uint64_t end;  // exclusive
};

class Ranges {
 public:
  void add(Range range);
  bool empty() const { return ends_.empty(); }
  bool contains(Range range) const;
  std::vector<Range> inside(Range range) const;   // what is written of it
  std::vector<Range> missing(Range range) const;  // and what is not

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin
};

}  // namespace launch_effects
