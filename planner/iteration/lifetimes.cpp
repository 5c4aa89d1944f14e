#include "planner/iteration/lifetimes.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "planner/iteration/candidate.h"
#include "planner/iteration/hash.h"
#include "planner/iteration/repeats.h"

namespace memopt::planner {
namespace {

// So many iterations back it is looked for blocks that have outlived two of them.
constexpr std::uint64_t kRememberedIterations = 128;

// Ranks of a lane's operations in the two observed repeats, by place in the lane's period, before the boundary is
// chosen.
struct LaneRanks {
  const LanePeriod* period = nullptr;
  std::vector<std::uint32_t> earlier, later;
};

class Ranking {
 public:
  Ranking(const OperationStore& store, const Iteration& iteration) : store_(store) {
    by_lane_.resize(store.lanes().size());
    for (const LanePeriod& lane : iteration.lanes) {
      LaneRanks& ranks = by_lane_[lane.lane];
      ranks.period = &lane;
      ranks.earlier.resize(lane.period);
      ranks.later.resize(lane.period);
    }
    earlier_ = merged(iteration, &LanePeriod::begin);
    later_ = merged(iteration, &LanePeriod::middle);
    for (std::uint32_t rank = 0; rank < later_.size(); ++rank) {
      set_rank(earlier_[rank], rank, &LanePeriod::begin, &LaneRanks::earlier);
      set_rank(later_[rank], rank, &LanePeriod::middle, &LaneRanks::later);
    }
  }

  const LaneRanks& lane(std::uint32_t lane) const { return by_lane_[lane]; }
  const std::vector<std::uint32_t>& later() const { return later_; }
  std::uint64_t count() const { return later_.size(); }

  // Position of an operation in time: rank, plus count() for each repeat that lies between it and the last one, shifted
  // so that the last repeat begins at 0 (earlier ones are negative).
  std::int64_t time(std::uint32_t operation) const {
    const Operation& op = store_.operations()[operation];
    const LaneRanks& ranks = by_lane_[op.lane];
    const auto n = static_cast<std::int64_t>(count());
    if (ranks.period == nullptr) {
      // Of a lane without a period: where it fell among the operations of the others.
      if (operation >= later_.front()) return rank_among(later_, operation);
      return operation < earlier_.front() ? -n - 1 : rank_among(earlier_, operation) - n;
    }
    const std::int64_t p = ranks.period->period;
    const std::int64_t from_middle = std::int64_t{op.lane_index} - ranks.period->middle();
    const std::int64_t repeat = from_middle >= 0 ? from_middle / p : -((-from_middle + p - 1) / p);
    const auto phase = static_cast<std::size_t>(from_middle - repeat * p);
    const std::uint32_t rank = repeat == -1 ? ranks.earlier[phase] : ranks.later[phase];
    return rank + repeat * n;
  }

 private:
  std::vector<std::uint32_t> merged(const Iteration& iteration, std::uint32_t (LanePeriod::*first)() const) const {
    std::vector<std::uint32_t> operations;
    operations.reserve(iteration.operations());
    for (const LanePeriod& lane : iteration.lanes) {
      const auto& all = store_.lanes()[lane.lane].operations;
      for (std::uint32_t i = 0; i < lane.period; ++i) operations.push_back(all[(lane.*first)() + i]);
    }
    std::sort(operations.begin(), operations.end());
    return operations;
  }
  void set_rank(std::uint32_t operation, std::uint32_t rank, std::uint32_t (LanePeriod::*first)() const,
                std::vector<std::uint32_t> LaneRanks::*which) {
    const Operation& op = store_.operations()[operation];
    LaneRanks& ranks = by_lane_[op.lane];
    (ranks.*which)[op.lane_index - (ranks.period->*first)()] = rank;
  }
  static std::int64_t rank_among(const std::vector<std::uint32_t>& sorted, std::uint32_t operation) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), operation) - sorted.begin();
    return std::min<std::int64_t>(place, static_cast<std::int64_t>(sorted.size()) - 1);
  }

  const OperationStore& store_;
  std::vector<LaneRanks> by_lane_;
  std::vector<std::uint32_t> earlier_, later_;
};

struct Life {
  std::uint64_t born = 0;      // rank
  std::uint64_t duration = 0;  // to the free
};

// Over all instances of the malloc at place `phase` that were seen to be freed in the two repeats.
Life life_of(const OperationStore& store, const Ranking& ranking, const LanePeriod& lane, std::uint32_t phase) {
  const auto& operations = store.lanes()[lane.lane].operations;
  const LaneRanks& ranks = ranking.lane(lane.lane);
  const std::uint32_t born = std::min(ranks.earlier[phase], ranks.later[phase]);
  const auto n = static_cast<std::int64_t>(ranking.count());
  const std::uint64_t token = store.operations()[operations[lane.middle() + phase]].token;
  std::int64_t latest = born;
  std::int64_t index = std::int64_t{lane.middle()} + phase;
  for (std::int64_t age = 0; index >= 0; ++age, index -= lane.period) {
    const Operation& op = store.operations()[operations[static_cast<std::size_t>(index)]];
    if (op.kind != OperationKind::kMalloc || op.token != token) break;
    const std::uint32_t death = store.blocks()[op.block].death;
    if (death == kNone) continue;
    const std::int64_t time = ranking.time(death);
    // Freed before both repeats: older ones tell nothing about the steady state.
    if (time < -n) break;
    latest = std::max(latest, time + age * n);
  }
  return {born, static_cast<std::uint64_t>(latest - born)};
}

// What an unsteady malloc is known by: itself, and the two mallocs of its lane before it. A block that is made once,
// when the program begins, may be as large as one of the iteration, and made by the same calls; what is before it
// differs.
std::uint64_t in_its_place(const std::array<std::uint64_t, 2>& before, std::uint64_t malloc) {
  return combine(combine(before[0], before[1]), malloc);
}

// Mallocs, in their places, whose blocks have outlived two iterations. `n`: operations in an iteration.
std::unordered_set<std::uint64_t> outliving_mallocs(const OperationStore& store, std::uint64_t n) {
  std::unordered_set<std::uint64_t> outliving;
  std::vector<std::array<std::uint64_t, 2>> before(store.lanes().size(), {0, 0});  // the last mallocs' tokens
  const auto& operations = store.operations();
  const std::uint64_t count = operations.size();
  for (std::uint64_t i = count - std::min(count, kRememberedIterations * n); i < count; ++i) {
    const Operation& op = operations[static_cast<std::uint32_t>(i)];
    if (op.kind != OperationKind::kMalloc) continue;
    std::array<std::uint64_t, 2>& last = before[op.lane];
    const std::uint32_t death = store.blocks()[op.block].death;
    if ((death == kNone ? count : death) - i >= 2 * n) outliving.insert(in_its_place(last, op.token));
    last = {last[1], op.token};
  }
  return outliving;
}

// The malloc of this operation, as it is known there.
std::uint64_t in_its_place(const OperationStore& store, std::uint32_t malloc) {
  const Operation& op = store.operations()[malloc];
  const auto& lane = store.lanes()[op.lane].operations;
  std::array<std::uint64_t, 2> before{0, 0};
  std::size_t found = 2;
  for (std::uint32_t i = op.lane_index; i != 0 && found != 0; --i) {
    const Operation& earlier = store.operations()[lane[i - 1]];
    if (earlier.kind == OperationKind::kMalloc) before[--found] = earlier.token;
  }
  return in_its_place(before, op.token);
}

// Live bytes behind each operation, by rank.
std::vector<std::uint64_t> load_curve(std::uint64_t operations,
                                      const std::vector<std::pair<Life, std::uint64_t>>& lives) {
  std::vector<std::uint64_t> load(operations, 0);  // differences, modulo 2^64
  std::uint64_t everywhere = 0;
  for (const auto& [life, bytes] : lives) {
    everywhere += life.duration / operations * bytes;
    const std::uint64_t rest = life.duration % operations;
    if (rest == 0) continue;
    const std::uint64_t end = life.born + rest;
    load[life.born] += bytes;
    if (end < operations) {
      load[end] -= bytes;
    } else {
      everywhere += bytes;
      load[end - operations] -= bytes;
    }
  }
  // A block that crosses is counted everywhere, taken off at its free and put on again at its birth.
  std::uint64_t sum = everywhere;
  for (std::uint64_t& value : load) value = sum += value;
  return load;
}

// Of what is live behind the operation, in bytes each.
std::vector<std::uint64_t> sizes_behind(std::uint64_t rank, std::uint64_t operations,
                                        const std::vector<std::pair<Life, std::uint64_t>>& lives) {
  std::vector<std::uint64_t> sizes;
  for (const auto& [life, bytes] : lives) {
    const std::uint64_t since = (rank + operations - life.born) % operations;
    const std::uint64_t count = life.duration / operations + (since < life.duration % operations ? 1 : 0);
    sizes.insert(sizes.end(), count, bytes);
  }
  return sizes;
}

// Makes one malloc of those at the same place of each part of `length` mallocs.
void join_parts(LaneMallocs& lane, std::size_t length, std::uint64_t operations) {
  const std::size_t parts = lane.parts;
  if (parts < 2) return;
  for (std::size_t j = 0; j < length; ++j) {
    const auto part = [&](std::size_t i) -> const MallocLife& { return lane.mallocs[j + i % parts * length]; };
    std::uint64_t places = 1, longest = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      longest = std::max(longest, part(i).freed - part(i).born);
      // The place of part i is taken again `places` parts later, which must be behind the free.
      while (part(i + places).born + (i + places) / parts * operations <= part(i).freed) ++places;
    }
    MallocLife& joined = lane.mallocs[j];
    if (joined.places == 0) continue;  // so are the others
    joined.places = static_cast<std::uint32_t>(places);
    joined.always = true;
    joined.freed = joined.born + std::max(longest, operations);
  }
  lane.mallocs.resize(length);
}

// What can't be told from an unsteady malloc is no more placed than that.
void leave_out_alike(LaneMallocs& lane) {
  const std::size_t length = lane.mallocs.size() / lane.parts;
  for (std::size_t j = 0; j < length; ++j) {
    bool left_out = false;
    for (std::size_t i = j; i < lane.mallocs.size(); i += length) left_out |= lane.mallocs[i].places == 0;
    for (std::size_t i = j; left_out && i < lane.mallocs.size(); i += length) {
      lane.mallocs[i].places = 0;
      lane.mallocs[i].always = false;
    }
  }
}

// What a lane's mallocs are told by.
std::vector<std::uint64_t> seen_of(const LaneMallocs& lane) {
  std::vector<std::uint64_t> sequence;
  for (const MallocLife& malloc : lane.mallocs) sequence.push_back(combine(malloc.bytes, malloc.return_address));
  return sequence;
}

// The lane whose position tells others where they are, as the agent chooses it (agent/memory/follower.h).
const LaneMallocs& clock_of(const std::vector<LaneMallocs>& lanes) {
  return *std::min_element(lanes.begin(), lanes.end(), [](const LaneMallocs& a, const LaneMallocs& b) {
    return std::tuple(a.parts, b.mallocs.size(), a.lane) < std::tuple(b.parts, a.mallocs.size(), b.lane);
  });
}

// Parts of a lane are told from each other by where another lane is, the clock: if that one allocates between any two
// beginnings of them.
void tell_parts_by_clock(std::vector<LaneMallocs>& lanes, std::uint64_t operations) {
  if (lanes.empty()) return;
  const LaneMallocs& clock = clock_of(lanes);
  if (clock.parts != 1) return;
  std::vector<std::uint64_t> ticks;  // over two iterations
  for (const MallocLife& malloc : clock.mallocs) {
    ticks.push_back(malloc.born);
    ticks.push_back(malloc.born + operations);
  }
  std::sort(ticks.begin(), ticks.end());
  for (LaneMallocs& lane : lanes) {
    if (lane.parts == 1) continue;
    const std::size_t length = lane.mallocs.size() / lane.parts;
    bool told = true;
    for (std::size_t i = 0; i < lane.mallocs.size() && told; i += length) {
      const bool last = i + length == lane.mallocs.size();
      const std::uint64_t begin = lane.mallocs[i].born;
      const std::uint64_t end = last ? lane.mallocs[0].born + operations : lane.mallocs[i + length].born;
      const auto tick = std::upper_bound(ticks.begin(), ticks.end(), begin);
      told = begin < end && tick != ticks.end() && *tick < end;
    }
    if (told) lane.parts = 1;
  }
}

// Where no lane can be the clock: a part may be told by how many operations of its lane lie before its first malloc, as
// an optimizer that allocates nothing does between one batch and the next. From such a part on the others are counted.
void tell_parts_by_gaps(std::vector<LaneMallocs>& lanes, const OperationStore& store,
                        const std::vector<std::uint32_t>& order) {
  if (lanes.empty() || clock_of(lanes).parts == 1) return;
  std::unordered_map<std::uint32_t, LaneMallocs*> by_number;
  std::unordered_set<std::uint32_t> planned;
  for (LaneMallocs& lane : lanes) {
    by_number.emplace(lane.lane, &lane);
    planned.insert(lane.operations.begin(), lane.operations.end());
  }
  std::unordered_map<std::uint32_t, std::uint64_t> since;
  // Twice, as what is before a lane's first malloc is behind its last one.
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t index : order) {
      const Operation operation = store.operations()[index];
      const auto lane = by_number.find(store.lanes()[operation.lane].number);
      if (lane == by_number.end() || operation.kind == OperationKind::kFree) continue;
      std::uint64_t& count = since[lane->first];
      if (operation.kind != OperationKind::kMalloc) {
        ++count;
      } else if (planned.contains(index)) {
        if (round == 1) lane->second->gaps.push_back(count);
        count = 0;
      }
    }
  }
  for (LaneMallocs& lane : lanes) {
    const std::size_t length = lane.mallocs.size() / lane.parts;
    std::map<std::uint64_t, std::uint32_t> times;
    for (std::size_t i = 0; i < lane.gaps.size(); i += length) ++times[lane.gaps[i]];
    const bool told =
        lane.parts > 1 && std::any_of(times.begin(), times.end(), [](const auto& gap) { return gap.second == 1; });
    if (told) {
      lane.parts = 1;
    } else {
      lane.gaps.clear();
    }
  }
}

}  // namespace

std::size_t inner_period(const std::vector<std::uint64_t>& sequence) {
  const std::vector<std::uint32_t> common = repeats_at_end(sequence);
  for (std::size_t d = 1; d < sequence.size(); ++d) {
    if (sequence.size() % d == 0 && common[d] == sequence.size() - d) return d;
  }
  return sequence.size();
}

std::uint32_t match_length(const std::vector<std::uint64_t>& sequence) {
  const std::size_t n = sequence.size();
  const std::size_t inner = inner_period(sequence);
  std::vector<std::uint64_t> twice(sequence);
  twice.insert(twice.end(), sequence.begin(), sequence.end());
  const std::vector<std::uint32_t> common = repeats_at_end(twice);
  std::size_t longest = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (i % inner != 0) longest = std::max<std::size_t>(longest, std::min<std::size_t>(common[i], n - 1));
  }
  return static_cast<std::uint32_t>(longest + 1);
}

namespace {

// Of two that share bytes the earlier one was freed unseen. `blocks` are in order of their numbers.
std::vector<BlockInSlab> without_overlaps(const std::vector<BlockInSlab>& blocks) {
  std::map<std::uint64_t, std::uint64_t> kept;  // end by offset
  for (const BlockInSlab& block : blocks) {
    const std::uint64_t end = block.offset + block.bytes;
    auto at = kept.lower_bound(block.offset);
    if (at != kept.begin() && std::prev(at)->second > block.offset) --at;
    while (at != kept.end() && at->first < end) at = kept.erase(at);
    kept.emplace(block.offset, end);
  }
  std::vector<BlockInSlab> result;
  for (const auto& [offset, end] : kept) result.push_back({offset, end - offset});
  return result;
}

// What a kept chunk has behind a block may be the slab's, and another block's there.
void join_overlapping(std::vector<BlockInSlab>* blocks) {
  std::sort(blocks->begin(), blocks->end(),
            [](const BlockInSlab& a, const BlockInSlab& b) { return a.offset < b.offset; });
  std::vector<BlockInSlab> joined;
  for (const BlockInSlab& block : *blocks) {
    if (!joined.empty() && block.offset < joined.back().offset + joined.back().bytes) {
      const std::uint64_t end = std::max(joined.back().offset + joined.back().bytes, block.offset + block.bytes);
      joined.back().bytes = end - joined.back().offset;
    } else {
      joined.push_back(block);
    }
  }
  *blocks = std::move(joined);
}

}  // namespace

std::vector<std::uint32_t> persistent_blocks(const OperationStore& store, const Iteration& iteration) {
  std::uint32_t last_repeat = kNone;
  for (const LanePeriod& lane : iteration.lanes) {
    last_repeat = std::min(last_repeat, store.lanes()[lane.lane].operations[lane.middle()]);
  }
  std::uint64_t work = 0;
  const Candidate candidate(store, iteration, work);
  std::vector<std::uint32_t> persistent;
  for (const std::uint32_t index : store.live_blocks()) {
    const Block block = store.blocks()[index];
    if (!block.known || !block.placeable || block.doubtful || candidate.transient(index)) continue;
    // Of a lane without a period: it may come and go.
    if (block.birth != kNone && iteration.find(block.lane) == nullptr && block.birth >= last_repeat) continue;
    persistent.push_back(index);
  }
  return persistent;
}

IterationLifetimes lifetimes(const OperationStore& store, const Iteration& iteration, bool joined,
                             const SlabRange& slab, Unsteady unsteady) {
  IterationLifetimes result;
  const Ranking ranking(store, iteration);
  const std::uint64_t n = ranking.count();
  result.operations = n;
  result.signature = iteration.signature;

  struct Planned {
    std::uint32_t operation;
    const LanePeriod* lane;
    Life life;
    bool placed;
  };
  std::vector<Planned> planned;
  std::vector<std::pair<Life, std::uint64_t>> lives, placed;
  std::unordered_set<std::uint64_t> outliving;
  if (unsteady == Unsteady::kNotPlaced) outliving = outliving_mallocs(store, n);
  const auto is_left_out = [&](std::uint32_t operation, const Life& life) {
    return life.duration < n && !outliving.empty() && outliving.contains(in_its_place(store, operation));
  };
  for (const LanePeriod& lane : iteration.lanes) {
    const auto& operations = store.lanes()[lane.lane].operations;
    for (std::uint32_t phase = 0; phase < lane.period; ++phase) {
      const std::uint32_t operation = operations[lane.middle() + phase];
      const Operation& op = store.operations()[operation];
      if (op.kind != OperationKind::kMalloc || !store.blocks()[op.block].placeable) continue;
      const Life life = life_of(store, ranking, lane, phase);
      planned.push_back({operation, &lane, life, !is_left_out(operation, life)});
      lives.emplace_back(life, store.blocks()[op.block].bytes);
      if (planned.back().placed) placed.push_back(lives.back());
    }
  }

  // The boundary: where least lives across. Only where both repeats have the same operations before it, so that no lane
  // is cut at different places; among equals the one whose following operations hash lowest, so that it does not depend
  // on where the repeat was found.
  const std::vector<std::uint64_t> load = load_curve(n, lives);
  std::vector<std::int64_t> ahead(store.lanes().size(), 0);
  std::uint64_t apart = 0;
  std::uint64_t boundary = 0, boundary_load = ~std::uint64_t{0}, boundary_hash = 0;
  std::vector<std::uint32_t> earlier(n);
  for (const LanePeriod& lane : iteration.lanes) {
    const LaneRanks& ranks = ranking.lane(lane.lane);
    for (const std::uint32_t rank : ranks.earlier) earlier[rank] = lane.lane;
  }
  for (std::uint64_t rank = 0; rank < n; ++rank) {
    if (apart == 0) {
      const std::uint64_t across = load[(rank + n - 1) % n];
      if (across <= boundary_load) {
        std::uint64_t hash = 0;
        for (std::uint64_t k = 0; k < 8; ++k) {
          hash = combine(hash, store.operations()[ranking.later()[(rank + k) % n]].token);
        }
        if (across < boundary_load || hash < boundary_hash) {
          boundary = rank;
          boundary_load = across;
          boundary_hash = hash;
        }
      }
    }
    const auto step = [&](std::uint32_t lane, std::int64_t by) {
      apart -= ahead[lane] != 0;
      ahead[lane] += by;
      apart += ahead[lane] != 0;
    };
    step(store.operations()[ranking.later()[rank]].lane, 1);
    step(earlier[rank], -1);
  }
  result.crossing_bytes = boundary_load;

  result.unwrapped = n - boundary;
  for (std::uint64_t k = 0; k < n; ++k) result.order.push_back(ranking.later()[(boundary + k) % n]);
  for (const LanePeriod& lane : iteration.lanes) {
    LaneMallocs mallocs{store.lanes()[lane.lane].number, 0, 1, {}, {}, {}};
    std::vector<std::pair<std::uint64_t, MallocLife>> sorted;
    for (const Planned& malloc : planned) {
      if (malloc.lane != &lane) continue;
      const Block& block = store.blocks()[store.operations()[malloc.operation].block];
      const std::uint32_t phase = store.operations()[malloc.operation].lane_index - lane.middle();
      const std::uint64_t place = (ranking.lane(lane.lane).later[phase] + n - boundary) % n;
      const std::uint64_t born = (malloc.life.born + n - boundary) % n;
      const std::uint64_t freed = born + std::max<std::uint64_t>(malloc.life.duration, 1);
      const auto places = malloc.placed ? static_cast<std::uint32_t>(places_needed(born, freed, n)) : 0;
      sorted.emplace_back(
          place, MallocLife{malloc.operation, block.bytes, block.return_address, born, freed, places, places > 1});
    }
    if (sorted.empty()) continue;
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, malloc] : sorted) {
      mallocs.mallocs.push_back(malloc);
      mallocs.operations.push_back(malloc.operation);
    }
    const std::vector<std::uint64_t> sequence = seen_of(mallocs);
    mallocs.parts = static_cast<std::uint32_t>(sequence.size() / inner_period(sequence));
    if (lane.lane == iteration.lanes[iteration.main].lane) {
      result.lanes.insert(result.lanes.begin(), std::move(mallocs));
    } else {
      result.lanes.push_back(std::move(mallocs));
    }
  }
  tell_parts_by_gaps(result.lanes, store, result.order);
  tell_parts_by_clock(result.lanes, n);
  for (LaneMallocs& lane : result.lanes) {
    leave_out_alike(lane);
    if (joined) join_parts(lane, lane.mallocs.size() / lane.parts, n);
    lane.match = match_length(seen_of(lane));
  }

  result.persistent = persistent_blocks(store, iteration);
  std::uint64_t persistent_load = 0;
  for (const std::uint32_t index : result.persistent) {
    const Block block = store.blocks()[index];
    persistent_load += block.bytes;
    result.staying.push_back({slab.contains(block) ? 0 : block.address, block.bytes});
    if (slab.contains(block)) {
      result.in_slab.push_back({block.address - slab.begin, block.bytes});
    } else {
      result.persistent_bytes += block.bytes;
    }
  }
  result.in_slab = without_overlaps(result.in_slab);
  const auto peak = std::max_element(load.begin(), load.end());
  result.peak_load = persistent_load + *peak;
  result.sizes_at_peak = sizes_behind(static_cast<std::uint64_t>(peak - load.begin()), n, placed);

  // The first boundary from which on everything repeats.
  const LanePeriod& main = iteration.lanes[iteration.main];
  const auto& main_operations = store.lanes()[main.lane].operations;
  const LaneRanks& main_ranks = ranking.lane(main.lane);
  const auto cut = static_cast<std::uint32_t>(
      std::lower_bound(main_ranks.later.begin(), main_ranks.later.end(), boundary) - main_ranks.later.begin());
  std::uint32_t first = main.end - std::min(main.end, iteration.repeated);
  const std::uint32_t phase = (first + main.period - main.middle() % main.period) % main.period;
  first += (cut + main.period - phase) % main.period;
  result.first_iteration =
      store.operations()[main_operations[std::min<std::size_t>(first, main_operations.size() - 1)]].sequence;
  return result;
}

std::size_t not_placed(const IterationLifetimes& lifetimes) {
  std::size_t count = 0;
  for (const LaneMallocs& lane : lifetimes.lanes) {
    const auto of_parts =
        std::count_if(lane.mallocs.begin(), lane.mallocs.end(), [](const MallocLife& its) { return its.places == 0; });
    if (of_parts != 0) count += static_cast<std::size_t>(of_parts) * lane.operations.size() / lane.mallocs.size();
  }
  return count;
}

void keep_chunks(IterationLifetimes* lifetimes, const SlabRange& slab, std::span<const std::uint64_t> sizes,
                 std::span<const KeptChunk> left_out) {
  std::vector<StayingBlock> beside;
  for (const StayingBlock& block : lifetimes->staying) {
    if (block.address != 0) beside.push_back(block);
  }
  std::vector<KeptChunk> known = slab.chunks;
  std::erase_if(known, [&](const KeptChunk& chunk) {
    return std::find(left_out.begin(), left_out.end(), chunk) != left_out.end();
  });
  KeptBytes kept = keep_chunks(beside, slab.chunk_bytes, known, slab.bytes, sizes, left_out);
  lifetimes->kept_chunks = std::move(kept.chunks);
  lifetimes->persistent_bytes -= kept.bytes;
  for (const KeptBytes::Piece& piece : kept.pieces) lifetimes->in_slab.push_back({piece.offset, piece.bytes});
  join_overlapping(&lifetimes->in_slab);
}

}  // namespace memopt::planner
