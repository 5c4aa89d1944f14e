#include "agent/memory/follower.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

namespace memopt::agent {
namespace {

// The malloc at `index` of the pattern that ends an iteration.
const FollowedMalloc& pattern(const FollowedLane& lane, std::size_t index) {
  return lane.mallocs[lane.mallocs.size() - lane.match + index];
}

bool equal(const FollowedMalloc& a, std::uint64_t bytes, std::uint64_t return_address) {
  return a.bytes == bytes && a.return_address == return_address;
}

// The operations that lie before the first malloc of each round, if they tell some of them, and how many rounds they
// can't tell from each other: several iterations are planned as one.
std::vector<std::uint64_t> gaps_of(const Plan::Lane& lane, std::uint64_t* alike) {
  const std::size_t length = lane.mallocs.size() / lane.rounds;
  std::vector<std::uint64_t> gaps;
  for (std::size_t i = 0; i < lane.mallocs.size(); i += length) gaps.push_back(lane.mallocs[i].gap);
  const auto repeats = [&](std::size_t period) {
    return lane.rounds % period == 0 &&
           std::equal(gaps.begin() + static_cast<std::ptrdiff_t>(period), gaps.end(), gaps.begin());
  };
  std::size_t period = 1;
  while (!repeats(period)) ++period;
  *alike = lane.rounds / period;
  const bool tell =
      period > 1 && std::any_of(gaps.begin(), gaps.end(), [&](std::uint64_t gap) {
        return gap != shm::kNoGap && static_cast<std::uint64_t>(std::count(gaps.begin(), gaps.end(), gap)) == *alike;
      });
  if (tell) return gaps;
  *alike = lane.rounds;
  return {};
}

}  // namespace

// The steps of the plan's swaps, point by point.
void FollowedPlan::add_swaps(const Plan& plan) {
  if (plan.swaps.empty()) return;
  pages.reserve(plan.pages.size());
  for (const shm::PlannedPages& one : plan.pages) pages.push_back({one.address, one.place.bytes, one.place.offset});
  std::vector<std::uint32_t> swapped_of(plan.mallocs.size());  // 1 + index into `swapped`, by malloc
  struct Timed {
    std::uint64_t rank;
    SwapStep step;
  };
  std::vector<Timed> timed;
  std::uint32_t count = 0;
  // Of the operations of an iteration those before its first malloc are carried out behind the last one.
  std::uint64_t begin = operations;
  for (const FollowedLane& lane : lanes) begin = std::min<std::uint64_t>(begin, lane.mallocs.front().born);
  for (const shm::PlannedSwap& swap : plan.swaps) {
    if ((swap.flags & shm::kSwapPages) != 0) {
      FollowedPages& one = pages[swap.block];
      one.swapped = true;
      for (const std::uint64_t then : {begin, begin + operations}) {
        if (swap.out_after >= then || swap.in_after < then) continue;
        one.here_first = false;
        one.first_use = swap.in_after - (then - begin);
      }
      const auto number = static_cast<std::uint32_t>(swap.block);
      timed.push_back({swap.out_after, {number, 0, true, true, swap.order}});
      timed.push_back({swap.in_after % operations, {number, 0, false, true, swap.order}});
      ++swaps;
      continue;
    }
    std::uint32_t& number = swapped_of[swap.block];
    if (number == 0) number = ++count;
    const shm::PlannedMalloc& malloc = plan.mallocs[swap.block];
    const auto add = [&](std::uint64_t position, bool leaves) {
      const std::uint64_t rank = position % operations;
      // The next block is made only behind that rank of the iteration.
      const std::uint64_t back = position / operations - (rank < malloc.born ? 1 : 0);
      timed.push_back({rank, {number - 1, static_cast<std::uint32_t>(back), leaves, false, swap.order}});
    };
    add(swap.out_after, true);
    if (swap.in_after != shm::kNoPosition) add(swap.in_after, false);
    ++swaps;
  }
  swapped.resize(count);
  std::stable_sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    // What comes back may lie where another has left behind the same operation.
    return std::tuple(a.rank, !a.step.leaves, a.step.order) < std::tuple(b.rank, !b.step.leaves, b.step.order);
  });
  steps.reserve(timed.size());
  auto next = timed.begin();
  for (const shm::PlannedPoint& point : plan.points) {
    const auto first = static_cast<std::uint32_t>(steps.size());
    for (; next != timed.end() && next->rank <= point.rank; ++next) steps.push_back(next->step);
    FollowedLane* const lane = find_lane(point.lane);
    if (steps.size() == first || lane == nullptr) continue;
    lane->points.push_back({point.malloc, point.operations, (point.flags & shm::kPointUncounted) != 0, first,
                            static_cast<std::uint32_t>(steps.size()) - first});
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    FollowedLane& lane = lanes[i];
    // Lanes stand by their numbers, the plan's mallocs as they came.
    auto number_of = swapped_of.begin() + (plan.lanes[i].mallocs.data() - plan.mallocs.data());
    for (FollowedMalloc& malloc : lane.mallocs) {
      const std::uint32_t number = *number_of++;
      if (number != 0) malloc.swapped = &swapped[number - 1];
    }
    if (lane.points.empty()) continue;
    std::stable_sort(lane.points.begin(), lane.points.end(), [](const SwapPoint& a, const SwapPoint& b) {
      return std::tuple(a.malloc, a.operations, a.behind_free) < std::tuple(b.malloc, b.operations, b.behind_free);
    });
    lane.first_point.reserve(lane.mallocs.size() + 1);
    std::uint32_t point = 0;
    for (std::uint32_t malloc = 0; malloc <= lane.mallocs.size(); ++malloc) {
      while (point < lane.points.size() && lane.points[point].malloc < malloc) ++point;
      lane.first_point.push_back(point);
    }
  }
  period_ns = plan.period_ns;
  added_ns = plan.added_ns;
  expected_ns = period_ns + added_ns;
  otherwise_ns = plan.otherwise_ns;
}

namespace {

// More are not looked at one by one: what is needed later counts as needed then.
constexpr std::uint64_t kMostIterations = 8;

struct PlacedMalloc {
  std::uint64_t first_place;
  std::uint32_t places;
  std::uint64_t born;
  std::uint64_t freed;
};

// Of mallocs that share places. A block takes one that is free: the last of them is needed when so many are live for
// the first time. Those of before the first iteration lie elsewhere.
void note_first_needed(std::span<const PlacedMalloc> sharing, std::uint64_t operations,
                       std::vector<std::uint64_t>* first_needed) {
  // Of the blocks that live for several iterations all are there in the one behind that.
  std::uint64_t iterations = 1;
  for (const PlacedMalloc& malloc : sharing) iterations = std::max(iterations, malloc.freed / operations + 1);
  const bool all = iterations <= kMostIterations;
  iterations = std::min(iterations, kMostIterations);
  std::vector<std::pair<std::uint64_t, int>> changes;  // rank; a block more, or one fewer
  changes.reserve(sharing.size() * 2 * static_cast<std::size_t>(iterations));
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    for (const PlacedMalloc& malloc : sharing) {
      changes.emplace_back(iteration * operations + malloc.born, 1);
      changes.emplace_back(iteration * operations + malloc.freed, -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& [rank, change] : changes) {
    live += change;
    if (live <= most || most == static_cast<std::int64_t>(sharing.front().places)) continue;
    (*first_needed)[static_cast<std::size_t>(sharing.front().first_place) + static_cast<std::size_t>(most++)] = rank;
  }
  for (; !all && most < static_cast<std::int64_t>(sharing.front().places); ++most) {
    (*first_needed)[static_cast<std::size_t>(sharing.front().first_place) + static_cast<std::size_t>(most)] =
        iterations * operations;
  }
}

// See FollowedPlan::first_needed.
std::vector<std::uint64_t> first_needed(const Plan& plan) {
  std::vector<PlacedMalloc> mallocs;
  mallocs.reserve(plan.mallocs.size());
  for (const shm::PlannedMalloc& malloc : plan.mallocs) {
    if (malloc.places != 0) mallocs.push_back({malloc.first_place, malloc.places, malloc.born, malloc.freed});
  }
  std::sort(mallocs.begin(), mallocs.end(), [](const PlacedMalloc& a, const PlacedMalloc& b) {
    return std::tuple(a.first_place, a.born) < std::tuple(b.first_place, b.born);
  });
  std::vector<std::uint64_t> needed(plan.places.size(), kNeverInPlan);
  for (auto first = mallocs.begin(); first != mallocs.end();) {
    const auto last = std::find_if(
        first, mallocs.end(), [&](const PlacedMalloc& malloc) { return malloc.first_place != first->first_place; });
    note_first_needed({first, last}, std::max<std::uint64_t>(plan.operations, 1), &needed);
    first = last;
  }
  return needed;
}

}  // namespace

FollowedPlan::FollowedPlan(const Plan& plan)
    : generation(plan.generation),
      operations(plan.operations),
      slab_bytes(plan.slab_bytes),
      peak_load(plan.peak_load),
      persistent_bytes(plan.persistent_bytes),
      persistent(plan.persistent),
      chunk_bytes(plan.chunk_bytes),
      chunks(plan.chunks) {
  places.reserve(plan.places.size());
  for (const shm::Place& place : plan.places) places.push_back({place.offset, place.offset + place.bytes, nullptr, 0});
  first_needed = agent::first_needed(plan);
  lanes.reserve(plan.lanes.size());
  for (const shm::PlannedMalloc& malloc : plan.mallocs) {
    // Of one that lives for more than an iteration there are several, each in a place of its own.
    for (std::uint32_t before = 1; before <= malloc.places && before * operations <= malloc.freed; ++before) {
      crossing.push_back({malloc.bytes, before * operations - malloc.born, malloc.freed - before * operations});
    }
  }
  std::sort(crossing.begin(), crossing.end(), [](const CrossingMalloc& a, const CrossingMalloc& b) {
    return std::tuple(a.bytes, a.age) < std::tuple(b.bytes, b.age);
  });
  std::size_t most = 0;
  for (const Plan::Lane& planned : plan.lanes) {
    FollowedLane& lane = lanes.emplace_back();
    lane.lane = planned.lane;
    lane.match = planned.match;
    lane.rounds = planned.rounds;
    lane.gaps = gaps_of(planned, &lane.alike);
    lane.operations = plan.operations;
    lane.fixed_sizes = !plan.swaps.empty();
    lane.batch = batch.get();
    lane.mallocs.reserve(planned.mallocs.size());
    for (const shm::PlannedMalloc& malloc : planned.mallocs) {
      lane.mallocs.push_back(
          {malloc.bytes, malloc.return_address, places.data() + malloc.first_place, malloc.places, malloc.born});
    }
    most = std::max(most, lane.mallocs.size());
    lane.fallback.assign(lane.match + std::size_t{1}, 0);
    std::uint32_t border = 0;
    for (std::uint32_t i = 1; i < lane.match; ++i) {
      const FollowedMalloc& next = pattern(lane, i);
      while (border != 0 && !equal(pattern(lane, border), next.bytes, next.return_address)) {
        border = lane.fallback[border];
      }
      if (equal(pattern(lane, border), next.bytes, next.return_address)) ++border;
      lane.fallback[i + std::size_t{1}] = border;
    }
  }
  // As the planner assumes (tell_parts_by_gaps and tell_parts_by_clock in planner/iteration/lifetimes.cpp).
  const auto clock = std::min_element(lanes.begin(), lanes.end(), [](const FollowedLane& a, const FollowedLane& b) {
    return std::tuple(a.alike, b.mallocs.size(), a.lane) < std::tuple(b.alike, a.mallocs.size(), b.lane);
  });
  for (FollowedLane& lane : lanes) {
    if (lane.rounds > 1 && lane.gaps.empty() && &lane != &*clock) lane.clock = &*clock;
    lane.is_told = lane.clock != nullptr || !lane.gaps.empty();
  }
  for (FollowedLane& lane : lanes) {
    lane.first = std::all_of(lanes.begin(), lanes.end(), [&](const FollowedLane& other) {
      return lane.mallocs.front().born <= other.mallocs.front().born;
    });
  }
  for (FollowedLane& lane : lanes) {
    if (lane.mallocs.size() == most) {
      lane.main = true;
      break;
    }
  }
  add_swaps(plan);
}

namespace {

// The round that comes next by the clock.
void keep_in_step(LanePosition& at) noexcept {
  const FollowedLane& lane = *at.lane;
  const std::size_t length = lane.mallocs.size() / lane.rounds;
  const std::uint64_t now = lane.clock->now;
  if (at.position % length != 0 || now == FollowedLane::kUnknown) return;
  std::uint64_t nearest = FollowedLane::kUnknown;
  for (std::size_t begin = 0; begin < lane.mallocs.size(); begin += length) {
    const std::uint64_t ahead = (lane.mallocs[begin].born + lane.operations - now) % lane.operations;
    if (ahead >= nearest) continue;
    nearest = ahead;
    at.position = begin;
  }
}

// The next round before which lie so many operations. One that does not know in which it is waits for a number that no
// other round of the iteration has. `gap`: kNoGap where it is not known.
void find_by_gap(LanePosition& at, std::uint64_t gap) noexcept {
  const FollowedLane& lane = *at.lane;
  const std::size_t length = lane.mallocs.size() / lane.rounds;
  if (at.position % length != 0) return;
  const std::size_t next = static_cast<std::size_t>(at.position) / length;
  std::size_t times = 0;
  std::size_t nearest = lane.rounds;
  for (std::size_t ahead = 0; ahead < lane.rounds; ++ahead) {
    if (gap == shm::kNoGap || lane.gaps[(next + ahead) % lane.rounds] != gap) continue;
    ++times;
    nearest = std::min(nearest, ahead);
  }
  if (times == lane.alike) at.is_in_round = true;
  if (at.is_in_round) {
    // More or fewer than in any round: something else came between.
    if (times != 0) at.position = (next + nearest) % lane.rounds * length;
    return;
  }
  at.following = false;
  at.off = LanePosition::kLost;
}

}  // namespace

void find_round(LanePosition& at, std::uint32_t count) noexcept {
  if (at.lane->clock != nullptr) {
    if (at.following) keep_in_step(at);
    return;
  }
  const std::uint32_t before = std::exchange(at.counted, count);
  if (at.following) find_by_gap(at, before == LanePosition::kNotCounted ? shm::kNoGap : count - before);
}

FollowedLane* FollowedPlan::find_lane(std::uint32_t number) {
  for (FollowedLane& lane : lanes) {
    if (lane.lane == number) return &lane;
  }
  return nullptr;
}

std::uint64_t FollowedPlan::mallocs_an_iteration() const noexcept {
  std::uint64_t mallocs = 0;
  for (const FollowedLane& lane : lanes) mallocs += lane.mallocs.size() / lane.alike;
  return mallocs;
}

bool FollowedPlan::is_persistent(std::uint64_t block) const {
  return std::binary_search(persistent.begin(), persistent.end(), block);
}

namespace {

// The last malloc off the plan is one more; true: with it an iteration ends.
bool watch(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept {
  const FollowedLane& lane = *at.lane;
  if (at.matched == lane.match) at.matched = lane.fallback[lane.match];
  while (at.matched != 0 && !equal(pattern(lane, at.matched), bytes, return_address)) {
    at.matched = lane.fallback[at.matched];
  }
  if (equal(pattern(lane, at.matched), bytes, return_address)) ++at.matched;
  return at.matched == lane.match;
}

void note(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept {
  at.made[at.seen++ % LanePosition::kKnown] = {bytes, return_address};
  if (at.off < LanePosition::kLost) ++at.off;
}

// Are the last `count` mallocs off the plan those that end with the one at `position`?
bool fits(const LanePosition& at, std::uint64_t position, std::uint32_t count) noexcept {
  const std::vector<FollowedMalloc>& mallocs = at.lane->mallocs;
  for (std::uint32_t back = 0; back < count; ++back) {
    const LanePosition::Made& made = at.made[(at.seen - 1 - back) % LanePosition::kKnown];
    const std::uint64_t planned = (position + mallocs.size() - back % mallocs.size()) % mallocs.size();
    if (!equal(mallocs[planned], made.bytes, made.return_address)) return false;
  }
  return true;
}

// How many mallocs in a row have to fit, so many mallocs ahead of where the plan was left. Where all sizes are alike,
// as those of layers are, a few are found everywhere.
std::uint32_t needed(const LanePosition& at, std::uint64_t ahead) noexcept {
  constexpr std::uint32_t kFew = 4;  // too many, one after the other
  constexpr std::uint64_t kNear = 8, kFar = 64;
  const std::uint32_t base = ahead == 0 ? (at.off <= kFew ? 1 : 2) : ahead <= kNear ? 2 : ahead <= kFar ? 4 : 8;
  return std::min(base + at.doubts, LanePosition::kKnown);
}

// Could it be this malloc of a batch that is smaller or larger by the factor? Some depend on the batch, or on a length,
// twice (attention's scores), some not at all (gradients).
bool fits_batch(const FollowedMalloc& planned, std::uint64_t bytes, std::uint64_t return_address,
                double scale) noexcept {
  const auto as_planned = static_cast<double>(planned.bytes);
  const auto now = static_cast<double>(bytes);
  return planned.return_address == return_address && now >= as_planned * std::min(1.0, scale * scale) &&
         now <= as_planned * std::max(1.0, scale * scale);
}

// Are the last mallocs those of another batch, from the first one off the plan on? The factor; else 0.
double other_batch(const LanePosition& at) noexcept {
  constexpr std::uint32_t kFewest = 3;
  constexpr std::uint32_t kAlike = 2;  // of them by the same factor, and half of them
  constexpr double kRounding = 64;     // but for so small a part: frameworks round sizes up
  constexpr double kMost = 32;         // scalars where large blocks are planned are no batch
  if (at.lane->fixed_sizes || at.off < kFewest || at.off > LanePosition::kKnown) return 0;
  const std::vector<FollowedMalloc>& mallocs = at.lane->mallocs;
  double scale = 0;
  std::uint32_t alike = 0;
  for (std::uint32_t i = 0; i < at.off; ++i) {
    const LanePosition::Made& made = at.made[(at.seen - at.off + i) % LanePosition::kKnown];
    const FollowedMalloc& planned = mallocs[static_cast<std::size_t>((at.position + i) % mallocs.size())];
    const auto bytes = static_cast<double>(planned.bytes);
    if (i == 0) scale = static_cast<double>(made.bytes) / bytes;
    if (scale * kMost < 1 || scale > kMost) return 0;
    if (!fits_batch(planned, made.bytes, made.return_address, scale)) return 0;
    if (std::abs(static_cast<double>(made.bytes) - scale * bytes) * kRounding <= bytes * scale) ++alike;
  }
  return alike >= kAlike && 2 * alike >= at.off && scale != 1 ? scale : 0;
}

// The last malloc was not the plan's, and from the next one on the thread follows it from its beginning.
void begin_next(LanePosition& at, std::uint64_t left) noexcept {
  at.following = true;
  at.since = LanePosition::Since::kEnd;
  at.is_in_round = false;
  at.left = left;
  at.rejoined = LanePosition::kNowhere;
  at.off = 0;
  begin_iteration(at);
}

// The next malloc of a larger batch? They have no places, and the few that are as large as planned would leave others
// even less room beside theirs. False: of none any more, and what was made since is not known.
bool go_on_larger(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address) noexcept {
  const std::vector<FollowedMalloc>& mallocs = at.lane->mallocs;
  if (!fits_batch(mallocs[static_cast<std::size_t>(at.position)], bytes, return_address, at.scale)) {
    at.scale = 0;
    *at.lane->batch = 0;
    at.off = 0;
    at.matched = 0;
    return false;
  }
  if (++at.position == mallocs.size()) {
    at.matched = 0;
    begin_next(at, LanePosition::kNowhere);
  }
  return true;
}

// The last mallocs are an iteration's last ones, as far as `match` goes: are those before them?
bool is_end(const LanePosition& at) noexcept {
  const std::uint32_t wanted = std::min(at.lane->match + at.end_doubts, LanePosition::kKnown);
  return wanted <= at.lane->match || (wanted <= at.off && fits(at, at.lane->mallocs.size() - 1, wanted));
}

Step rejoin(LanePosition& at, std::uint64_t position, FollowedMalloc** expected) noexcept {
  at.following = true;
  at.left = at.position;
  at.rejoined = position;
  at.off = 0;
  at.since = LanePosition::Since::kElsewhere;
  at.matched = 0;
  FollowedMalloc& found = at.lane->mallocs[position];
  at.position = position + 1;
  if (at.position == at.lane->mallocs.size()) begin_iteration(at);
  at.lane->now = found.born;
  *expected = &found;
  return Step::kRejoins;
}

}  // namespace

Step look_for(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) noexcept {
  constexpr std::uint64_t kMostAhead = 1024;
  const std::uint64_t count = at.lane->mallocs.size();
  if (at.scale > 1 && go_on_larger(at, bytes, return_address)) return Step::kOff;
  const bool known = at.off < LanePosition::kLost;
  note(at, bytes, return_address);
  const bool ends = watch(at, bytes, return_address) && is_end(at);
  // Of a lane that is told in which round it is only that is known which malloc comes next.
  const bool alone = !at.lane->is_told;
  if (ends && known && alone) {
    const Step step = rejoin(at, count - 1, expected);
    at.since = LanePosition::Since::kEnd;
    return step;
  }
  if (ends) {
    begin_next(at, known ? at.position : LanePosition::kNowhere);
    return Step::kOff;
  }
  if (!known) return Step::kOff;
  if (const double scale = alone ? other_batch(at) : 0; scale != 0) {
    const std::uint64_t last = (at.position + at.off - 1) % count;
    *at.lane->batch = scale;
    if (scale < 1) {
      const Step step = rejoin(at, last, expected);
      if (at.position != 0) at.scale = scale;
      return step;
    }
    at.position = last;
    at.scale = scale;
    go_on_larger(at, bytes, return_address);
    return Step::kOff;
  }
  // As many as have to fit can only be those from there on where something else came between (an evaluation, say).
  const std::uint32_t here = needed(at, 0);
  const std::uint64_t most = alone ? std::min(count, kMostAhead) : std::min<std::uint64_t>(count, here);
  for (std::uint64_t ahead = 0; ahead < most; ++ahead) {
    const std::uint32_t wanted = alone ? needed(at, ahead) : here;
    if (wanted > at.off) break;
    const std::uint64_t position = (at.position + ahead) % count;
    if (fits(at, position, wanted)) return rejoin(at, position, expected);
  }
  return Step::kOff;
}

Step deviate(LanePosition& at, std::uint64_t bytes, std::uint64_t return_address, FollowedMalloc** expected) noexcept {
  FollowedLane& lane = *at.lane;
  const std::size_t count = lane.mallocs.size();
  // A lane that goes by another batch already, or hears of it by another lane.
  const double scale = at.scale != 0 ? at.scale : lane.fixed_sizes ? 0 : *lane.batch;
  const bool fits = scale != 0 && fits_batch(lane.mallocs[at.position], bytes, return_address, scale);
  if (fits && scale < 1) {
    const Step step = go_on(at, expected);
    if (at.position != 0) at.scale = scale;
    return step;
  }
  if (at.scale != 0 && !fits) *lane.batch = 0;
  at.scale = 0;
  constexpr std::uint64_t kAtOnce = 2;
  if (at.since == LanePosition::Since::kWhole) {
    at.end_doubts -= std::min(at.end_doubts, 1u);
  } else if (at.since == LanePosition::Since::kEnd && at.position <= kAtOnce) {
    at.end_doubts = std::min(at.end_doubts + 1, LanePosition::kKnown);
  }
  at.since = LanePosition::Since::kElsewhere;
  const bool at_once = at.rejoined != LanePosition::kNowhere && (at.position + count - at.rejoined) % count <= kAtOnce;
  at.doubts = at_once ? std::min(at.doubts + 1, LanePosition::kKnown) : 0;
  at.following = false;
  at.matched = 0;
  lane.now = FollowedLane::kUnknown;
  // What was followed so far may be part of an end already.
  for (std::size_t back = lane.match; back != 0; --back) {
    const FollowedMalloc& before = lane.mallocs[(at.position + count - back % count) % count];
    watch(at, before.bytes, before.return_address);
  }
  at.off = 0;
  if (fits) {
    at.scale = scale;
    go_on_larger(at, bytes, return_address);
    return Step::kLeaves;
  }
  // The end itself, too: then it goes on with the next iteration.
  if (watch(at, bytes, return_address) && at.end_doubts == 0) {
    begin_next(at, at.position);
    return Step::kLeaves;
  }
  note(at, bytes, return_address);
  return Step::kLeaves;
}

}  // namespace memopt::agent
