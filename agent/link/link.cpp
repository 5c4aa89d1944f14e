#include "agent/link/link.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "agent/link/lanes.h"
#include "agent/link/link_thread.h"
#include "agent/process/log.h"
#include "agent/process/quiet_thread.h"
#include "agent/process/spin_lock.h"
#include "agent/process/uncancellable.h"

namespace memopt::agent {
namespace {

constexpr std::chrono::milliseconds kAcquireTimeout{500};
constexpr int kSpins = 2000;

constinit LinkState g_link;
constinit std::atomic<bool> g_started{false};
// The process that is recorded for a file; 0: none. Not a child, not even one that came without its fork handlers.
constinit std::atomic<pid_t> g_recorded_process{0};
// The record that a planner failed to get to in time; 0: none. Nobody waits until it has.
constinit std::atomic<std::uint64_t> g_overdue{0};

void sleep_for(std::chrono::nanoseconds time) noexcept {
  const Uncancellable scope;
  const int kept = errno;
  const timespec request{static_cast<time_t>(time.count() / 1'000'000'000), time.count() % 1'000'000'000};
  nanosleep(&request, nullptr);
  errno = kept;
}

}  // namespace

LinkState& link_state() noexcept { return g_link; }

LinkOptions link_options(const Options& options) {
  LinkOptions link;
  link.wait_seconds = shm::wait_seconds(options.value(shm::OptionId::kSyncPlan));
  link.record_only = options.is_on(shm::OptionId::kRecord);
  link.ring_bytes = shm::ring_bytes(options.value(shm::OptionId::kRing));
  link.planner = options.value(shm::OptionId::kPlanner);
  link.instance = options.value(shm::OptionId::kPlannerName);
  return link;
}

void start_link(const LinkOptions& options) noexcept {
  if (g_started.exchange(true)) return;
  const int kept = errno;
  int failure = ENOMEM;
  try {
    // For the thread, which may run as long as the process: not freed.
    auto* const own = new LinkOptions(options);
    g_link.phase.store(LinkPhase::kStarting);
    if (options.record_only) g_recorded_process.store(getpid());
    failure = start_quiet_thread(run_link, own);
    if (failure != 0) delete own;
  } catch (const std::bad_alloc&) {
  }
  if (failure != 0) g_link.give_up("no thread for the link to the planner");
  errno = kept;
}

void tell_swap_terms(const shm::SwapTermsBody& terms) noexcept {
  const LockGuard guard(g_link.terms_lock);
  g_link.terms = terms;
  g_link.terms_told.fetch_add(1, std::memory_order_release);
}

bool acquire_ring(shm::RingWriter* ring) noexcept {
  if (!g_started.load(std::memory_order_acquire)) return false;
  Lanes::Taken taken = g_link.lanes.take(ring);
  if (taken == Lanes::Taken::kLater) {
    g_link.lanes.expect_more(1);
    const auto deadline = std::chrono::steady_clock::now() + kAcquireTimeout;
    while ((taken = g_link.lanes.take(ring)) == Lanes::Taken::kLater && std::chrono::steady_clock::now() < deadline) {
      sleep_for(std::chrono::microseconds(200));
    }
    g_link.lanes.expect_more(-1);
  }
  if (taken == Lanes::Taken::kNever && g_link.lanes.count() == shm::kMaxLanes) {
    g_link.set_reason("more than 64 threads at once: the others are not recorded, and nothing is planned from holes");
  }
  return taken == Lanes::Taken::kYes;
}

void release_ring(const shm::RingWriter& ring) noexcept { g_link.lanes.give_back(ring); }

shm::Control* link_control() noexcept { return g_link.control.load(std::memory_order_acquire); }

void tell_recording(bool on) noexcept {
  g_link.recording.store(on);
  if (shm::Control* const control = link_control()) control->recording.store(on ? 1 : 0, std::memory_order_release);
}

bool link_alive() noexcept {
  const LinkPhase phase = g_link.phase.load(std::memory_order_relaxed);
  return phase != LinkPhase::kNone && phase != LinkPhase::kGivenUp;
}

bool wait_processed(std::uint64_t sequence, std::chrono::milliseconds limit) noexcept {
  const auto there = [sequence] {
    shm::Control* const control = link_control();
    // Acquire pairs with the planner's release: what it sent before has been counted in `sent` then, and with the link
    // thread's release of `handled`: what came is in take_plan().
    return control != nullptr && control->processed.load(std::memory_order_acquire) >= sequence &&
           g_link.handled.load(std::memory_order_acquire) >= control->sent.load(std::memory_order_acquire);
  };
  const auto waiting = [] {
    const LinkPhase phase = g_link.phase.load(std::memory_order_acquire);
    return phase == LinkPhase::kStarting || phase == LinkPhase::kConnected;
  };
  if (const std::uint64_t overdue = g_overdue.load(std::memory_order_relaxed); overdue != 0) {
    shm::Control* const control = link_control();
    if (control == nullptr || control->processed.load(std::memory_order_acquire) < overdue) return false;
    g_overdue.store(0, std::memory_order_relaxed);
  }
  for (int spin = 0; spin < kSpins; ++spin) {
    if (there()) return true;
    if (!waiting()) return false;
    __builtin_ia32_pause();
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (waiting()) {
    if (there()) return true;
    if (std::chrono::steady_clock::now() >= deadline) {
      g_overdue.store(sequence, std::memory_order_relaxed);
      g_link.set_reason("the planner did not answer in time; it is not waited for");
      return false;
    }
    // Most answers are there at once; a search for a plan takes seconds, in which processors have better to do. Below a
    // millisecond, which the simulated schedule (integration/cudasim/schedule) takes for looking again.
    const auto waited = limit - (deadline - std::chrono::steady_clock::now());
    sleep_for(std::clamp<std::chrono::nanoseconds>(waited / 32, std::chrono::microseconds(30),
                                                   std::chrono::microseconds(500)));
  }
  return there();
}

bool hand_over_recording(std::chrono::milliseconds limit) noexcept {
  const pid_t recorded = g_recorded_process.load(std::memory_order_relaxed);
  if (recorded == 0 || recorded != getpid()) return false;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const LinkPhase phase = g_link.phase.load(std::memory_order_acquire);
    // What is sent to somebody who has answered arrives, whatever becomes of this process.
    if (phase == LinkPhase::kConnected && g_link.lanes.all_sent()) return true;
    if (phase != LinkPhase::kStarting && phase != LinkPhase::kConnected) return false;
    if (std::chrono::steady_clock::now() >= deadline) break;
    sleep_for(std::chrono::microseconds(500));
  }
  log(LogLevel::kWarn, "what was recorded is lost: whoever records did not answer within {} ms", limit.count());
  return false;
}

std::unique_ptr<const Plan> take_plan() noexcept {
  if (g_link.plan.load(std::memory_order_relaxed) == nullptr) [[likely]]
    return nullptr;
  // Acquire pairs with the link thread's release: the plan is whole.
  return std::unique_ptr<const Plan>(g_link.plan.exchange(nullptr, std::memory_order_acquire));
}

void plan_adopted(std::uint64_t generation) noexcept {
  if (shm::Control* const control = link_control()) {
    control->adopted_generation.store(generation, std::memory_order_release);
  }
}

void plan_refused(std::uint64_t generation, std::uint64_t excess) noexcept {
  if (shm::Control* const control = link_control()) {
    control->refused_excess.store(excess, std::memory_order_relaxed);
    // Release: the planner that sees the number sees the excess.
    control->refused_generation.store(generation, std::memory_order_release);
  }
}

std::uint64_t framework_reserved() noexcept {
  const shm::Control* const control = link_control();
  return control != nullptr ? control->framework_reserved.load(std::memory_order_relaxed) : 0;
}

LinkStatus link_status() {
  LinkStatus status;
  const LinkPhase phase = g_link.phase.load(std::memory_order_acquire);
  status.connected = phase == LinkPhase::kConnected;
  status.given_up = phase == LinkPhase::kGivenUp;
  // Acquire: if this is of another connection, or of none, so is the phase that is read behind it.
  status.planner = status.connected ? g_link.planner.load(std::memory_order_acquire) : 0;
  if (g_link.phase.load(std::memory_order_relaxed) != phase) {
    status.connected = false;
    status.planner = 0;
  }
  status.dropped = g_link.lanes.dropped();
  status.lanes = g_link.lanes.count();
  status.ring_bytes = g_link.ring_bytes.load(std::memory_order_relaxed);
  status.shared_bytes = g_link.lanes.shared_bytes() + (link_control() != nullptr ? shm::kControlBytes : 0);
  status.refused_plans = g_link.refused_plans.load(std::memory_order_relaxed);
  char text[LinkState::kTextBytes];
  g_link.copy_text(g_link.reason, text);
  status.reason = text;
  g_link.copy_text(g_link.note, text);
  status.note = text;
  if (phase == LinkPhase::kNone) status.reason = "the link to the planner was not started";
  return status;
}

void forget_link_after_fork() noexcept {
  g_started.store(false);
  g_recorded_process.store(0);
  g_overdue.store(0);
  g_link.forget_after_fork();
}

void LinkState::set_text(char (&text)[kTextBytes], const char* value) noexcept {
  const LockGuard guard(text_lock);
  std::strncpy(text, value, kTextBytes - 1);
}

void LinkState::copy_text(const char (&text)[kTextBytes], char (&copy)[kTextBytes]) noexcept {
  const LockGuard guard(text_lock);
  std::memcpy(copy, text, kTextBytes);
}

void LinkState::give_up(const char* why) noexcept {
  set_reason(why);
  lanes.close();
  phase.store(LinkPhase::kGivenUp, std::memory_order_release);
  log(LogLevel::kWarn, "no planning: {}", why);
}

void LinkState::forget_after_fork() noexcept {
  terms_lock = text_lock = 0;
  terms_told.store(0);
  reason[0] = note[0] = '\0';
  phase.store(LinkPhase::kNone);
  control.store(nullptr);
  recording.store(false);
  // Leaked: another thread of the parent may have been about to replace it.
  plan.store(nullptr);
  handled.store(0);
  planner.store(0);
  ring_bytes.store(0);
  refused_plans.store(0);
  const bool shared = shared_descriptors.exchange(false);
  lanes.forget_after_fork(shared);
  control_memory.forget_after_fork(shared);
  if (shared) {
    socket.close();
  } else {
    socket.forget();
  }
}

}  // namespace memopt::agent
