// What the arena says of itself: for status, and in the last line of the process.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "agent/link/link.h"
#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/process/log.h"
#include "agent/process/options.h"
#include "agent/process/own_cost.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {

std::string in_units(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  if (bytes >= kMib << 10) return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1024.0 * kMib));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMib);
}

std::uint64_t arena_footprint(const Arena& arena) noexcept {
  if (arena.service != Arena::Service::kDriver) return arena.chunks.counts().held_bytes;
  return arena.driver_bytes + arena.slab.live_bytes();
}

std::uint64_t arena_footprint_peak(const Arena& arena) noexcept {
  const std::uint64_t here =
      arena.service == Arena::Service::kDriver ? arena.driver_peak : arena.chunks.counts().peak_bytes;
  return std::max(arena.footprint_peak, here);
}

namespace {

// Blocks that may not leave, by the first of the reasons that holds.
class PinnedBlocks {
 public:
  void add(const Block& block) noexcept {
    if (!is_pinned(block)) return;
    ++(block.escaped ? stored_ : block.kept ? named_ : block.stays ? wanted_ : synchronous_);
    bytes_ += block.bytes;
  }
  void tell(shm::SwapStatus* status) const {
    status->pinned = stored_ + named_ + wanted_ + synchronous_;
    status->pinned_bytes = shm::Bytes(bytes_);
    const auto say = [&](std::uint64_t count, std::string_view why) {
      if (count == 0) return;
      if (!status->pinned_why.empty()) status->pinned_why += ", ";
      status->pinned_why += fmt::format("{} {}", count, why);
    };
    say(stored_, "whose address is stored where uses are not seen");
    say(named_, "named by a graph");
    say(wanted_, "by MEMOPT_PIN");
    say(synchronous_, "by cuPointerSetAttribute");
  }

 private:
  std::uint64_t stored_ = 0;
  std::uint64_t named_ = 0;
  std::uint64_t wanted_ = 0;
  std::uint64_t synchronous_ = 0;
  std::uint64_t bytes_ = 0;
};

void read_swaps(const Arena& arena, shm::Status* status) {
  shm::SwapStatus swaps;
  if (!arena.host.is_started()) {
    if (arena.service == Arena::Service::kNotStarted || options().value(shm::OptionId::kLimit).empty()) return;
    swaps.note = "MEMOPT_LIMIT has no effect: " + arena.why;
    status->swaps = std::move(swaps);
    return;
  }
  const ChunkCounts& counts = arena.chunks.counts();
  swaps.limit = shm::Bytes(arena.chunks.limit());
  swaps.device_full = arena.chunks.limit_is_device();
  swaps.held = shm::Bytes(counts.held_bytes);
  swaps.held_peak = shm::Bytes(counts.peak_bytes);
  swaps.beyond = shm::Bytes(arena.swaps.beyond);
  swaps.beyond_why = arena.swaps.beyond_why;
  swaps.away = shm::Bytes(const_cast<Arena&>(arena).bootstrap.region().away_bytes());
  swaps.host = shm::Bytes(arena.host.held_bytes());
  swaps.copied_out = shm::Bytes(arena.swaps.out_bytes);
  swaps.copied_in = shm::Bytes(arena.swaps.in_bytes);
  swaps.swapped_out = arena.swaps.out_pages;
  swaps.swapped_in = arena.swaps.in_pages;
  PinnedBlocks pinned;
  const_cast<Arena&>(arena).blocks.for_each([&](const Block& block) {
    if (lies_in_region(block) || own_window(block) != nullptr) pinned.add(block);
  });
  pinned.tell(&swaps);
  swaps.unscanned = arena.scans.why;
  swaps.note = arena.swaps.note;
  const PlannedSwaps& planned = arena.planned_swaps;
  if (arena.plan != nullptr && arena.plan->swaps != 0) {
    swaps.planned = arena.plan->swaps;
    swaps.planned_period = shm::Nanoseconds(arena.plan->period_ns);
    swaps.planned_added = shm::Nanoseconds(arena.plan->added_ns);
    swaps.planned_measured = shm::Nanoseconds(arena.planned_swaps.takes_ns);
  }
  swaps.planned_out = planned.out;
  swaps.planned_in = planned.in;
  swaps.planned_bytes_out = shm::Bytes(planned.out_bytes);
  swaps.planned_bytes_in = shm::Bytes(planned.in_bytes);
  swaps.left_out = planned.left_out;
  swaps.late = planned.late_returns;
  swaps.unplanned = planned.unplanned_returns;
  std::uint64_t away = swaps.away.value();
  arena.slab.own_windows().for_each([&](const OwnWindow& window) {
    if (window.block != nullptr && window.block->away != 0) away += window.bytes;
  });
  swaps.away = shm::Bytes(away);
  status->swaps = std::move(swaps);
}

}  // namespace

void read_arena(shm::Status* status) {
  Arena* const now = arena();
  if (now == nullptr) return;
  const LinkStatus link = link_status();
  ArenaLock lock;
  const Arena& arena = *now;
  status->memory.live += shm::Bytes(arena.live_bytes);
  status->memory.peak += shm::Bytes(arena.peak_bytes);
  status->memory.blocks += shm::BlockCount(arena.blocks.size());
  read_swaps(arena, status);
  if (arena.service == Arena::Service::kNone || arena.service == Arena::Service::kNotStarted) {
    if (!arena.why.empty()) status->reason = arena.why;
    return;
  }
  shm::PlanStatus plan;
  plan.iterations = arena.iterations;
  plan.iteration_at_live = arena.iteration_at_live;
  plan.footprint = shm::Bytes(arena_footprint(arena));
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
    plan.overshoot = shm::Bytes(arena_footprint(arena) - std::min(arena_footprint(arena), needed));
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
  plan.note = arena.abandoned;
  // What becomes of a plan that is not used is the planner's to say.
  if (!link.note.empty()) plan.note.append(plan.note.empty() ? "" : "; ").append(link.note);
  if (link.connected && link.refused_plans != 0 && !link.reason.empty()) {
    plan.note.append(plan.note.empty() ? "" : "; ").append(link.reason);
  }
  if (plan.note.empty() && !link.connected && arena.plan == nullptr) plan.note = link.reason;
  status->reason = arena.why;
  if (arena.plan != nullptr) {
    status->state = arena.deviating ? shm::AgentState::kDeviating : shm::AgentState::kPlanned;
  } else {
    status->state = recording() && link.connected ? shm::AgentState::kRecording : shm::AgentState::kBootstrap;
  }
  status->plan = std::move(plan);
}

namespace {

void say_how_limit_was_kept(const Arena& arena) noexcept {
  const SwapSums& swaps = arena.swaps;
  const PlannedSwaps& planned = arena.planned_swaps;
  if (swaps.limit == 0 || (swaps.out_bytes == 0 && swaps.beyond == 0)) return;
  try {
    if (planned.out == 0) log(LogLevel::kInfo, "no swaps were planned; the planner says: {}", link_status().note);
    log_notice(fmt::format(
        "{} {}: {} held at most; {} copied to the host, {} back{}{}{}", swaps.by_device ? "device full at" : "limit",
        in_units(swaps.limit), in_units(arena_footprint_peak(arena)), in_units(swaps.out_bytes),
        in_units(swaps.in_bytes),
        planned.out == 0 ? ""
                         : fmt::format("; {} swaps as planned, {} not", planned.out,
                                       planned.left_out + planned.late_returns + planned.unplanned_returns),
        planned.takes_ns == 0 ? ""
                              : fmt::format("; {:.3f} ms an iteration, {:.3f} expected", in_ms(planned.takes_ns),
                                            in_ms(planned.expected_ns)),
        swaps.beyond == 0 ? "" : fmt::format("; passed by {}: {}", in_units(swaps.beyond), swaps.beyond_why)));
  } catch (...) {
  }
}

// A program that allocates less often ends before a plan could be of use, as a rule.
constexpr std::uint64_t kWorthALine = 1000;

// Of one that had no plan, why not.
std::string why_no_plan() {
  const LinkStatus link = link_status();
  if (!link.connected) return link.reason.empty() ? "no planner has answered yet" : link.reason;
  return link.note.empty() ? "the planner has said nothing yet" : link.note;
}

}  // namespace

void say_goodbye() noexcept {
  const Arena* const now = arena();
  if (now == nullptr || !log_wants(LogLevel::kWarn)) return;
  say_how_limit_was_kept(*now);
  const bool planned = now->iteration_at_live != 0;
  const bool worth = now->mallocs >= kWorthALine && now->service == Arena::Service::kChunks && !now->record_only;
  if (!planned && !worth) return;
  // Without the lock: threads may still run, or have been killed with it; these are words that only grow.
  try {
    const std::uint64_t reserved = framework_reserved();
    const std::string natively = reserved == 0 ? "" : "; PyTorch's caching allocator: " + in_units(reserved);
    if (!planned) {
      log_notice(fmt::format("no plan went live in {} allocations: {}; {} held at most{}", now->mallocs, why_no_plan(),
                             in_units(arena_footprint_peak(*now)), natively));
      return;
    }
    log_notice(
        fmt::format("planned at iteration {}{}; {} → {}{}", now->iteration_at_live,
                    now->left_for_good ? ", and left, as it was not kept to" : "", in_units(now->footprint_before),
                    in_units(now->footprint_at_end != 0 ? now->footprint_at_end : arena_footprint(*now)), natively));
  } catch (...) {
  }
}

}  // namespace memopt::agent
