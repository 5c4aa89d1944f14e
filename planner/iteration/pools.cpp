#include "planner/iteration/pools.h"

#include <algorithm>
#include <functional>
#include <map>

#include "planner/iteration/hash.h"
#include "planner/iteration/iteration_plan.h"

namespace memopt::planner {
namespace {

// Above this many entries of curves, blocks that need no pool stay outside.
constexpr std::uint64_t kMostEntries = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostJoining = 4096;

// Calls `step` for each of the at most two spans of [born, freed] on the circle of an iteration; how often it is there
// always, besides.
std::uint64_t on_circle(const MallocLife& life, std::uint64_t operations,
                        const std::function<void(std::uint64_t, std::uint64_t)>& step) {
  const std::uint64_t length = life.freed - life.born + 1;
  const std::uint64_t rest = length % operations;
  const std::uint64_t end = life.born + rest;
  if (rest != 0) {
    step(life.born, std::min(end, operations));
    if (end > operations) step(0, end - operations);
  }
  return length / operations;
}

// How many of some blocks live at each rank.
class Count {
 public:
  explicit Count(std::uint64_t operations) : operations_(operations), at_(operations, 0) {}
  void add(const MallocLife& life) {
    const std::uint64_t always = on_circle(life, operations_, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t i = from; i < to; ++i) ++at_[i];
    });
    if (always == 0) return;
    for (std::uint32_t& count : at_) count += static_cast<std::uint32_t>(always);
  }
  std::uint32_t most() const { return *std::max_element(at_.begin(), at_.end()); }
  bool below(const MallocLife& life, std::uint32_t limit) const {
    bool below = true;
    const std::uint64_t always = on_circle(life, operations_, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t i = from; i < to && below; ++i) below = at_[i] < limit;
    });
    return below && always == 0;
  }

 private:
  std::uint64_t operations_;
  std::vector<std::uint32_t> at_;
};

bool overlap(std::vector<std::pair<std::uint64_t, std::uint64_t>> spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) return true;
  }
  return false;
}

class Chooser {
 public:
  explicit Chooser(const IterationLifetimes& lifetimes) : lifetimes_(lifetimes), n_(lifetimes.operations) {}

  Pools choose() {
    for (const LaneMallocs& lane : lifetimes_.lanes) {
      pools_.of.emplace_back(lane.mallocs.size(), Pools::kNoPool);
      auto& leads = pools_.leads.emplace_back(lane.mallocs.size());
      for (std::uint32_t i = 0; i < leads.size(); ++i) leads[i] = i;
    }
    find_members();
    std::uint32_t pool = 0;
    for (auto at = members_.rbegin(); at != members_.rend(); ++at, ++pool) {
      Count& count = counts_.emplace_back(n_);
      for (const Member& member : at->second) {
        pools_.of[member.lane][member.malloc] = pool;
        count.add(life(member));
      }
      pools_.pools.push_back({at->first, count.most()});
    }
    if (!pools_.pools.empty() && n_ * (pools_.pools.size() + 1) <= kMostEntries) join_others();
    return std::move(pools_);
  }

 private:
  struct Member {
    std::uint32_t lane;
    std::uint32_t malloc;
  };
  const MallocLife& life(const Member& member) const { return lifetimes_.lanes[member.lane].mallocs[member.malloc]; }

  // Those that cannot have a place of their own.
  void find_members() {
    for (std::uint32_t lane = 0; lane < lifetimes_.lanes.size(); ++lane) {
      const std::vector<MallocLife>& mallocs = lifetimes_.lanes[lane].mallocs;
      const std::size_t length = mallocs.size() / lifetimes_.lanes[lane].parts;
      for (std::uint32_t j = 0; j < length; ++j) {
        if (mallocs[j].places == 0) continue;  // and so are those that can't be told from it
        std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
        bool pooled = false;
        for (std::size_t i = j; i < mallocs.size(); i += length) {
          pooled |= mallocs[i].places > 1;
          pooled |= on_circle(mallocs[i], n_,
                              [&](std::uint64_t from, std::uint64_t to) { spans.emplace_back(from, to); }) != 0 &&
                    length != mallocs.size();
        }
        pooled = pooled || overlap(std::move(spans));
        for (std::size_t i = j; i < mallocs.size(); i += length) {
          const auto malloc = static_cast<std::uint32_t>(i);
          if (pooled) {
            members_[place_bytes(mallocs[i].bytes)].push_back({lane, malloc});
          } else {
            pools_.leads[lane][i] = j;
          }
        }
      }
    }
  }

  // Places that are free while the load of all else is largest are for blocks that make it so.
  void join_others() {
    std::vector<std::uint64_t> load(n_, 0);
    std::vector<Member> others;
    const auto add = [&](const MallocLife& life, std::uint64_t bytes) {
      const std::uint64_t always = on_circle(life, n_, [&](std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) load[i] += bytes;
      });
      for (std::uint64_t i = 0; always != 0 && i < n_; ++i) load[i] += always * bytes;
    };
    for (std::uint32_t lane = 0; lane < lifetimes_.lanes.size(); ++lane) {
      for (std::uint32_t i = 0; i < lifetimes_.lanes[lane].mallocs.size(); ++i) {
        const Member member{lane, i};
        if (pools_.of[lane][i] != Pools::kNoPool || life(member).places == 0) continue;
        add(life(member), place_bytes(life(member).bytes));
        if (pools_.leads[lane][i] == i) others.push_back(member);
      }
    }
    std::stable_sort(others.begin(), others.end(), [&](const Member& a, const Member& b) {
      const MallocLife &first = life(a), &second = life(b);
      if (first.bytes != second.bytes) return first.bytes > second.bytes;
      return first.freed - first.born > second.freed - second.born;
    });
    for (std::uint64_t joined = 0; joined < kMostJoining; ++joined) {
      const auto peak = static_cast<std::uint64_t>(std::max_element(load.begin(), load.end()) - load.begin());
      bool found = false;
      for (const Member& member : others) {
        if (pools_.of[member.lane][member.malloc] != Pools::kNoPool) continue;
        if (!any_of_place(member, [&](const MallocLife& its) { return lives_at(its, peak); })) continue;
        const std::uint32_t pool = pool_for(member);
        if (pool == Pools::kNoPool) continue;
        any_of_place(member, [&](const MallocLife& its) {
          counts_[pool].add(its);
          add(its, ~place_bytes(its.bytes) + 1);
          return false;
        });
        set_pool(member, pool);
        found = true;
        break;
      }
      if (!found) return;
    }
  }

  // Of those that have a place together with `lead`: whether `is` says so of one.
  template <typename Function>
  bool any_of_place(const Member& lead, const Function& is) const {
    const LaneMallocs& lane = lifetimes_.lanes[lead.lane];
    for (std::size_t i = lead.malloc; i < lane.mallocs.size(); i += lane.mallocs.size() / lane.parts) {
      if (is(lane.mallocs[i])) return true;
    }
    return false;
  }

  // The one with the smallest places that are large enough and free.
  std::uint32_t pool_for(const Member& lead) const {
    const std::uint64_t bytes = place_bytes(life(lead).bytes);
    for (std::size_t i = pools_.pools.size(); i-- > 0;) {
      if (pools_.pools[i].bytes < bytes) continue;
      // They are not there at the same time.
      if (!any_of_place(lead, [&](const MallocLife& its) { return !counts_[i].below(its, pools_.pools[i].places); })) {
        return static_cast<std::uint32_t>(i);
      }
    }
    return Pools::kNoPool;
  }

  void set_pool(const Member& lead, std::uint32_t pool) {
    const LaneMallocs& lane = lifetimes_.lanes[lead.lane];
    for (std::size_t i = lead.malloc; i < lane.mallocs.size(); i += lane.mallocs.size() / lane.parts) {
      pools_.of[lead.lane][i] = pool;
    }
  }

  bool lives_at(const MallocLife& life, std::uint64_t rank) const {
    const std::uint64_t later = rank < life.born ? rank + n_ : rank;
    return later <= life.freed;
  }

  const IterationLifetimes& lifetimes_;
  const std::uint64_t n_;
  Pools pools_;
  std::map<std::uint64_t, std::vector<Member>> members_;  // by bytes of their places
  std::vector<Count> counts_;                             // by pool
};

}  // namespace

Pools choose_pools(const IterationLifetimes& lifetimes) { return Chooser(lifetimes).choose(); }

layout::Problem pooled_problem(const IterationLifetimes& lifetimes, const Pools& pools) {
  layout::Problem problem;
  const std::uint64_t n = lifetimes.operations;
  for (std::size_t lane = 0; lane < lifetimes.lanes.size(); ++lane) {
    const std::vector<MallocLife>& mallocs = lifetimes.lanes[lane].mallocs;
    const std::size_t length = mallocs.size() / lifetimes.lanes[lane].parts;
    for (std::size_t i = 0; i < mallocs.size(); ++i) {
      if (pools.of[lane][i] != Pools::kNoPool || pools.leads[lane][i] != i || mallocs[i].places == 0) continue;
      std::vector<layout::Interval> spans;
      bool always = false;
      for (std::size_t each = i; each < mallocs.size(); each += length) {
        if (pools.leads[lane][each] != i) continue;
        always |= on_circle(mallocs[each], n, [&](std::uint64_t from, std::uint64_t to) {
                    spans.push_back({from, to});
                  }) != 0;
      }
      if (always) spans.assign(1, {0, n});
      std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
      std::size_t last = 0;
      for (std::size_t k = 1; k < spans.size(); ++k) {
        if (spans[k].begin == spans[last].end) {
          spans[last].end = spans[k].end;
        } else {
          spans[++last] = spans[k];
        }
      }
      spans.resize(last + 1);
      problem.add(place_bytes(mallocs[i].bytes), spans);
    }
  }
  for (const Pool& pool : pools.pools) problem.add(pool.bytes * pool.places, {0, n});
  add_blocks_in_slab(lifetimes, n, problem);
  return problem;
}

}  // namespace memopt::planner
