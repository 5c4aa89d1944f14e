// The arena and its plans: taken up, built, live, left.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/order/captures.h"
#include "agent/process/log.h"
#include "agent/process/own_cost.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Chunks that are mapped ahead at one allocation: a few calls of some tens of microseconds each.
constexpr std::size_t kSlice = 8;
// Chunks that are given back at one boundary: so many, and a part of what there is, so that however much it is, some
// tens of iterations do.
constexpr std::size_t kTrimSlice = 16;
constexpr std::size_t kTrimPart = 8;
// Boundaries at which nothing could be given back, until the next one at which it is tried: twice as many each time.
constexpr std::uint32_t kLongestRest = 1024;
// Iterations for which a plan waits until all of its threads know where they are in it, and for the first of them to
// begin one; one may have ended for good.
constexpr std::uint32_t kPatienceForLanes = 2;
// Likewise for one behind an iteration like the plan's: with batches of four sizes, that is one in sixteen.
constexpr std::uint32_t kPatienceForKnown = 32;
// Iterations at whose beginnings chunks that a plan has no use for may still be in use.
constexpr std::uint32_t kPatienceForChunks = 4;
// Host memory that is page-locked at one allocation, for a plan that swaps.
constexpr std::uint64_t kPinned = std::uint64_t{256} << 20;

void refuse(Arena& arena, std::uint64_t generation, std::uint64_t excess, std::string why) noexcept {
  log(LogLevel::kWarn, "the plan is not used: {}", why);
  plan_refused(generation, excess);
  arena.abandoned = std::move(why);
}

// The program's iteration is known by a plan that is not used. While nothing is recorded the program keeps to the same
// iteration by another plan, which the lanes are in already.
// `needs`: device bytes, where the limit is why.
void decline(Arena& arena, std::unique_ptr<FollowedPlan> plan, std::uint64_t needs) noexcept {
  DeclinedPlan& declined = arena.declined;
  declined.generation = plan->generation;
  if (!recording()) return;
  declined.plan = std::move(plan);
  declined.needs = needs;
  declined.calm_iterations = 0;
  declined.calm_needed = std::max(declined.calm_needed, kCalm);
  ++arena.serial;
}

void forget_declined(Arena& arena) noexcept {
  if (arena.declined.plan != nullptr) ++arena.serial;
  arena.declined = {};
}

// What is held under the plan when blocks that are alive now, and are not its own, have gone: its slab, and the chunks
// of blocks that stay. May throw std::bad_alloc.
std::uint64_t needed_by(Arena& arena, const FollowedPlan& plan) {
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  std::vector<bool> stays(static_cast<std::size_t>(arena.chunks.range_bytes() / chunk_bytes));
  std::uint64_t chunks = (plan.slab_bytes + chunk_bytes - 1) / chunk_bytes;
  arena.blocks.for_each([&](const Block& block) {
    if (block.window == nullptr || block.window->kind == Window::Kind::kSlab || own_window(block) != nullptr ||
        !plan.is_persistent(block.number)) {
      return;
    }
    const std::uint64_t offset = block.base - arena.chunks.range_begin();
    const auto is_slabs = [&](std::uint64_t page) {
      const std::uint64_t address = arena.chunks.range_begin() + page * chunk_bytes;
      const bool planned = std::any_of(plan.pages.begin(), plan.pages.end(), [&](const FollowedPages& pages) {
        return address - pages.address < pages.bytes;
      });
      return planned || arena.slab.would_keep(address, plan.chunks);
    };
    for (std::uint64_t at = offset / chunk_bytes; at <= (offset + block.bytes - 1) / chunk_bytes; ++at) {
      const auto page = static_cast<std::size_t>(at);
      if (!stays[page] && !is_slabs(at)) ++chunks;
      stays[page] = true;
    }
  });
  return chunks * chunk_bytes;
}

// Does the program do better without the plan that has come? Then by so many bytes its slab is too large, and `*why`
// says what the plan needs and what it is compared with: where the program has shown that its plan is enough, what that
// one needs, else the most that was held of late. A plan for a loop within a step needs little, and everything around
// it is held beside it. 0: it is a gain.
std::uint64_t excess_of(Arena& arena, const FollowedPlan& plan, std::uint64_t needed, std::string* why) {
  // What swaps, or has swapped, holds less for it than it would: all is a gain that is within the limit.
  const bool swaps = (arena.plan != nullptr && arena.plan->swaps != 0) || arena.limit_change.gone;
  if (swaps && (arena.chunks.limit() == 0 || needed <= arena.chunks.limit())) return 0;
  const bool keeps_to_last = arena.plan != nullptr && arena.kept_iterations >= kCalm;
  const std::uint64_t held =
      keeps_to_last ? arena.plan_needs : std::max({arena_footprint(arena), arena.held_of_late, arena.plan_needs});
  const std::uint64_t chunk_bytes = arena.chunks.chunk_bytes();
  const std::uint64_t limit = arena.chunks.limit();
  const std::uint64_t enough = held + kSpareChunks * chunk_bytes;
  const bool within = limit == 0 || needed <= limit;
  if (within && needed <= enough) return 0;
  const std::string reason = !within         ? "is the limit"
                             : keeps_to_last ? "are enough for the last one"
                                             : "are held without it";
  *why = fmt::format("it needs {} ({} laid out in {}, beside what stays), and {} {}", in_units(needed),
                     in_units(plan.peak_load - std::min(plan.peak_load, plan.persistent_bytes)),
                     in_units(plan.slab_bytes), in_units(within ? held : limit), reason);
  // Whole chunks, the last of which the slab may not need to its end.
  const std::uint64_t unused = (chunk_bytes - plan.slab_bytes % chunk_bytes) % chunk_bytes;
  const std::uint64_t excess = needed - (within ? enough : limit);
  return excess - std::min(excess - 1, unused);
}

// The program has left the iteration of a plan, after so many that were calm: it is recorded, for longer each time that
// it leaves it soon.
void left_iteration(Arena& arena, std::uint64_t generation, std::uint64_t calm, std::uint64_t* calm_needed) noexcept {
  if (recording()) {
    arena.to_report = {shm::StateChange::kDeviated, generation};
    return;
  }
  start_recording(false);
  arena.to_report = {shm::StateChange::kRestarted, generation};
  const bool soon = calm < *calm_needed * kCalmGrowth * 2;
  *calm_needed = soon ? std::min(*calm_needed * kCalmGrowth, kMostCalm) : kCalm;
}

// Windows that the plan has no use for. Returns whether there is more to do.
bool close_windows(Arena& arena) noexcept {
  std::vector<Chunk*> freed;
  bool more = true;
  try {
    more = arena.slab.own_windows().tidy_up(arena.streams, arena.host, &freed);
  } catch (const std::bad_alloc&) {
  }
  for (Chunk* const chunk : freed) arena.bootstrap.keep(chunk);
  return more;
}

// Chunks that were needed for the switch, or before it, and are for nothing now.
void tidy_up(Arena& arena) noexcept {
  if (arena.service != Arena::Service::kChunks) {
    arena.housekeeping = false;
    return;
  }
  if (arena.rest != 0) {
    --arena.rest;
    return;
  }
  const std::size_t idle = arena.bootstrap.idle_chunks() + arena.bootstrap.retiring_chunks();
  const std::size_t limit = arena.synchronous ? ~std::size_t{0} : std::max(kTrimSlice, idle / kTrimPart);
  const std::uint64_t before = arena.chunks.counts().vmm_calls;
  const bool longer = arena.phase == Arena::Phase::kLive && arena.slab.shorten(limit);
  // A program that is served off its plan again and again needs some of it each time: the most of late stays.
  const bool settled = arena.calm_iterations > 4 * kCalm;
  const bool windows = close_windows(arena);
  // At a limit the slab wants what is idle.
  const bool again = arena.chunks.limit() == 0 && arena.bootstrap.needs_again();
  const bool more = arena.bootstrap.trim(limit, settled || again ? arena.bootstrap.needed_of_late() : 0);
  // What is kept for a while goes later.
  const bool later = again && arena.bootstrap.idle_chunks() != 0;
  arena.housekeeping = more || later || longer || windows;
  if (arena.chunks.counts().vmm_calls != before) {
    arena.last_rest = 0;
    return;
  }
  // Work on some of it may go on for long.
  if (arena.calm_iterations < kCalm || !(more || longer || windows)) return;
  arena.last_rest = std::clamp<std::uint32_t>(arena.last_rest * 2, 1, kLongestRest);
  arena.rest = arena.last_rest;
}

// Arena::next has come. May throw std::bad_alloc.
void begin_building(Arena& arena, bool first) {
  // Each comes to a beginning once in an iteration.
  const auto lanes = static_cast<std::uint32_t>(arena.next->lanes.size());
  arena.wait_for_chunks = kPatienceForChunks * lanes;
  if (first) arena.wait_for_lanes = kPatienceForLanes * lanes;
  if (first) arena.wait_for_known = kPatienceForKnown;
  arena.limit_change.dissolving = false;
  arena.host.keep_back(0);
  arena.phase = Arena::Phase::kBuilding;
  ++arena.serial;
  // Until it is live nothing else tells when the program changes.
  if (arena.plan == nullptr) arena_record_anew(arena);
  const FollowedPlan* const wanted = arena.next.get();
  if (!arena.slab.want(
          wanted->slab_bytes, [wanted](std::uint64_t block) { return wanted->is_persistent(block); }, wanted->chunks)) {
    arena_abandon(arena, fmt::format("there is no room for a slab of {}", in_units(wanted->slab_bytes)));
  }
}

// It needs more than the limit, and its slab can't leave for host memory: blocks that are served without it can. The
// program is watched by it all the same.
void leave_for_limit(Arena& arena) noexcept {
  if (arena.next == nullptr) {
    DeclinedPlan& declined = arena.declined;
    declined.generation = arena.plan->generation;
    declined.calm_needed = std::max(declined.calm_needed, kCalm);
    declined.calm_iterations = recording() ? 0 : declined.calm_needed;
    declined.needs = arena.plan_needs;
    declined.plan = std::move(arena.plan);
    arena.phase = Arena::Phase::kNoPlan;
    arena.limit_change.dissolving = true;
  } else {
    arena_record_anew(arena);
  }
  arena.plan.reset();
  arena.deviating = false;
  arena.slab.give_up_lent();
  arena.loans = 0;
  ++arena.serial;
}

// Under a limit plans know nothing of blocks that stay in chunks of the slab: that slab goes first, and what is in it.
// The plan is taken up when it has gone (arena_fit_plans).
void make_way_for(Arena& arena, std::unique_ptr<FollowedPlan> next, std::uint64_t needed) {
  if (arena.next != nullptr) arena_abandon(arena, "another one takes its place");
  if (arena.plan != nullptr) leave_for_limit(arena);
  arena.limit_change.dissolving = true;
  arena.limit_change.pending = true;
  arena_record_anew(arena);
  decline(arena, std::move(next), needed);
  arena.abandoned = "the memory of the last plan is given up for the next one";
}

}  // namespace

void arena_abandon(Arena& arena, std::string why, std::uint64_t needs) noexcept {
  refuse(arena, arena.next->generation, 0, std::move(why));
  decline(arena, std::move(arena.next), needs);
  arena.host.keep_back(0);
  arena.phase = arena.plan != nullptr ? Arena::Phase::kLive : Arena::Phase::kNoPlan;
  ++arena.serial;
}

void arena_leave_plan(Arena& arena) noexcept {
  leave_for_limit(arena);
  arena.limit_change.pending = true;
}

void arena_record_anew(Arena& arena) noexcept {
  if (recording()) return;
  start_recording(false);
  arena.to_report = {shm::StateChange::kRestarted, 0};
  arena.escaped.clear();
  arena.blocks.for_each([&](const Block& block) {
    if (block.escaped) arena_tell_escape(arena, block.number);
  });
}

void arena_fit_plans(Arena& arena) noexcept {
  const std::uint64_t limit = arena.chunks.limit();
  const auto fits = [limit](std::uint64_t needs) { return limit == 0 || needs <= limit; };
  try {
    const auto why = [limit](std::uint64_t needs) {
      return fmt::format("it needs {}, and {} is the limit", in_units(needs), in_units(limit));
    };
    if (arena.next != nullptr && !fits(arena.next_needs)) {
      arena.slab.give_up_unfinished();
      arena_abandon(arena, why(arena.next_needs), arena.next_needs);
    }
    if (arena.plan != nullptr && !fits(arena.plan_needs)) {
      std::string reason = why(arena.plan_needs);
      log(LogLevel::kInfo, "the plan is left: {}", reason);
      leave_for_limit(arena);
      arena.abandoned = std::move(reason);
    }
    const DeclinedPlan& declined = arena.declined;
    const bool waits =
        arena.plan == nullptr && arena.next == nullptr && declined.plan != nullptr && declined.needs != 0;
    if (waits && !fits(declined.needs)) arena.abandoned = why(declined.needs);
    const bool may_swap = limit != 0 || declined.plan == nullptr || declined.plan->swaps == 0;
    if (waits && fits(declined.needs) && may_swap && arena.slab.keeps_only(declined.plan->chunks)) {
      log(LogLevel::kInfo, "the limit has room for the plan: it is taken up");
      arena.next_needs = declined.needs;
      arena.next = std::move(arena.declined.plan);
      arena.declined = {};
      arena.abandoned.clear();
      begin_building(arena, true);
    }
  } catch (const std::bad_alloc&) {
    // They are followed as far as that goes.
  }
  // What a plan lacks may be there now.
  arena.relief_pause = 0;
  arena.wait_for_memory = std::min<std::uint32_t>(arena.wait_for_memory, 1);
}

void arena_adopt(Arena& arena, const Plan& plan) noexcept {
  if (arena.record_only || arena.service == Arena::Service::kNone) {
    plan_refused(plan.generation);
    return;
  }
  try {
    auto next = std::make_unique<FollowedPlan>(plan);
    std::uint64_t needed = 0;
    if (next->swaps != 0 && arena.chunks.limit() == 0) {
      refuse(arena, plan.generation, 0,
             fmt::format("it swaps {} times an iteration: expected no swaps, as there is no limit", next->swaps));
      return;
    }
    if (next->swaps != 0 && next->chunk_bytes != arena.chunks.chunk_bytes()) {
      refuse(arena, plan.generation, 0,
             fmt::format("its chunks have {} bytes: expected {}", next->chunk_bytes, arena.chunks.chunk_bytes()));
      return;
    }
    if (arena.service == Arena::Service::kChunks) {
      if (next->chunk_bytes != arena.chunks.chunk_bytes()) next->chunks.clear();
      // Of a plan that is made without knowing where they are, or before they left.
      std::erase_if(next->chunks, [&](const shm::PlannedChunk& chunk) {
        return arena.slab.keeps_elsewhere({&chunk, 1});
      });
      needed = needed_by(arena, *next);
      std::string why;
      if (const std::uint64_t excess = excess_of(arena, *next, needed, &why); excess != 0) {
        refuse(arena, plan.generation, excess, std::move(why));
        // One that is being built, or armed, may still be a gain.
        const bool within = arena.chunks.limit() == 0 || needed <= arena.chunks.limit();
        if (arena.next == nullptr) decline(arena, std::move(next), within ? 0 : needed);
        return;
      }
      if (arena.chunks.limit() != 0 && !arena.slab.keeps_only(next->chunks)) {
        make_way_for(arena, std::move(next), needed);
        return;
      }
    }
    const bool first = arena.next == nullptr;
    arena.next = std::move(next);
    arena.declined.plan.reset();
    arena.next_needs = needed;
    begin_building(arena, first);
  } catch (const std::bad_alloc&) {
    log(LogLevel::kWarn, "out of host memory: a plan is not used");
    plan_refused(plan.generation);
    arena.next.reset();
    arena.host.keep_back(0);
    arena.phase = arena.plan != nullptr ? Arena::Phase::kLive : Arena::Phase::kNoPlan;
    ++arena.serial;
  }
}

void arena_look_for_plan(Arena& arena) noexcept {
  // A plan that came when its context was gone waits until memory is served again; it may still be of use.
  if (arena.service == Arena::Service::kNotStarted) [[unlikely]]
    return;
  if (std::unique_ptr<const Plan> plan = take_plan()) [[unlikely]]
    arena_adopt(arena, *plan);
  if (arena.phase == Arena::Phase::kBuilding) [[unlikely]]
    arena_build(arena);
}

void arena_build(Arena& arena) noexcept {
  const std::size_t limit = arena.synchronous ? ~std::size_t{0} : kSlice;
  if (!arena.slab.build(limit)) return;
  // Of pages that are away already there are some.
  const std::size_t windows = arena_window_pieces(arena, *arena.next);
  const std::size_t pieces = arena_pages_to_leave(arena, *arena.next) + windows;
  if (pieces <= arena.host.free_pieces()) {
    arena.phase = Arena::Phase::kArmed;
    // What leaves on demand until then, and for the switch, has other memory.
    arena.host.keep_back(windows);
  } else {
    arena.wanted_pieces = pieces;
  }
}

void arena_make_pieces(Arena& arena, ArenaLock& lock) noexcept {
  const std::size_t pieces = std::exchange(arena.wanted_pieces, 0);
  // A part at a time: pinning takes long.
  const std::size_t step = std::max<std::size_t>(kPinned / arena.chunks.chunk_bytes(), 1);
  const std::uint64_t releases = arena.releases;
  arena_forget_copies(arena);
  const std::size_t before = arena.host.free_pieces();
  const bool grown = arena.host.grow(lock, std::min(pieces, before + step));
  if (arena.releases != releases || arena.phase != Arena::Phase::kBuilding || arena.next == nullptr) return;
  if (grown || arena.host.free_pieces() > before) {
    arena_build(arena);
    return;
  }
  if (captures_are_open()) return;
  // Without these it may be enough.
  if (!arena.next->pages.empty() && !std::exchange(arena.pages_stay, true)) arena.terms_due = true;
  try {
    arena_abandon(arena, fmt::format("there is no host memory for its swaps, {}: {}",
                                     in_units(pieces * arena.chunks.chunk_bytes()), arena.host.note()));
  } catch (const std::bad_alloc&) {
    arena.next.reset();
    arena.phase = arena.plan != nullptr ? Arena::Phase::kLive : Arena::Phase::kNoPlan;
    ++arena.serial;
  }
}

void arena_at_boundary(Arena& arena, const FollowedLane& lane) noexcept {
  arena.iterations += lane.alike;
  if (!arena.plan->pages.empty() || !arena.runs.empty()) [[unlikely]]
    arena_watch_runs(arena);
  if (arena.plan->swaps != 0 || arena.plan->otherwise_ns != 0) [[unlikely]]
    arena_watch_pace(arena);
  arena_watch_gain(arena);
  arena.known_beyond = arena.known_beyond || arena.deviations != arena.deviations_at_live;
  ++arena.calm_iterations;
  arena.deviating = false;
  // Nothing may be recorded any more when a better plan comes.
  arena_look_for_plan(arena);
  if (arena.loans != 0 && --arena.loans == 0) [[unlikely]]
    arena.slab.give_up_lent();
  if (arena.slab.gone_chunks() != 0) [[unlikely]]
    arena_look_for_memory(arena);
  arena.held_of_late = arena.chunks.take_peak();
  if (arena.housekeeping) [[unlikely]]
    tidy_up(arena);
  arena.scans.due = arena_has_scans();
  arena.bootstrap.next_iteration();
  const std::uint64_t now_beside = beside_plan(arena);
  const bool beside = now_beside != std::exchange(arena.beside_before, now_beside);
  arena.kept_iterations = beside ? 0 : arena.kept_iterations + 1;
  if (arena.calm_iterations == kCalm) {
    // Once only: what never fits is not recorded for ever.
    if (beside && arena.calm_needed == kCalm) arena.calm_needed *= kCalmGrowth * kCalmGrowth;
    reset_own_cost();  // from here on it is that of the steady state
  }
  if (arena.calm_iterations == arena.calm_needed) {
    if (recording() && !arena.record_only) stop_recording();
    forget_declined(arena);
  }
}

void arena_deviated(Arena& arena, const LanePosition& at) noexcept {
  ++arena.deviations;
  arena.kept_iterations = 0;
  arena.pace_watch.left = true;
  if (at.lane->main) arena.deviating = true;
  // At its beginning: the iteration is another one.
  if (at.lane->main && at.position == 0) arena_watch_gain(arena);
  const std::uint64_t calm = std::exchange(arena.calm_iterations, 0);
  // What happens off the plan may be part of a longer iteration, which the planner can only find if it sees it: or has
  // found, and the plan was declined.
  const DeclinedPlan& declined = arena.declined;
  if (declined.plan != nullptr && declined.calm_iterations >= declined.calm_needed) return;
  left_iteration(arena, arena.plan->generation, calm, &arena.calm_needed);
}

bool arena_off_plan(Arena& arena, ArenaLock& lock, LaneState& lane, Step step, bool* begins) noexcept {
  LanePosition& at = lane.live;
  if (step == Step::kLeaves) arena_deviated(arena, at);
  if (!at.following) {
    if (at.off > kPointsCounted) arena_stop_points();
    return true;
  }
  const std::uint64_t serial = arena.serial;
  const std::uint64_t releases = arena.releases;
  const std::uint64_t count = at.lane->mallocs.size();
  std::uint64_t skipped = 0;
  if (step == Step::kRejoins) {
    *begins = at.lane->main && begins_behind(at);
    if (at.lane->main) arena.deviating = false;
    skipped = (at.rejoined + count - at.left) % count;
  } else if (at.left != LanePosition::kNowhere) {
    skipped = count - at.left;
  }
  arena_stop_points();
  arena_catch_up(arena, lock, lane, skipped);
  return arena.releases == releases && arena.serial == serial;
}

void arena_keeps_to_declined(Arena& arena) noexcept {
  DeclinedPlan& declined = arena.declined;
  arena_try_on_demand(arena);
  ++declined.calm_iterations;
  if (declined.calm_iterations == declined.calm_needed && recording() && !arena.record_only) stop_recording();
  // Nothing may be recorded any more when a better plan comes.
  arena_look_for_plan(arena);
}

void arena_left_declined(Arena& arena) noexcept {
  arena_end_trial(arena);
  DeclinedPlan& declined = arena.declined;
  const std::uint64_t calm = std::exchange(declined.calm_iterations, 0);
  left_iteration(arena, declined.generation, calm, &declined.calm_needed);
}

void arena_release_all(Arena& arena) noexcept {
  ++arena.releases;
  arena.plan.reset();
  arena.next.reset();
  arena.declined = {};
  arena.phase = Arena::Phase::kNoPlan;
  ++arena.serial;
  arena.blocks.clear();
  arena.driver_blocks.clear();
  arena.live_bytes = 0;
  arena.driver_bytes = 0;
  arena.slab.release();
  arena_end_scans(arena);
  arena.runs.clear();
  arena.bootstrap.release_all();
  arena.copied_ahead = {};
  arena.host.release();
}

}  // namespace memopt::agent
