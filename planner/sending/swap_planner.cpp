#include "planner/sending/swap_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "planner/swap/simulation/verify.h"

namespace memopt::planner {
namespace {

// Then each operation has had its turn to be measured (MEMOPT_DEVICE_TIMES is 16 where nothing else is said).
constexpr std::uint64_t kManyIterations = 32;
// Parts of kEnough: of the operations, how many have to be known.
constexpr std::uint64_t kEnough = 10, kHalf = 5, kNearlyAll = 9;
// Swaps are planned again, so many times, where the operations take this part of the time more or less.
constexpr std::uint64_t kWorthwhileChange = 20;
constexpr std::uint32_t kMostChanges = 3;
// Of the operations at most one of so many has not been measured.
constexpr std::uint64_t kSettled = 20;
// Plans of one iteration that are too large for the agent, each smaller than the last.
constexpr std::uint32_t kMostRefusals = 4;
// An iteration around the loop that the program follows a plan of is to be faster by this part to be worth a switch.
constexpr double kWorthwhileGain = 0.05;
// A plan of the same iteration for other times is to save so much of the iteration: a switch costs several of them.
constexpr double kWorthwhilePeriod = 0.01;

// Does the iteration consist of a loop of so many operations, and little else?
bool is_loop_within(std::uint64_t loop, std::uint64_t iteration) {
  constexpr std::uint64_t kElse = 8;  // part of the loop
  if (loop == 0 || iteration < 2 * loop - loop / kElse) return false;
  const std::uint64_t rest = (iteration + loop / kElse) % loop;
  return rest <= 2 * (loop / kElse);
}

}  // namespace

void SwapPlanner::add(std::uint32_t lane, const shm::RecordView& record, bool gap) {
  iteration_.add(lane, record, gap);
  switch (record.kind()) {
    case shm::RecordKind::kLaunch:
      if ((record.header.flags & shm::kBlindLaunch) != 0 && !std::exchange(blind_, true)) {
        stop("no swaps are planned: what a launch touches could not be read");
      }
      break;
    case shm::RecordKind::kKernelTime:
      ++measured_;
      break;
    case shm::RecordKind::kState:
      keeps_to_swaps_ = static_cast<shm::StateChange>(record.header.aux) == shm::StateChange::kLive &&
                        first_sent_ != 0 && record.as<shm::StateBody>().generation >= first_sent_;
      if (keeps_to_swaps_) {
        followed_ = true;
        look_at_ = 0;
      }
      break;
    default:
      break;
  }
}

void SwapPlanner::change(const shm::SwapTermsBody& terms) {
  terms_ = terms;
  if (!blind_) stop("");
  // It may follow swaps that were planned for the last terms.
  measures_on_demand_ = followed_ = false;
  first_sent_ = planned_busy_ = 0;
  sent_.reset();
  inner_.reset();
}

void SwapPlanner::stop(std::string note) {
  if (planning_) {
    planning_->cancel();
    ending_.push_back(std::move(planning_));
  }
  found_.reset();
  pending_ = false;
  note_ = std::move(note);
}

// Each look costs as much as everything that was measured: the sum stays within a multiple of that.
void SwapPlanner::look_at_times(bool no_more, std::uint64_t unswapped) {
  if (!pending_ || measured_ < look_at_) return;
  look_at_ = measured_ + measured_ / 8 + 1;
  using Source = IterationTimes::Source;
  IterationTimes times = times_of_iteration();
  const std::uint64_t measured = times.from(Source::kMeasured);
  const std::uint64_t known = measured + times.from(Source::kAlike);
  const bool enough = measured == times.on_device || (no_more && kEnough * known >= enough_known_ * times.on_device);
  if (times.known() && enough) start(times, unswapped);
}

// At a limit a program waits for copies that are made on demand, and the device idles: that is no time in which planned
// copies could hide.
IterationTimes SwapPlanner::times_of_iteration() {
  IterationTimes times = iteration_.times();
  if (terms_.memory_limit == 0) return times;
  if (measures_on_demand_ && !followed_ && !inner_ && !found_by_plan_) on_demand_ = times.pace;
  times.forget_idle();
  return times;
}

bool SwapPlanner::check(const IterationPlanner& planner, bool waiting) {
  // Of a loop within another iteration, which is found a moment later, as a rule: its plan soon helps, and may be the
  // better one.
  if (terms_.memory_limit != 0 && planning_ && (!planning_->has_answered() || planning_->has_news())) return false;
  const bool another = iteration_.look(planner);
  if (another && !blind_) {
    stop("swaps will be planned when it is known how long the device takes (MEMOPT_DEVICE_TIMES)");
    writer_.emplace(planner.store(), *planner.plan(), planner.persistent());
    // Found while swaps were followed, it is told by other calls than the last one, as a rule, and took as long on
    // demand.
    found_by_plan_ = keeps_to_swaps_;
    if (!found_by_plan_ || operations_ != planner.plan()->lifetimes.operations) on_demand_ = 0;
    operations_ = planner.plan()->lifetimes.operations;
    if (followed_ && sent_) inner_ = sent_->cost;
    if (inner_ && !is_loop_within(inner_->operations, operations_)) inner_.reset();
    pending_ = true;
    followed_ = false;
    if (sent_) sent_->decisions = {};
    first_sent_ = look_at_ = 0;
    reserve_ = refusals_ = 0;
    planned_busy_ = changes_ = 0;
    settled_ = false;
  }
  look_at_escapes(planner);
  if (!pending_) look_at_changes(planner.plan() ? planner.plan()->footprint() : 0);
  if (!pending_) return another;
  const std::uint64_t since = planner.store().last_sequence() - planner.plan()->detected_at;
  const bool long_enough = since / kManyIterations >= planner.plan()->lifetimes.operations;
  // At a limit no layout is followed meanwhile, so that more operations are measured in each iteration.
  enough_known_ = terms_.memory_limit != 0 && !long_enough && !followed_ && !waiting ? kNearlyAll : kHalf;
  if (long_enough) look_at_ = 0;
  const bool no_more = waited_for_ || followed_ || waiting || long_enough || enough_known_ == kNearlyAll;
  look_at_times(no_more, planner.plan()->footprint());
  if (pending_ && long_enough) {
    stop("no swaps are planned: of most operations it is not known how long the device takes (MEMOPT_DEVICE_TIMES)");
  }
  return another;
}

// A block whose address a kernel has stored is not to be swapped, and may be by a plan that was made before that was
// known: the program leaves these swaps out, but others have its bytes by then.
void SwapPlanner::look_at_escapes(const IterationPlanner& planner) {
  if (!iteration_) return;
  const OperationStore& store = planner.store();
  const std::span<const OperationStore::Escape> escapes = store.escapes();
  bool any = false;
  for (std::uint64_t at = std::max(escapes_, store.escapes_forgotten()) - store.escapes_forgotten();
       at < escapes.size(); ++at) {
    any = iteration_.keep_here(store, escapes[static_cast<std::size_t>(at)]) || any;
  }
  escapes_ = store.escapes_forgotten() + escapes.size();
  if (!any || pending_ || blind_ || planned_busy_ == 0) return;
  stop("swaps are planned again: the address of a block is stored where its uses are not seen");
  // What is followed swaps it, perhaps.
  if (sent_) sent_->decisions = {};
  pending_ = true;
  look_at_ = 0;
}

// The program follows swaps that were planned for other times: of more operations it is known by now how long they
// take.
void SwapPlanner::look_at_changes(std::uint64_t unswapped) {
  if (!followed_ || blind_ || planned_busy_ == 0 || changes_ == kMostChanges || measured_ < look_at_) return;
  if (planning_ && !planning_->has_answered()) return;
  look_at_ = measured_ + measured_ / 8 + 1;
  const IterationTimes times = times_of_iteration();
  const std::uint64_t change = times.busy > planned_busy_ ? times.busy - planned_busy_ : planned_busy_ - times.busy;
  // Once more when hardly any is guessed: what counts then is what the plan comes to, not the sum. Of two that change
  // places one is known before the other.
  const std::uint64_t guessed = times.on_device - times.from(IterationTimes::Source::kMeasured);
  const bool longer = !settled_ && kSettled * guessed <= times.on_device && takes_longer(times);
  settled_ = settled_ || longer || guessed == 0;
  if (change * kWorthwhileChange < planned_busy_ && !longer) return;
  ++changes_;
  stop("swaps are planned again: the operations take another time than was known");
  start(times, unswapped);
}

// Does the plan that the program follows add more to an iteration, by what is known now, than was said?
bool SwapPlanner::takes_longer(const IterationTimes& times) const {
  if (!sent_ || sent_->decisions.places.empty()) return false;
  const std::optional<double> added = added_by(task_of(times), had_pages_, sent_->decisions);
  const auto busy = static_cast<double>(times.busy);
  return added && *added > busy * (sent_->cost.slowdown - 1 + kWorthwhilePeriod);
}

SwapTask SwapPlanner::task_of(const IterationTimes& times) const {
  SwapTask task;
  IterationProblem iteration = iteration_.problem(times, Named::kEver);
  // By one odd word of a launch it may name more than there is room for, and nothing could ever be planned.
  if (terms_.memory_limit != 0 && largest_launch(iteration) + reserve_ > terms_.memory_limit) {
    iteration = iteration_.problem(times, Named::kOften);
  }
  task.problem = std::move(iteration.problem);
  task.ranks = std::move(iteration.ranks);
  task.persistent = std::move(iteration.persistent);
  task.terms = terms_;
  task.unswapped = unswapped_;
  task.reserve = reserve_;
  task.had_pages = had_pages_;
  return task;
}

void SwapPlanner::start(const IterationTimes& times, std::uint64_t unswapped) {
  pending_ = false;
  planned_busy_ = times.busy;
  unswapped_ = unswapped;
  SwapTask task = task_of(times);
  note_ = "swaps are being planned";
  try {
    if (waited_for_) {
      found_ = plan_waited_swaps(task, note_, waited_search(wait_));
    } else {
      planning_ = std::make_unique<SwapPlanning>(std::move(task));
    }
  } catch (const std::system_error& error) {
    note_ = std::string("no swaps are planned: no thread: ") + error.what();
  }
}

std::optional<std::vector<std::byte>> SwapPlanner::take(std::uint64_t unswapped) {
  std::erase_if(ending_, [](const auto& planning) { return planning->is_over(); });
  // No check comes while the program records nothing.
  if (followed_) {
    enough_known_ = kHalf;
    look_at_times(true, unswapped);
  }
  if (planning_) found_ = planning_->take(note_);
  const std::optional<PlannedSwaps> found = std::exchange(found_, std::nullopt);
  if (!found || !is_worthwhile(*found, unswapped)) return std::nullopt;
  return bytes(*found, unswapped);
}

// A better layout may have been found meanwhile.
bool SwapPlanner::is_worthwhile(const PlannedSwaps& swaps, std::uint64_t unswapped) {
  const bool limited = terms_.memory_limit != 0;
  const double slowdown = 1 + swaps.added_ns / swaps.problem.period;
  if (limited && inner_ && slowdown > inner_->slowdown * (1 - kWorthwhileGain)) {
    // What is around the loop is served on demand.
    note_ = fmt::format(
        "the plan of a loop within the iteration stays, which adds {:.0f} % to it: a plan of all of it adds {:.0f}",
        100 * (inner_->slowdown - 1), 100 * (slowdown - 1));
    return false;
  }
  if (limited && is_as_good(swaps)) {
    note_ = sent_->note;
    return false;
  }
  if (limited && is_slower_than_on_demand(swaps)) return false;
  if (limited ? !is_within_limit(unswapped) : swaps.footprint <= unswapped - unswapped / kWorthwhilePart) return true;
  stop(limited ? "no swaps are needed" : "no swaps were found that save memory");
  return false;
}

// Copies on demand move pages, and only what is in the way; where blocks that are named all the time have no room, that
// is less than a plan can do by whole blocks.
bool SwapPlanner::is_slower_than_on_demand(const PlannedSwaps& swaps) {
  const double period = swaps.problem.period;
  const auto on_demand = static_cast<double>(on_demand_);
  // Times that were guessed may come to more than all of it takes.
  if (followed_ || on_demand_ == 0 || period >= on_demand || period + swaps.added_ns < on_demand) return false;
  note_ =
      fmt::format("no swaps are planned: the best that were found add {:.3f} ms to {:.3f}, and on demand it is {:.3f}",
                  swaps.added_ns / 1e6, period / 1e6, on_demand / 1e6);
  return true;
}

// Would the plan that was sent last do in the place of this one, by what is known of times by now? A switch costs as
// much as some iterations, more where pages leave for it.
bool SwapPlanner::is_as_good(const PlannedSwaps& swaps) {
  if (!followed_ || !sent_ || sent_->decisions.places.empty()) return false;
  std::optional<double> added;
  if (sent_->decisions.places.size() == swaps.decisions.places.size()) {
    const swap::Report report = swap::verify(swaps.problem, sent_->decisions);
    const bool fits = !report.fault && (!swaps.problem.limit || *report.footprint <= *swaps.problem.limit);
    if (fits) added = report.timing.added_ns;
  } else {
    // One of them has pages, and the other has not.
    added = added_by(task_of(times_of_iteration()), had_pages_, sent_->decisions);
  }
  // What can't be compared is not left for what is said to be slower.
  if (!added) return swaps.added_ns > (sent_->cost.slowdown - 1 + kWorthwhileGain) * swaps.problem.period;
  const double least = std::max(kWorthwhileTime * *added, kWorthwhilePeriod * swaps.problem.period);
  return swaps.added_ns + least > *added;
}

std::optional<std::vector<std::byte>> SwapPlanner::bytes(const PlannedSwaps& swaps, std::uint64_t unswapped) {
  std::string fault;
  const std::uint64_t otherwise = terms_.memory_limit != 0 ? on_demand_ : 0;
  std::vector<std::byte> bytes =
      writer_->bytes({swaps.problem, swaps.pages, swaps.decisions, swaps.ranks, swaps.added_ns, otherwise}, fault);
  if (bytes.empty()) {
    stop("the swaps that were planned can't be followed: " + fault);
    return std::nullopt;
  }
  last_ = swaps.footprint;
  had_pages_ = !swaps.pages.empty();
  inner_.reset();
  constexpr double kMiB = 1 << 20;
  note_ = fmt::format("planned {} swaps an iteration: {:.1f} MiB instead of {:.1f}, {:.3f} ms added to {:.3f}",
                      swaps.decisions.swaps.size(), static_cast<double>(swaps.footprint) / kMiB,
                      static_cast<double>(unswapped) / kMiB, swaps.added_ns / 1e6, swaps.problem.period / 1e6);
  sent_ = {{1 + swaps.added_ns / swaps.problem.period, operations_}, swaps.decisions, note_};
  return bytes;
}

void SwapPlanner::refused(std::uint64_t excess) {
  stop("the program refused the swaps that were planned");
  // It is not what the program follows.
  if (sent_) sent_->decisions = {};
  if (excess == 0 || terms_.memory_limit == 0 || blind_ || ++refusals_ > kMostRefusals) return;
  if (excess >= terms_.memory_limit - std::min(terms_.memory_limit, reserve_)) return;
  // It may have needed less than it might.
  const std::uint64_t would_do = last_ - std::min(last_, excess);
  reserve_ = std::max(reserve_ + excess, terms_.memory_limit - std::min(terms_.memory_limit, would_do));
  start(times_of_iteration(), unswapped_);
}

}  // namespace memopt::planner
