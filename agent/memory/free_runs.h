// The free runs of a piece of memory, each as long as it can be: neighbours are joined. Of the smallest that are large
// enough the one is found of which the fewest whole units are broken: what follows one another lies side by side then,
// and what stays of it keeps few units when the rest is freed.
//
// Nothing is allocated but by make_room(), so that a free can't fail.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace memopt::agent {

class FreeRuns {
 public:
  FreeRuns() = default;
  FreeRuns(const FreeRuns&) = delete;
  FreeRuns& operator=(const FreeRuns&) = delete;

  // Whole ones of it are counted; while there is no run.
  void set_unit(std::uint64_t unit) { unit_ = unit; }

  // There can be so many runs. Throws std::bad_alloc.
  void make_room(std::size_t runs);

  // [begin, end) is free from now on; no byte of it was. There must be room for one run more.
  void add(std::uint64_t begin, std::uint64_t end) noexcept;
  // [begin, end), which lies in a run, is not free any more. There must be room for one run more.
  void remove(std::uint64_t begin, std::uint64_t end) noexcept;
  void clear() noexcept;

  // Where `bytes` can be taken that begin at a multiple of `alignment`, a power of two. False: nowhere.
  bool find(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* begin) const noexcept;
  // Likewise, without breaking any whole unit; looks at some runs only.
  bool find_beside(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* begin) const noexcept;
  // Are `bytes` free from `begin` on, where a run begins?
  bool begins_at(std::uint64_t begin, std::uint64_t bytes) const noexcept;
  // Where `bytes` can be taken from the beginning of a whole unit of the largest run. False: nowhere.
  bool find_in_largest(std::uint64_t bytes, std::uint64_t* begin) const noexcept;
  // The run that ends at `end`: where it begins; `end` itself if there is none.
  std::uint64_t begin_of_last(std::uint64_t end) const noexcept;

  std::size_t count() const { return by_begin_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t whole_units() const { return units_; }

  // Visits runs, the largest first, until visit(begin, end) returns false; it may change nothing.
  template <typename Visit>
  void for_each_by_size(Visit&& visit) const {
    for (auto at = by_size_.rbegin(); at != by_size_.rend(); ++at) {
      if (!visit(at->second, at->second + at->first)) return;
    }
  }

 private:
  using ByBegin = std::map<std::uint64_t, std::uint64_t>;            // begin, end
  using BySize = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // bytes, begin
  void insert(std::uint64_t begin, std::uint64_t end) noexcept;      // with spare nodes
  void erase(ByBegin::iterator run) noexcept;                        // which become spare
  std::size_t units_in(std::uint64_t begin, std::uint64_t end) const noexcept;
  // Looks at the smallest runs for one of which at most `enough` units are broken, or
  // the fewest. How many; kNowhere.
  std::size_t find_best(std::uint64_t bytes, std::uint64_t alignment, std::size_t enough,
                        std::uint64_t* begin) const noexcept;

  static constexpr std::size_t kNowhere = ~std::size_t{0};

  std::uint64_t unit_ = 1;
  ByBegin by_begin_;
  BySize by_size_;
  std::vector<ByBegin::node_type> spare_begins_;  // as many of the one as of the other
  std::vector<BySize::node_type> spare_sizes_;
  std::uint64_t bytes_ = 0;
  std::size_t units_ = 0;
};

}  // namespace memopt::agent
