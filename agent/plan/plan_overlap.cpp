#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "agent/plan/plan_checks.h"

namespace memopt::agent {
namespace {

using shm::Place;
using shm::PlannedMalloc;
using shm::PlannedSwap;

// A block comes to its place, or leaves it.
struct Event {
  std::uint64_t time;
  bool comes;
  bool pages;
  std::uint32_t block;  // malloc, or index into pages
  const Place* place;
};

class Occupation {
 public:
  explicit Occupation(const Plan& plan) : plan_(plan) {
    events_.reserve((plan.places.size() + plan.pages.size() + plan.swaps.size()) * 2);
    const PlannedMalloc* before = nullptr;
    for (const std::uint32_t i : plan.pooled) {
      const PlannedMalloc& malloc = plan.mallocs[i];
      // Several places that are used in turn are occupied always, by whichever malloc.
      if (before != nullptr && before->first_place == malloc.first_place && malloc.places > 1) continue;
      add_malloc(i);
      before = &malloc;
    }
    for (std::size_t i = 0; i < plan.pages.size(); ++i) add_pages(static_cast<std::uint32_t>(i));
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return a.time != b.time ? a.time < b.time : a.comes < b.comes;  // leaving first
    });
  }

  std::span<const Event> events() const { return events_; }

 private:
  void occupy(std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    one_.time = from;
    one_.comes = true;
    events_.push_back(one_);
    one_.time = to;
    one_.comes = false;
    events_.push_back(one_);
  }

  // [from, to) of the time of a block, put onto the circle of an iteration.
  void stay(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t n = plan_.operations;
    require(to - from <= n, "{} {} stays from {} to {}: expected at most an iteration of {}",
            one_.pages ? "pages" : "malloc", one_.block, from, to, n);
    const std::uint64_t begin = from % n, end = begin + (to - from);
    occupy(begin, std::min(end, n));
    if (end > n) occupy(0, end - n);
  }

  // Between its swaps: it gives its bytes up behind the operation after which it leaves, and takes them behind the one
  // after which it comes back.
  void stay_between(std::span<const PlannedSwap> swaps, std::uint64_t from, std::uint64_t to) {
    for (const PlannedSwap& swap : swaps) {
      stay(from, swap.out_after + 1);
      if (swap.need == shm::kNoPosition) return;
      from = swap.in_after + 1;
    }
    stay(from, to);
  }

  void add_malloc(std::uint32_t i) {
    const PlannedMalloc& malloc = plan_.mallocs[i];
    const std::span<const PlannedSwap> swaps = plan_.swaps_of(i, false);
    // Which of several places is in use when depends on the iteration: all are, always.
    const bool always = malloc.places > 1 || (swaps.empty() && malloc.freed - malloc.born >= plan_.operations);
    for (const Place& place : plan_.places_of(malloc)) {
      one_ = {0, true, false, i, &place};
      if (always) {
        occupy(0, plan_.operations);
      } else {
        stay_between(swaps, malloc.born, malloc.freed);
      }
    }
  }

  void add_pages(std::uint32_t i) {
    const std::span<const PlannedSwap> swaps = plan_.swaps_of(i, true);
    one_ = {0, true, true, i, &plan_.pages[i].place};
    if (swaps.empty()) return occupy(0, plan_.operations);
    for (std::size_t k = 0; k < swaps.size(); ++k) {
      const bool last = k + 1 == swaps.size();
      const std::uint64_t next = last ? swaps[0].out_after + plan_.operations : swaps[k + 1].out_after;
      stay(swaps[k].in_after + 1, next + 1);
    }
  }

  const Plan& plan_;
  std::vector<Event> events_;
  Event one_{};  // what is being put in
};

std::string name_of(const Event& event) { return fmt::format("{} {}", event.pages ? "pages" : "malloc", event.block); }

}  // namespace

// Sweeps once through the iteration with the live places ordered by offset: whoever comes is compared with both
// neighbours only, since those that are there do not overlap.
void check_overlap(const Plan& plan) {
  const Occupation occupation(plan);
  std::map<std::uint64_t, const Event*> live;  // by offset
  for (const Event& event : occupation.events()) {
    const Place& place = *event.place;
    if (!event.comes) {
      live.erase(place.offset);
      continue;
    }
    const auto [at, inserted] = live.emplace(place.offset, &event);
    const auto next = std::next(at);
    const Event* other = inserted ? nullptr : at->second;
    if (inserted && next != live.end() && next->first < place.offset + place.bytes) other = next->second;
    if (inserted && at != live.begin()) {
      const Place& below = *std::prev(at)->second->place;
      if (below.offset + below.bytes > place.offset) other = std::prev(at)->second;
    }
    if (other == nullptr) continue;
    const Place& taken = *other->place;
    throw Refused{fmt::format("{} and {} are both there at {}, at {} + {} and {} + {}: expected no overlap",
                              name_of(event), name_of(*other), event.time, place.offset, place.bytes, taken.offset,
                              taken.bytes)};
  }
}

}  // namespace memopt::agent
