#include "planner/iteration/iteration_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "planner/iteration/detection.h"
#include "planner/iteration/hash.h"
#include "planner/iteration/last_places.h"
#include "planner/iteration/smaller_batches.h"
#include "planner/layout/portfolio/solve.h"
#include "planner/layout/problem/validation.h"

namespace memopt::planner {
namespace {

// Up to this many operations a check looks at all of them: check points lie ever further apart until here, so the sum
// stays within a small multiple. Then they have a fixed distance, and most checks look at this many only, every second
// at twice, every fourth at four times as many, and so on: the sum is n log n, and a repeat is found after at most
// half of its length.
constexpr std::uint64_t kFullHorizon = std::uint64_t{1} << 18;
constexpr std::uint32_t kDeviationsForLonger = 2;

// A plan is left for one of a shorter iteration, or of one that was left before, only after that has gone on for so
// many of the longer one's periods.
constexpr std::uint64_t kLeftRepeats = 16;
constexpr std::uint64_t kAloneRepeats = 256;  // of a thread of it by itself, until that is what the program does
constexpr std::uint64_t kShorterPart = 8;     // shorter by less than this part of it is not shorter
constexpr std::uint32_t kMostReturns = 8;

// What is longer than an iteration that was planned by this part of it, or more, has several of its kind in it. Where
// these differ by chance, two runs of them are alike now and then, but not so many.
constexpr std::uint64_t kSeveralPart = 2;
constexpr std::uint64_t kNoChance = 4;

bool is_kept(const std::vector<KeptChunk>& chunks, const KeptChunk& chunk) {
  return std::find(chunks.begin(), chunks.end(), chunk) != chunks.end();
}

// Steps of a random number of batches, or that leave a layer out by chance: some in a row are like those before, and
// none that follow keep to the plan for them. What is no chance has gone on since the beginning, but for what comes
// once: the program's first period, and half as much that it makes before.
bool may_be_chance(const Iteration& found, std::uint64_t shortest) {
  const LanePeriod& main = found.lanes[found.main];
  if (found.operations() < shortest + shortest / kSeveralPart) return false;
  if (found.repeated >= kNoChance * main.period) return false;
  const std::uint64_t before = main.end - std::min(found.repeated, main.end);
  return before > std::uint64_t{main.period} + main.period / 2;
}

}  // namespace

IterationPlanner::IterationPlanner() : IterationPlanner(Options{}) {}

IterationPlanner::IterationPlanner(const Options& options) : options_(options), store_(options.max_operations) {}

void IterationPlanner::add(std::uint32_t lane, const shm::RecordView& record) {
  if (record.kind() == shm::RecordKind::kState) {
    const auto change = static_cast<shm::StateChange>(record.header.aux);
    if (change == shm::StateChange::kRestarted) add_gap();
    if (change == shm::StateChange::kNewContext) begin_anew();
    const shm::StateBody state = record.as<shm::StateBody>();
    if (state.slab != 0) options_.planning.slab.begin = state.slab;
    left_ = left_ || change == shm::StateChange::kDeviated || change == shm::StateChange::kRestarted;
    if (change == shm::StateChange::kDeviated && period_ != 0 && deviations_ < kDeviationsForLonger && sent_ != 0 &&
        state.generation == sent_) {
      ++deviations_;
    }
  }
  store_.add(lane, record);
}

void IterationPlanner::add(std::uint32_t lane, const shm::RecordRun& run) {
  for (auto at = store_.add(lane, run.begin(), run.end()); at != run.end(); at = store_.add(lane, at, run.end())) {
    add(lane, *at);
    ++at;
  }
}

void IterationPlanner::add_gap() {
  store_.add_gap(persistent_);
  lost_ = true;
}

// What was planned is planned again when it comes again: the program has lost its plan, too.
void IterationPlanner::begin_anew() {
  const std::uint64_t chunk_bytes = options_.planning.slab.chunk_bytes;
  options_.planning.slab = {};
  options_.planning.gives_up_chunks = true;
  keep_chunks_of(chunk_bytes);
  *this = IterationPlanner(options_);
}

void IterationPlanner::sent(std::uint64_t generation) {
  sent_ = generation;
  if (!plan_) return;
  SlabRange& slab = options_.planning.slab;
  slab.bytes = std::max(slab.bytes, plan_->outcome.solution.height);
  for (const KeptChunk& chunk : slab.chunks) {
    if (!is_kept(plan_->lifetimes.kept_chunks, chunk) && !is_kept(given_up_, chunk)) given_up_.push_back(chunk);
  }
  slab.chunks = plan_->lifetimes.kept_chunks;
}

void IterationPlanner::say(std::uint64_t about, std::string text) {
  if (about == note_about_ && !note_.empty()) return;
  note_about_ = about;
  note_ = std::move(text);
}

void IterationPlanner::refused(std::uint64_t excess) {
  if (period_ == 0) return;
  // What it was to do without is in its slab still.
  const bool gave_up = !given_up_.empty();
  std::vector<KeptChunk>& chunks = options_.planning.slab.chunks;
  for (const KeptChunk& chunk : std::exchange(given_up_, {})) {
    std::erase_if(chunks, [&](const KeptChunk& one) { return one.address == chunk.address; });
    chunks.push_back(chunk);
  }
  if (gave_up && excess == 0) {
    // That may be what it was refused for: the iteration is planned with these chunks.
    options_.planning.gives_up_chunks = false;
    plan_again();
    return;
  }
  const std::uint64_t footprint = plan_->footprint();
  // Whatever the reason, what is hardly smaller is refused again.
  would_do_ = footprint - std::min(footprint, excess != 0 ? excess : footprint / kWorthwhilePart);
  refused_ = true;
  deviations_ = 0;
  say(mix(sent_), "the program refused the plan");
  improve();
}

void IterationPlanner::cannot_be_sent() {
  period_ = 0;
  deviations_ = 0;
  refused_ = false;
  settle();
  say(mix(signature_), "the iteration is too long for a plan");
}

void IterationPlanner::not_kept() {
  if (!plan_ || period_ == 0) return;
  ++not_kept_;
  planned_.clear();
  not_kept_operations_ = plan_->lifetimes.operations;
  say(mix(sent_),
      fmt::format("the program left the plan of {} operations: it did not keep to it", not_kept_operations_));
  forget_plan();
}

void IterationPlanner::plan_again() {
  planned_.clear();
  forget_plan();
}

void IterationPlanner::forget_plan() {
  settle();
  plan_.reset();
  period_ = 0;
  shortest_ = 0;
  sent_ = 0;
  deviations_ = 0;
  refused_ = false;
}

// Whether everything since the plan, or since its iteration was last seen, was that iteration.
bool IterationPlanner::still_planned() {
  if (period_ == 0 || lost_) return false;
  const Lane* lane = nullptr;
  for (const Lane& candidate : store_.lanes()) {
    if (candidate.number == lane_number_) lane = &candidate;
  }
  const std::uint64_t forgotten = lane == nullptr ? 0 : lane->operations.forgotten();
  const std::uint64_t end = lane == nullptr ? 0 : forgotten + lane->operations.size();
  lost_ = looked_at_ > end || looked_at_ < forgotten + period_;
  for (; !lost_ && looked_at_ < end; ++looked_at_) {
    const std::uint64_t index = looked_at_ - forgotten;
    lost_ = lane->operations.token(index) != lane->operations.token(index - period_);
  }
  return !lost_;
}

void IterationPlanner::follow(const Iteration& iteration) {
  lost_ = false;
  const LanePeriod& main = iteration.lanes[iteration.main];
  looked_at_ = store_.lanes()[main.lane].operations.forgotten() + main.end;
}

std::uint32_t IterationPlanner::next_horizon() {
  ++checks_;
  if (store_.operations().size() <= kFullHorizon) return 0;
  const int doublings = std::min(std::countr_zero(checks_), 12);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(kFullHorizon << doublings >> 2, std::uint64_t{1} << 31));
}

// What the program makes where it leaves its plan may lie in the slab, and stay there: its places are taken then for
// ever.
bool IterationPlanner::is_in_the_way(const Iteration& found) const {
  const SlabRange slab{
      .begin = options_.planning.slab.begin, .bytes = plan_->outcome.solution.height, .chunk_bytes = 0, .chunks = {}};
  const std::vector<std::uint32_t> stay = persistent_blocks(store_, found);
  return std::any_of(stay.begin(), stay.end(), [&](std::uint32_t index) {
    const Block block = store_.blocks()[index];
    return slab.contains(block) && !std::binary_search(persistent_.begin(), persistent_.end(), block.number);
  });
}

// Blocks of it turn out to outlive iterations now and then, and have places.
bool IterationPlanner::has_unsteady(const Iteration& found) const {
  const Unsteady unsteady = options_.planning.unsteady;
  if (unsteady == Unsteady::kPlaced) return false;
  return not_placed(lifetimes(store_, found, false, {}, unsteady)) > not_placed(plan_->lifetimes);
}

// Where each batch has a size of its own, two in a row are alike by chance.
bool IterationPlanner::is_doubtful(const Iteration& found) const {
  if (not_kept_ == 0 || found.operations() > not_kept_operations_ + not_kept_operations_ / kShorterPart) return false;
  const std::uint64_t period = found.lanes[found.main].period;
  return found.repeated < period * (kLeftRepeats << (2 * std::min(not_kept_ - 1, kMostReturns)));
}

// The planned iteration, of which other lanes have left it for now: as the thread of an optimizer does, and that of the
// backward passes does not.
bool IterationPlanner::is_part_of_planned(const Iteration& found) const {
  if (!found.partial || period_ == 0 || plan_->iteration.partial) return false;
  const LanePeriod& main = found.lanes[found.main];
  if (store_.lanes()[main.lane].number != lane_number_ || main.period != period_) return false;
  return found.repeated < kAloneRepeats * period_;
}

bool IterationPlanner::is_wanted(const Iteration& found) {
  if (is_doubtful(found) || is_part_of_planned(found)) return false;
  if (period_ != 0 && found.signature != signature_ && may_be_chance(found, shortest_)) return false;
  if (period_ != 0 && found.signature == signature_) {
    follow(found);
    if (std::exchange(left_, false) && (is_in_the_way(found) || has_unsteady(found))) return true;
  }
  const std::uint64_t period = found.lanes[found.main].period;
  if (const auto times = planned_.find(found.signature); times != planned_.end()) {
    // What was left for another iteration may be there again for good; each time it takes longer to believe it.
    if (period_ == 0 || found.signature == signature_ || times->second > kMostReturns) return false;
    return found.repeated >= std::max<std::uint64_t>(period, period_) * (kLeftRepeats << (2 * times->second - 2));
  }
  if (period_ == 0) return true;
  const bool goes_on = found.repeated >= kLeftRepeats * std::uint64_t{period_};
  if (!goes_on && is_of_smaller_batches(store_, found, plan_->lifetimes)) return false;
  // What is shorter than the planned iteration may be a loop in it, or something that comes now and then between two of
  // them, as an evaluation, and has room where they lie.
  return goes_on || found.operations() >= plan_->lifetimes.operations - plan_->lifetimes.operations / kShorterPart;
}

bool IterationPlanner::check() {
  const bool longer = deviations_ >= kDeviationsForLonger;
  // A lane that was left out may repeat by now.
  if (still_planned() && !longer && !left_ && !(plan_ && plan_->iteration.partial)) return false;
  DetectionOptions options;
  options.horizon = next_horizon();
  if (longer && !lost_ && !left_) options.longer_than = period_;
  options.accept = [this](const Iteration& found) { return is_wanted(found); };
  const Detection detection = detect(store_, options);
  if (detection.iteration) return adopt(*detection.iteration);
  if (plan_ && period_ != 0) return false;
  if (main_lane(store_) == kNone) {
    if (!store_.operations().empty()) say(1, "no memory has been allocated yet");
  } else {
    if (note_about_ <= 1) say(2, "waiting for operations that repeat");
    // What is met only once is not told, and nothing again before there are twice as many operations.
    if (detection.missed_period != 0 && detection.missed_period == missed_period_ &&
        store_.last_sequence() >= 2 * told_at_) {
      told_at_ = store_.last_sequence();
      say(combine(detection.missed_period, std::hash<std::string>{}(detection.miss)),
          std::to_string(detection.missed_period) + " operations repeat, but are no iteration: " + detection.miss);
    }
    missed_period_ = detection.missed_period;
  }
  return false;
}

// The largest height of a layout that would be worth sending.
std::uint64_t IterationPlanner::wanted() const {
  const std::uint64_t footprint = plan_->footprint();
  const std::uint64_t most = refused_ ? would_do_ : footprint - footprint / kWorthwhilePart;
  return most - std::min(most, plan_->lifetimes.persistent_bytes);
}

// Starts the search for a better layout of the plan where there may be one.
void IterationPlanner::improve() {
  improvement_.reset();
  const layout::Outcome& outcome = plan_->outcome;
  if (!options_.improve || outcome.optimal || wanted() < outcome.lower_bound) return;
  try {
    const auto goal = refused_ ? Improvement::Goal::kEnough : Improvement::Goal::kBetter;
    improvement_ = std::make_unique<Improvement>(plan_->problem, wanted(), goal);
  } catch (const std::system_error&) {
    // No thread to be had: the first layout is good enough to go on with.
  }
}

bool IterationPlanner::improved() {
  if (!improvement_) return false;
  std::optional<layout::Outcome> better = improvement_->take();
  if (!better) {
    if (improvement_->over()) improvement_.reset();
    return false;
  }
  plan_->outcome = *std::move(better);
  refused_ = false;
  sent_ = 0;
  return true;
}

// The iteration whose plan was refused is there again, if with other call stacks, and its layout would be refused too.
bool IterationPlanner::is_refused_again(const IterationPlan& next) const {
  return refused_ && next.footprint() > would_do_ && places_of_last(*plan_, next).has_value();
}

// A switch has a price: what is alive at it is in the way of the new places. The places of the last plan stay where
// they are good enough. True: all of them, and there is nothing to send.
bool IterationPlanner::keeps_places(IterationPlan& next) const {
  if (!plan_ || period_ == 0 || refused_) return false;
  std::optional<layout::Solution> known = places_of_last(*plan_, next);
  if (!known) return false;
  const bool hold = !layout::validate(next.problem, *known);
  const std::string_view solver = hold ? plan_->outcome.solver : "places kept";
  if (!hold) {
    // Most of them may.
    layout::Outcome again = layout::solve_again(next.problem, known->offsets, options_.planning.limits);
    if (!again.found(next.problem.buffers.size()) || layout::validate(next.problem, again.solution)) return false;
    known = std::move(again.solution);
  }
  const std::uint64_t footprint = known->height + next.lifetimes.persistent_bytes;
  if (known->height > next.outcome.solution.height + footprint / kWorthwhilePart) return false;
  next.outcome.solution = *std::move(known);
  next.outcome.solver = solver;
  next.outcome.optimal = next.outcome.solution.height == next.outcome.lower_bound;
  return hold;
}

bool IterationPlanner::adopt(const Iteration& iteration) {
  ++planned_[iteration.signature];
  std::string fault;
  std::optional<IterationPlan> plan = plan_iteration(store_, iteration, options_.planning, fault);
  if (!plan) {
    say(iteration.signature, "the layout was found to be wrong and is not used: " + fault);
    return false;
  }
  const bool refused = is_refused_again(*plan);
  const bool kept = refused || keeps_places(*plan);
  plan_ = std::move(plan);
  refused_ = refused;
  if (!kept) sent_ = 0;
  deviations_ = 0;
  const LanePeriod& main = iteration.lanes[iteration.main];
  lane_number_ = store_.lanes()[main.lane].number;
  const std::uint64_t operations = plan_->lifetimes.operations;
  shortest_ = shortest_ == 0 ? operations : std::min(shortest_, operations);
  period_ = main.period;
  signature_ = iteration.signature;
  follow(iteration);
  persistent_.clear();
  for (const std::uint32_t block : plan_->lifetimes.persistent) persistent_.push_back(store_.blocks()[block].number);
  improve();
  std::size_t mallocs = 0;
  for (const LaneMallocs& lane : plan_->lifetimes.lanes) mallocs += lane.mallocs.size();
  say(iteration.signature, "planned an iteration of " + std::to_string(plan_->lifetimes.operations) +
                               " operations with " + std::to_string(mallocs) + " allocations");
  return !kept;
}

}  // namespace memopt::planner
