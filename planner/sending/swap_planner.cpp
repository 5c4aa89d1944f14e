#include "planner/sending/swap_planner.h"

#include <fmt/format.h>

#include <sstream>
#include <system_error>
#include <utility>

namespace memopt::planner {
namespace {

// Then each operation has had its turn to be measured (MEMOPT_DEVICE_TIMES is 16 where nothing else is said).
constexpr std::uint64_t kManyIterations = 32;
// Of the search, where it is waited for: some seconds, for iterations of a usual size one.
constexpr std::uint64_t kPatientAttempts = 8000;

}  // namespace

void SwapPlanner::add(std::uint32_t lane, const shm::RecordView& record, bool gap) {
  iteration_.add(lane, record, gap);
  if (record.kind() == shm::RecordKind::kLaunch) {
    blind_launches_ += (record.header.flags & shm::kBlindLaunch) != 0;
  } else if (record.kind() == shm::RecordKind::kState) {
    followed_ |= static_cast<shm::StateChange>(record.header.aux) == shm::StateChange::kLive;
    news_ = true;
  } else if (record.kind() == shm::RecordKind::kKernelTime) {
    news_ = true;
  }
}

void SwapPlanner::look_at_times(bool no_more) {
  if (!pending_ || !std::exchange(news_, false)) return;
  using Source = IterationTimes::Source;
  const IterationTimes times = iteration_.times();
  const std::uint64_t measured = times.from(Source::kMeasured);
  const bool enough =
      measured == times.on_device || (no_more && 2 * (measured + times.from(Source::kAlike)) >= times.on_device);
  if (times.known() && enough) start(times);
}

void SwapPlanner::check(const IterationPlanner& planner) {
  if (iteration_.look(planner)) {
    planning_.reset();
    found_.reset();
    writer_.emplace(planner.store(), *planner.plan(), planner.persistent());
    unswapped_ = planner.plan()->outcome.solution.height + planner.plan()->lifetimes.persistent_bytes;
    pending_ = news_ = true;
    followed_ = false;
    note_ = "swaps will be planned when it is known how long the device takes (MEMOPT_DEVICE_TIMES)";
  }
  if (!pending_) return;
  const std::uint64_t since = planner.store().last_sequence() - planner.plan()->detected_at;
  const bool long_enough = since / kManyIterations >= planner.plan()->lifetimes.operations;
  look_at_times(waited_for_ || followed_ || long_enough);
}

void SwapPlanner::start(const IterationTimes& times) {
  pending_ = false;
  if (blind_launches_ != 0) {
    note_ = fmt::format("no swaps are planned: what {} launches touch could not be read", blind_launches_);
    return;
  }
  SwapTask task;
  std::ostringstream text;
  ranks_ = task.ranks = iteration_.json().write(times, text);
  task.iteration = std::move(text).str();
  task.terms = terms_;
  task.unswapped = unswapped_;
  note_ = "swaps are being planned";
  if (waited_for_) {
    swap::SearchLimits limits;
    limits.time = std::chrono::nanoseconds::max();
    limits.attempts = kPatientAttempts;
    found_ = plan_swaps(task, limits, note_);
    return;
  }
  try {
    planning_ = std::make_unique<SwapPlanning>(std::move(task));
  } catch (const std::system_error& error) {
    note_ = std::string("no swaps are planned: no thread: ") + error.what();
  }
}

std::optional<std::vector<std::byte>> SwapPlanner::take(std::uint64_t generation) {
  // No check comes while the program records nothing.
  if (followed_) look_at_times(true);
  if (planning_) {
    found_ = planning_->take();
    if (std::string failure = planning_->failure(); !failure.empty()) note_ = std::move(failure);
  }
  const std::optional<PlannedSwaps> found = std::exchange(found_, std::nullopt);
  return found ? bytes(*found, generation) : std::nullopt;
}

std::optional<std::vector<std::byte>> SwapPlanner::bytes(const PlannedSwaps& swaps, std::uint64_t generation) {
  std::string fault;
  std::vector<std::byte> bytes =
      writer_->bytes(generation, {swaps.problem, swaps.decisions, ranks_, swaps.added_ns}, fault);
  if (bytes.empty()) {
    planning_.reset();
    note_ = "the swaps that were planned can't be followed: " + fault;
    return std::nullopt;
  }
  constexpr double kMiB = 1 << 20;
  note_ = fmt::format("planned {} swaps an iteration: {:.1f} MiB instead of {:.1f}, {:.3f} ms added to {:.3f}",
                      swaps.decisions.swaps.size(), static_cast<double>(swaps.footprint) / kMiB,
                      static_cast<double>(unswapped_) / kMiB, swaps.added_ns / 1e6, swaps.problem.period / 1e6);
  return bytes;
}

void SwapPlanner::refused() {
  planning_.reset();
  found_.reset();
  pending_ = false;
  note_ = "the program refused the swaps that were planned";
}

}  // namespace memopt::planner
