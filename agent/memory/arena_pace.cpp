// Whether a plan keeps what it promised. Iterations by one that swaps are timed by the device's clock, and it is left
// where they take longer than on demand; one that does not is left where the program does not keep to it, and more is
// held for it than without.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/process/log.h"
#include "agent/recording/device_times.h"

namespace memopt::agent {
namespace {

// So many iterations are timed together, behind the first ones, in which what is swapped finds its places.
constexpr std::uint64_t kToSettle = 8;
constexpr std::uint64_t kTimedTogether = 8;
// A plan is slower if they take this part longer, so many times in a row.
constexpr std::uint64_t kSlowerPart = 10;
constexpr std::uint32_t kMostSlow = 2;
// Likewise by this part longer than expected, with at least so many returns off the plan.
constexpr std::uint64_t kLongerPart = 4;
constexpr std::uint64_t kOffInThem = kTimedTogether / 2;

// Without swaps: so many iterations are looked at together, and so large a part of the blocks in them lies beside the
// plan where it is not kept to. Longer than most of what comes only now and then, as an evaluation.
constexpr std::uint64_t kLookedAt = 32;
constexpr std::uint64_t kBeside = 8;
// Nor is it a gain where in so many of them, one after the other, more is held than by the framework's own allocator.
constexpr std::uint64_t kAbove = 4;
// Iterations after which it is known what the program needs without it.
constexpr std::uint64_t kSettles = 16;

// Of what the plan swaps, and of pages that it could not take up.
std::uint64_t returns_off_plan(const Arena& arena) noexcept {
  return arena.planned_swaps.unplanned_returns + arena.planned_swaps.late_returns + arena.swaps.in_pages;
}

// Another iteration begins. How long one takes, where the time that was being taken is known; else 0.
std::uint64_t take_time(Arena& arena) noexcept {
  PaceWatch& watch = arena.pace_watch;
  if (++watch.begun <= kToSettle) return 0;
  if (watch.first == 0) {
    watch.first = watch.begun;
    watch.left = false;
    watch.returns = returns_off_plan(arena);
    mark_operation(true);
    return 0;
  }
  if (watch.last == 0) {
    if (watch.begun - watch.first < kTimedTogether) return 0;
    watch.last = watch.begun;
    mark_operation(false);
    return 0;
  }
  std::uint64_t nanoseconds = 0;
  if (!time_between_marks(&nanoseconds)) return 0;
  const std::uint64_t iterations = watch.last - std::exchange(watch.first, 0);
  watch.last = 0;
  return watch.left ? 0 : nanoseconds / iterations;
}

bool is_slower(std::uint64_t one, std::uint64_t other) noexcept { return one > other + other / kSlowerPart; }

}  // namespace

void arena_watch_pace(Arena& arena) noexcept {
  PaceWatch& watch = arena.pace_watch;
  const std::uint64_t takes = watch.due ? 0 : take_time(arena);
  if (takes == 0) return;
  arena.planned_swaps.takes_ns = takes;
  arena.planned_swaps.expected_ns = arena.plan->period_ns + arena.plan->added_ns;
  // How long it would be on demand is not known.
  if (arena.plan->otherwise_ns == 0) return;
  const std::uint64_t expected = arena.plan->expected_ns;
  const bool off = returns_off_plan(arena) - watch.returns >= kOffInThem && takes > expected + expected / kLongerPart;
  watch.slow = off || is_slower(takes, arena.plan->otherwise_ns) ? watch.slow + 1 : 0;
  if (watch.slow != kMostSlow) return;
  watch.due = true;
  watch.planned_ns = takes;
}

bool arena_leave_slow_plan(Arena& arena) noexcept {
  if (!std::exchange(arena.pace_watch.due, false) || arena.plan == nullptr) return false;
  const std::uint64_t planned = arena.pace_watch.planned_ns;
  log(LogLevel::kInfo,
      "an iteration takes {:.3f} ms by the plan, where {:.3f} are expected; on demand, where it took {:.3f}, is tried "
      "again",
      in_ms(planned), in_ms(arena.plan->expected_ns), in_ms(arena.plan->otherwise_ns));
  try {
    arena.abandoned = "it is slower than expected: swaps on demand are tried again";
  } catch (const std::bad_alloc&) {
  }
  arena_leave_plan(arena);
  // Not before that is over.
  arena.declined.needs = 0;
  arena.pace_watch = {};
  // Another one is on its way already.
  if (arena.declined.plan == nullptr) return true;
  arena.pace_watch.generation = arena.declined.generation;
  arena.pace_watch.planned_ns = planned;
  return true;
}

void arena_try_on_demand(Arena& arena) noexcept {
  PaceWatch& watch = arena.pace_watch;
  if (watch.planned_ns == 0) return;
  if (watch.generation != arena.declined.generation) {
    watch = {};
    return;
  }
  const std::uint64_t takes = take_time(arena);
  if (takes == 0) return;
  if (is_slower(watch.planned_ns, takes)) return arena_end_trial(arena);
  log(LogLevel::kInfo, "an iteration takes {:.3f} ms on demand: the plan is taken up again", in_ms(takes));
  arena.declined.plan->otherwise_ns = takes;
  // Once is enough, if that is what it comes to.
  arena.declined.plan->expected_ns = std::max(arena.declined.plan->expected_ns, watch.planned_ns);
  arena.declined.needs = arena.plan_needs;
  arena.limit_change.pending = true;
  watch = {};
}

void arena_end_trial(Arena& arena) noexcept {
  const PaceWatch watch = std::exchange(arena.pace_watch, {});
  if (watch.planned_ns == 0 || watch.generation != arena.declined.generation) return;
  try {
    arena.abandoned = "it was slower than swaps on demand are";
  } catch (const std::bad_alloc&) {
  }
  log(LogLevel::kInfo, "swaps are made on demand: the plan was slower");
  plan_refused(arena.declined.generation);
}

void arena_watch_gain(Arena& arena) noexcept {
  GainWatch& watch = arena.gain_watch;
  if (arena.service != Arena::Service::kChunks) return;
  const GainWatch anew{.mallocs = arena.mallocs, .beside = beside_plan(arena)};
  // At a limit more may be beside it for other reasons, also where it has come since it was due.
  if (arena.plan->swaps != 0 || arena.chunks.limit() != 0) {
    watch = anew;
    return;
  }
  if (watch.due) return;
  const std::uint64_t held = std::max(arena.held_of_late, arena.chunks.counts().held_bytes);
  const std::uint64_t natively = framework_reserved();
  watch.held = std::max(watch.held, held);
  watch.above = natively != 0 && held > natively + kSpareChunks * arena.chunks.chunk_bytes() ? watch.above + 1 : 0;
  if (++watch.begun < kLookedAt && watch.above < kAbove) return;
  const std::uint64_t made = arena.mallocs - watch.mallocs;
  const std::uint64_t beside = beside_plan(arena) - watch.beside;
  // What is a loop of something longer, or will be, is kept to.
  const bool known = arena.next != nullptr || arena.declined.plan != nullptr;
  const bool vain = watch.above >= kAbove || beside * kBeside >= made;
  watch.due = !known && vain && watch.held > arena.footprint_before;
  // What is said goes by these.
  if (!watch.due) watch = anew;
}

bool arena_leave_vain_plan(Arena& arena, ArenaLock& lock) noexcept {
  if (captures_are_open()) return false;
  const GainWatch watch = std::exchange(arena.gain_watch, {.mallocs = arena.mallocs, .beside = beside_plan(arena)});
  if (!watch.due || arena.plan == nullptr || arena.next != nullptr || arena.chunks.limit() != 0) return false;
  const std::uint64_t generation = arena.plan->generation;
  const std::uint64_t mallocs = arena.plan->mallocs_an_iteration();
  try {
    const std::uint64_t natively = framework_reserved();
    arena.abandoned = fmt::format("it was not kept to: {} of {} blocks lay beside it, and {} were held, {} before it{}",
                                  beside_plan(arena) - watch.beside, arena.mallocs - watch.mallocs,
                                  in_units(watch.held), in_units(arena.footprint_before),
                                  natively == 0 ? "" : ", " + in_units(natively) + " by the framework's own allocator");
    log(LogLevel::kInfo, "the plan is left: {}", arena.abandoned);
  } catch (const std::bad_alloc&) {
  }
  arena_leave_plan(arena);
  arena.left_for_good = true;
  arena.limit_change.settling = {.until = arena.mallocs + kSettles * mallocs};
  // It tells nothing of what the program does.
  arena.declined = {};
  arena_record_anew(arena);
  plan_refused(generation);
  // What is not given up now, as work on it goes on, would be held beside what the iteration that begins needs: the
  // host waits, once.
  Region& region = arena.bootstrap.region();
  Release awaited;
  const std::uint64_t releases = arena.releases;
  arena.slab.dissolve(&awaited);
  region.await_retiring(&awaited);
  if (!awaited.empty()) arena.streams.finish_or_give_up(lock, awaited);
  if (arena.releases != releases || arena.plan != nullptr || arena.next != nullptr) return true;
  arena.slab.dissolve(&awaited);
  region.retire(~std::size_t{0});
  return true;
}

}  // namespace memopt::agent
