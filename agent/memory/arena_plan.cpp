// The arena and its plans: taken up, built, live, left, and what status says of them.
#include <algorithm>
#include <cstdio>
#include <new>

#include "agent/link/link.h"
#include "agent/memory/arena_state.h"
#include "agent/process/log.h"
#include "agent/process/own_cost.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

// Chunks that are mapped ahead at one allocation: a few calls of some tens of microseconds each.
constexpr std::size_t kSlice = 8;
// Windows that are given back at one boundary.
constexpr std::size_t kTrimSlice = 16;

std::string in_units(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  if (bytes >= kMib << 10) return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1024.0 * kMib));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMib);
}

// Device bytes held for the program, as far as we serve it.
std::uint64_t footprint(const Arena& arena) {
  if (arena.service != Arena::Service::kDriver) return arena.chunks.counts().held_bytes;
  return arena.driver_bytes + arena.slab.live_bytes();
}

// By the program's mallocs: those of one iteration are known now, those that stayed are no iteration's.
std::uint64_t iterations_so_far(const Arena& arena) {
  std::uint64_t each = 0;
  for (const FollowedLane& lane : arena.plan->lanes) each += lane.mallocs.size() / lane.rounds;
  const std::uint64_t stayed = arena.plan->persistent.size();
  return each == 0 || arena.mallocs < stayed ? 0 : (arena.mallocs - stayed) / each;
}

void abandon(Arena& arena, std::string why) noexcept {
  log(LogLevel::kWarn, "the plan is not used: {}", why);
  plan_refused(arena.next->generation);
  arena.abandoned = std::move(why);
  arena.next.reset();
  arena.phase = arena.plan != nullptr ? Arena::Phase::kLive : Arena::Phase::kNoPlan;
  ++arena.serial;
}

}  // namespace

void arena_adopt(Arena& arena, const Plan& plan) noexcept {
  if (arena.record_only || arena.service == Arena::Service::kNone) {
    plan_refused(plan.generation);
    return;
  }
  try {
    auto next = std::make_unique<FollowedPlan>(plan);
    arena.next = std::move(next);
    arena.phase = Arena::Phase::kBuilding;
    ++arena.serial;
    const FollowedPlan* const wanted = arena.next.get();
    if (!arena.slab.want(wanted->slab_bytes, [wanted](std::uint64_t block) { return wanted->is_persistent(block); })) {
      abandon(arena, fmt::format("there is no room for a slab of {}", in_units(wanted->slab_bytes)));
    }
  } catch (const std::bad_alloc&) {
    log(LogLevel::kWarn, "out of host memory: a plan is not used");
    plan_refused(plan.generation);
    arena.next.reset();
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
  if (arena.slab.build(limit)) arena.phase = Arena::Phase::kArmed;
}

void arena_go_live(Arena& arena) noexcept {
  if (arena.wait_for_memory != 0 && arena.plan == nullptr && --arena.wait_for_memory != 0) return;
  const bool first = !arena.planned;
  const std::uint64_t before = footprint(arena);
  const std::uint64_t peak_before =
      arena.service == Arena::Service::kDriver ? arena.driver_peak : arena.chunks.counts().peak_bytes;
  const CUresult result = arena.slab.go_live();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && arena.plan == nullptr && arena_postpone(arena)) return;
  if (result != CUDA_SUCCESS) {
    abandon(arena, fmt::format("the driver refused memory for the switch (error {})", static_cast<int>(result)));
    return;
  }
  arena.plan = std::move(arena.next);
  arena.phase = Arena::Phase::kLive;
  arena.planned = true;
  arena.housekeeping = true;
  if (arena.slab.is_driver_block()) {
    arena_widen_range(arena.slab.window().base, arena.slab.live_bytes());
    arena.driver_peak = std::max(arena.driver_peak, footprint(arena));
  }
  arena.calm_iterations = 0;
  arena.deviating = false;
  ++arena.serial;
  arena.to_report = shm::StateChange::kLive;
  plan_adopted(arena.plan->generation);
  if (first) {
    arena.footprint_before = peak_before;
    arena.footprint_at_end = 0;
    arena.vmm_calls_at_live = arena.chunks.counts().vmm_calls;
    arena.host_waits_at_live = arena.streams.counts().host_waits;
    arena.waits_at_live = arena.streams.counts().waits;
    arena.iteration_at_live = iterations_so_far(arena) + 1;
    if (log_wants(LogLevel::kWarn)) {
      try {
        log_notice(
            fmt::format("plan live at iteration {}: {} laid out in {} beside {} that stays; {} held before",
                        arena.iteration_at_live,
                        in_units(arena.plan->peak_load - std::min(arena.plan->peak_load, arena.plan->persistent_bytes)),
                        in_units(arena.plan->slab_bytes), in_units(arena.plan->persistent_bytes), in_units(before)));
      } catch (...) {
      }
    }
  } else {
    log(LogLevel::kInfo, "plan {} is live: slab of {} beside {} that stays, peak load {}", arena.plan->generation,
        in_units(arena.plan->slab_bytes), in_units(arena.plan->persistent_bytes), in_units(arena.plan->peak_load));
  }
}

void arena_at_boundary(Arena& arena, const FollowedLane& lane) noexcept {
  arena.iterations += lane.rounds;
  ++arena.calm_iterations;
  arena.deviating = false;
  // Nothing may be recorded any more when a better plan comes.
  arena_look_for_plan(arena);
  if (arena.slab.gone_chunks() != 0) [[unlikely]]
    arena_look_for_memory(arena);
  if (arena.housekeeping) [[unlikely]] {
    const std::size_t limit = arena.synchronous ? ~std::size_t{0} : kTrimSlice;
    const bool longer = arena.phase == Arena::Phase::kLive && arena.slab.shorten(limit);
    arena.housekeeping = arena.bootstrap.trim(limit) || longer;
    // Work on some of it may go on for long; what is left then is left.
    if (arena.calm_iterations > 4 * kCalm) arena.housekeeping = false;
  }
  if (arena.calm_iterations == kCalm) {
    if (recording() && !arena.record_only) stop_recording();
    reset_own_cost();  // from here on it is that of the steady state
  }
}

void arena_deviated(Arena& arena, const LanePosition& at) noexcept {
  ++arena.deviations;
  if (at.lane->main) arena.deviating = true;
  arena.calm_iterations = 0;
  // What happens off the plan may be part of a longer iteration, which the planner can only find if it sees it.
  if (recording()) {
    arena.to_report = shm::StateChange::kDeviated;
  } else {
    start_recording(false);
    arena.to_report = shm::StateChange::kRestarted;
  }
}

void arena_release_all(Arena& arena) noexcept {
  ++arena.releases;
  arena.plan.reset();
  arena.next.reset();
  arena.phase = Arena::Phase::kNoPlan;
  ++arena.serial;
  arena.blocks.clear();
  arena.driver_blocks.clear();
  arena.live_bytes = 0;
  arena.driver_bytes = 0;
  arena.slab.release();
  arena.bootstrap.release_all();
}

std::uint64_t arena_footprint(const Arena& arena) noexcept { return footprint(arena); }

std::uint64_t arena_footprint_peak(const Arena& arena) noexcept {
  const std::uint64_t here =
      arena.service == Arena::Service::kDriver ? arena.driver_peak : arena.chunks.counts().peak_bytes;
  return std::max(arena.footprint_peak, here);
}

void read_arena(shm::Status* status) {
  Arena* const now = arena();
  if (now == nullptr) return;
  const LinkStatus link = link_status();
  ArenaLock lock;
  const Arena& arena = *now;
  status->memory.live += shm::Bytes(arena.live_bytes);
  status->memory.peak += shm::Bytes(arena.peak_bytes);
  status->memory.blocks += shm::BlockCount(arena.blocks.size());
  if (arena.service == Arena::Service::kNone || arena.service == Arena::Service::kNotStarted) {
    if (!arena.why.empty()) status->reason = arena.why;
    return;
  }
  shm::PlanStatus plan;
  plan.iterations = arena.iterations;
  plan.iteration_at_live = arena.iteration_at_live;
  plan.footprint = shm::Bytes(footprint(arena));
  plan.footprint_peak = shm::Bytes(arena_footprint_peak(arena));
  plan.footprint_before = shm::Bytes(arena.plan != nullptr ? arena.footprint_before : plan.footprint_peak.value());
  plan.peak_load = shm::Bytes(arena.plan != nullptr ? arena.plan->peak_load : arena.peak_bytes);
  if (arena.plan != nullptr) {
    plan.slab = shm::Bytes(arena.plan->slab_bytes);
    plan.persistent = shm::Bytes(arena.plan->persistent_bytes);
    plan.generation = arena.plan->generation;
    plan.host_synchronizations = arena.streams.counts().host_waits - arena.host_waits_at_live;
    plan.vmm_calls = arena.chunks.counts().vmm_calls - arena.vmm_calls_at_live;
    plan.waits = arena.streams.counts().waits - arena.waits_at_live;
    const std::uint64_t needed = arena.slab.live_bytes() + arena.plan->persistent_bytes;
    plan.overshoot = shm::Bytes(footprint(arena) - std::min(footprint(arena), needed));
  }
  const OwnCost cost = own_cost();
  const double rate = ticks_per_nanosecond();
  if (arena.plan != nullptr && cost.samples != 0 && rate > 0) {
    plan.own_ns_per_call = static_cast<double>(cost.ticks) / static_cast<double>(cost.samples) / rate;
  }
  plan.deviations = arena.deviations;
  plan.displaced = arena.displaced;
  plan.dropped_events = link.dropped;
  plan.planner = link.planner;
  plan.planner_reason = link.connected ? std::string() : link.reason;
  plan.note = !arena.abandoned.empty() && arena.plan == nullptr ? arena.abandoned : link.note;
  if (plan.note.empty() && !link.connected && arena.plan == nullptr) plan.note = link.reason;
  status->reason = arena.why;
  if (arena.plan != nullptr) {
    status->state = arena.deviating ? shm::AgentState::kDeviating : shm::AgentState::kPlanned;
  } else {
    status->state = recording() && link.connected ? shm::AgentState::kRecording : shm::AgentState::kBootstrap;
  }
  status->plan = std::move(plan);
}

void say_goodbye() noexcept {
  const Arena* const now = arena();
  if (now == nullptr || now->iteration_at_live == 0 || !log_wants(LogLevel::kWarn)) return;
  // Without the lock: threads may still run, or have been killed with it; these are words that only grow.
  try {
    log_notice(fmt::format("planned at iteration {}; {} → {}", now->iteration_at_live, in_units(now->footprint_before),
                           in_units(now->footprint_at_end != 0 ? now->footprint_at_end : footprint(*now))));
  } catch (...) {
  }
}

}  // namespace memopt::agent
