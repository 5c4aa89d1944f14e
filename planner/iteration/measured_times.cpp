#include "planner/iteration/measured_times.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "planner/iteration/hash.h"

namespace memopt::planner {
namespace {

using shm::RecordKind;

// Above what programs have; a made-up file must not take all memory.
constexpr std::uint32_t kMostLanes = 4096;
// Then the older half is forgotten.
constexpr std::size_t kMostSamples = std::size_t{1} << 20;
constexpr std::size_t kMostShapes = std::size_t{1} << 16;
// Of a lane that leaves the iteration again and again: then the older half is forgotten.
constexpr std::size_t kMostRuns = std::size_t{1} << 14;
// What a measured operation is looked for among: many times what a program queues ahead.
constexpr std::size_t kMostRecent = std::size_t{1} << 20;
// More than a year is no time.
constexpr std::uint64_t kMostNanoseconds = std::uint64_t{1} << 55;

constexpr std::uint32_t kLaunches = 0;
constexpr std::uint32_t kMemsets = 1;
constexpr std::uint32_t kCopies = 1;  // with the direction, from 1 on, added

bool is_operation(RecordKind kind) { return kind >= RecordKind::kMalloc && kind <= RecordKind::kMemset; }

template <typename Number>
Number median(std::vector<Number> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// What an operation takes, of what was measured of it (not empty). The least is without what the host adds where the
// device waits for the call: by a few microseconds each time, perhaps. But times of the operation itself differ too,
// and of a sum of least ones the program would take longer than that in each iteration.
std::uint64_t likely(std::vector<std::uint64_t>& measured) {
  constexpr std::uint64_t kHostAdds = 10'000;
  const auto middle = measured.begin() + static_cast<std::ptrdiff_t>((measured.size() - 1) / 2);
  std::nth_element(measured.begin(), middle, measured.end());
  const std::uint64_t least = *std::min_element(measured.begin(), middle + 1);
  return std::max(least, *middle - std::min(*middle, kHostAdds));
}

// The older one.
template <typename Sample>
void forget_half(std::vector<Sample>& samples) {
  samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
}

// For each beginning of a pattern the length of its longest border (Knuth, Morris and Pratt 1977).
std::vector<std::uint32_t> borders_of(const std::vector<std::uint64_t>& pattern) {
  std::vector<std::uint32_t> borders(pattern.size(), 0);
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    std::uint32_t length = borders[i - 1];
    while (length > 0 && pattern[i] != pattern[length]) length = borders[length - 1];
    borders[i] = pattern[i] == pattern[length] ? length + 1 : 0;
  }
  return borders;
}

// Of an operation, without what may be another when the iteration is found again: the call stack of a block's malloc.
std::uint64_t plain_token(const OperationStore& store, std::uint32_t position) {
  const Operation op = store.operations()[position];
  if (op.kind != OperationKind::kMalloc && op.kind != OperationKind::kFree) return op.token;
  const auto kind = static_cast<std::uint64_t>(op.kind);
  if (op.block == kNone) return kind;
  const Block block = store.blocks()[op.block];
  return combine(combine(kind, block.bytes), block.return_address);
}

}  // namespace

std::uint64_t IterationTimes::total() const {
  return std::accumulate(operations.begin(), operations.end(), idle_at_end,
                         [](std::uint64_t sum, const Time& time) { return sum + time.idle + time.busy; });
}

void IterationTimes::forget_idle() {
  for (Time& time : operations) time.idle = 0;
  idle_at_end = 0;
  period = 0;
}

void MeasuredTimes::begin_behind(const OperationStore& store) {
  for (const memopt::planner::Lane& lane : store.lanes()) {
    if (lane.number >= kMostLanes) continue;
    if (lane.number >= counts_.size()) counts_.resize(lane.number + 1, 0);
    counts_[lane.number] = lane.operations.forgotten() + lane.operations.size();
  }
}

void MeasuredTimes::add(std::uint32_t lane, const shm::RecordView& record, bool gap) {
  // Operations that are missing have no number.
  if (gap) {
    for (Lane& each : lanes_) each.broken = true;
  }
  const RecordKind kind = record.kind();
  if (kind == RecordKind::kKernelTime) return measured(record.as<shm::KernelTimeBody>(), record.header.aux);
  if (!is_operation(kind) || lane >= kMostLanes) return;
  if (lane >= counts_.size()) counts_.resize(lane + 1, 0);
  const std::uint64_t index = counts_[lane]++;
  Recent recent{record.header.sequence, static_cast<std::uint64_t>(kind), 0, index, lane, kLaunches};
  if (kind == RecordKind::kLaunch) {
    const auto body = record.as<shm::LaunchBody>();
    recent.shape = combine(recent.shape, record.header.aux);
    for (const std::uint32_t size : body.grid) recent.shape = combine(recent.shape, size);
    for (const std::uint32_t size : body.block) recent.shape = combine(recent.shape, size);
    recent.shape = combine(recent.shape, body.shared_bytes);
  } else if (kind == RecordKind::kCopy) {
    recent.bytes = record.as<shm::CopyBody>().bytes;
    // A direction that does not exist is not known.
    const auto unknown = static_cast<std::uint32_t>(shm::CopyKind::kUnknown);
    recent.kind = kCopies + (record.header.aux == 0 ? unknown : std::min(record.header.aux, unknown));
    recent.shape = combine(combine(recent.shape, recent.kind), recent.bytes);
  } else if (kind == RecordKind::kMemset) {
    recent.bytes = record.as<shm::MemsetBody>().bytes;
    recent.kind = kMemsets;
    recent.shape = combine(recent.shape, recent.bytes);
  } else {
    return;
  }
  // A file that is out of order is not searched.
  if (!recent_.empty() && recent_.back().sequence >= recent.sequence) recent_.clear();
  if (recent_.size() == kMostRecent) recent_.pop_front();
  recent_.push_back(recent);
}

const MeasuredTimes::Recent* MeasuredTimes::find(std::uint64_t sequence) const {
  const auto found = std::lower_bound(recent_.begin(), recent_.end(), sequence,
                                      [](const Recent& recent, std::uint64_t s) { return recent.sequence < s; });
  return found != recent_.end() && found->sequence == sequence ? &*found : nullptr;
}

void MeasuredTimes::measured(const shm::KernelTimeBody& body, std::uint32_t idle) {
  const Recent* const operation = find(body.launch);
  if (operation == nullptr || body.nanoseconds > kMostNanoseconds) return;
  if (samples_.size() == kMostSamples) {
    forget_half(samples_);
    forget_half(launches_);
  }
  samples_.push_back({operation->index, operation->lane, idle, body.nanoseconds, body.end});
  // A program has some hundreds.
  if (least_by_shape_.size() >= kMostShapes) least_by_shape_.clear();
  if (by_bytes_[operation->kind].size() >= kMostShapes) by_bytes_[operation->kind].clear();
  const auto [least, first] = least_by_shape_.try_emplace(operation->shape, body.nanoseconds);
  if (!first) least->second = std::min(least->second, body.nanoseconds);
  if (operation->kind == kLaunches) {
    launches_.push_back(body.nanoseconds);
  } else {
    const auto [same, fresh] = by_bytes_[operation->kind].try_emplace(operation->bytes, body.nanoseconds);
    if (!fresh) same->second = std::min(same->second, body.nanoseconds);
  }
}

// What others say of an operation that was never measured; `alike_here`: the averages of those in the iteration that
// are of the same shape, `launch`: the median of launches, 0 if there is none.
IterationTimes::Time MeasuredTimes::of_others(const Step& step, const Averages& alike_here, std::uint64_t launch,
                                              double launched_rate) const {
  using Source = IterationTimes::Source;
  if (const auto alike = alike_here.find(step.shape); alike != alike_here.end()) {
    return {0, alike->second.value(), Source::kAlike};
  }
  if (const auto alike = least_by_shape_.find(step.shape); alike != least_by_shape_.end()) {
    return {0, alike->second, Source::kAlike};
  }
  if (step.kind == kLaunches && step.bytes != 0 && launched_rate > 0) {
    const double guess =
        std::min(static_cast<double>(step.bytes) * launched_rate, static_cast<double>(kMostNanoseconds));
    return {0, static_cast<std::uint64_t>(guess), Source::kGuessed};
  }
  if (step.kind == kLaunches) {
    return launch == 0 ? IterationTimes::Time{} : IterationTimes::Time{0, launch, Source::kGuessed};
  }
  const auto& sizes = by_bytes_[step.kind];
  if (sizes.empty()) return {};
  if (const auto larger = sizes.lower_bound(step.bytes); larger != sizes.end()) {
    return {0, larger->second, Source::kGuessed};
  }
  const auto [bytes, time] = *sizes.rbegin();
  const double ratio = static_cast<double>(step.bytes) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
  const double longer = std::min(ratio * static_cast<double>(time), static_cast<double>(kMostNanoseconds));
  return {0, static_cast<std::uint64_t>(longer), Source::kGuessed};
}

void MeasuredTimes::begin(const OperationStore& store, const IterationPlan& plan) {
  lanes_.clear();
  steps_.clear();
  std::unordered_map<std::uint32_t, std::uint32_t> places;  // of the store's lanes
  std::vector<std::uint64_t> origins;                       // where an iteration begins, by lane
  for (const LanePeriod& lane : plan.iteration.lanes) {
    const planner::Lane& operations = store.lanes()[lane.lane];
    const std::uint64_t forgotten = operations.operations.forgotten();
    places.emplace(lane.lane, lanes_.size());
    Lane& added = lanes_.emplace_back();
    added.number = operations.number;
    added.in_store = lane.lane;
    added.tokens.resize(lane.period);
    operations.operations.copy_tokens(lane.middle(), added.tokens);
    for (std::size_t i = 0; i < lane.period; ++i) {
      added.plain.push_back(plain_token(store, operations.operations[lane.middle() + i]));
    }
    added.borders = borders_of(added.plain);
    // What was measured of it before it was found counts, too: of an iteration that is found again from another place
    // on, or by other calls, that may be nearly all.
    added.followed = forgotten;
    origins.push_back(forgotten + lane.begin());
  }
  for (const std::uint32_t position : plan.lifetimes.order) {
    const Operation op = store.operations()[position];
    Step step;
    step.on_device = op.kind != OperationKind::kMalloc && op.kind != OperationKind::kFree;
    step.lane = places.at(op.lane);
    const Lane& lane = lanes_[step.lane];
    const std::uint64_t index = store.lanes()[op.lane].operations.forgotten() + op.lane_index;
    step.phase = (index - origins[step.lane]) % lane.tokens.size();
    if (const Recent* const recent = step.on_device ? find(op.sequence) : nullptr) {
      step.shape = recent->shape;
      step.bytes = recent->bytes;
      step.kind = recent->kind;
    }
    if (op.kind == OperationKind::kLaunch) {
      for (const Access& access : store.accesses(position)) step.bytes += store.blocks()[access.block].bytes;
    }
    steps_.push_back(step);
  }
  follow(store);
}

// A run goes on while each token is the next one. Behind one that is not, the next iteration is searched for as Knuth,
// Morris and Pratt (1977) do.
void MeasuredTimes::follow(const OperationStore& store) {
  for (Lane& lane : lanes_) {
    const LaneOperations& operations = store.lanes()[lane.in_store].operations;
    const std::uint64_t forgotten = operations.forgotten();
    const std::uint64_t end = forgotten + operations.size();
    const std::size_t period = lane.tokens.size();
    if (lane.followed < forgotten || lane.broken) {
      lane.followed = std::max(lane.followed, forgotten);
      lane.matched = 0;
      lane.broken = false;
    }
    for (; lane.followed < end; ++lane.followed) {
      const auto index = static_cast<std::size_t>(lane.followed - forgotten);
      const std::uint64_t token = operations.token(index);
      std::optional<std::uint64_t> plain;
      const auto is = [&](std::size_t phase) {
        if (token == lane.tokens[phase]) return true;
        if (!plain) plain = plain_token(store, operations[index]);
        return *plain == lane.plain[phase];
      };
      if (lane.matched == period) {
        Run& run = lane.runs.back();
        if (is((lane.followed - run.begin) % period)) {
          ++run.end;
          continue;
        }
        // Of the operations before, so many are the beginning of another iteration.
        lane.matched = (lane.followed - run.begin) % period;
      }
      while (lane.matched > 0 && !is(lane.matched)) lane.matched = lane.borders[lane.matched - 1];
      if (is(lane.matched) && ++lane.matched == period) {
        if (lane.runs.size() == kMostRuns) forget_half(lane.runs);
        lane.runs.push_back({lane.followed + 1 - period, lane.followed + 1});
      }
    }
  }
}

const MeasuredTimes::Run* MeasuredTimes::Lane::run_with(std::uint64_t index) const {
  const auto behind =
      std::upper_bound(runs.begin(), runs.end(), index, [](std::uint64_t i, const Run& run) { return i < run.begin; });
  return behind != runs.begin() && index < std::prev(behind)->end ? &*std::prev(behind) : nullptr;
}

// When an operation would have ended an iteration later goes by those that were measured around it: as far between
// their ends as it lies between them.
std::uint64_t MeasuredTimes::about_period() const {
  struct End {
    std::uint64_t index = 0, time = 0;
    const Run* run = nullptr;
  };
  std::vector<std::uint64_t> periods;
  for (const Lane& lane : lanes_) {
    const std::uint64_t period = lane.tokens.size();
    std::vector<End> ends;
    for (const Sample& sample : samples_) {
      if (sample.lane != lane.number || sample.end == 0) continue;
      const Run* const run = lane.run_with(sample.index);
      if (run != nullptr && (ends.empty() || ends.back().index < sample.index)) {
        ends.push_back({sample.index, sample.end, run});
      }
    }
    std::size_t behind = 0;
    for (const End& one : ends) {
      const std::uint64_t then = one.index + period;
      while (behind < ends.size() && ends[behind].index < then) ++behind;
      if (behind == 0 || behind == ends.size()) continue;
      const End& before = ends[behind - 1];
      const End& after = ends[behind];
      if (before.run != one.run || after.run != one.run || after.time < before.time) continue;
      const double part = static_cast<double>(then - before.index) / static_cast<double>(after.index - before.index);
      const auto end = static_cast<double>(before.time) + part * static_cast<double>(after.time - before.time);
      if (end > static_cast<double>(one.time)) {
        periods.push_back(static_cast<std::uint64_t>(end) - one.time);
      }
    }
  }
  return periods.empty() ? 0 : median(std::move(periods));
}

IterationTimes MeasuredTimes::of_iteration() const {
  IterationTimes result;
  result.operations.resize(steps_.size());
  struct Own {
    std::vector<std::uint64_t> measured;
    std::uint64_t busy = 0;                                                // by these, if there are any
    std::uint64_t least_slot = std::numeric_limits<std::uint64_t>::max();  // with the idle time before it
    const Run* run = nullptr;                                              // of the last sample with an end
    std::uint64_t turn = 0, end = 0;
  };
  std::vector<std::vector<Own>> own;
  std::unordered_map<std::uint32_t, std::size_t> places;
  for (const Lane& lane : lanes_) {
    places.emplace(lane.number, own.size());
    own.emplace_back(lane.tokens.size());
  }
  std::vector<std::uint64_t> periods;
  for (const Sample& sample : samples_) {
    const auto place = places.find(sample.lane);
    if (place == places.end()) continue;
    const Lane& lane = lanes_[place->second];
    const Run* const run = lane.run_with(sample.index);
    if (run == nullptr) continue;
    Own& mine = own[place->second][(sample.index - run->begin) % lane.tokens.size()];
    const std::uint64_t turn = (sample.index - run->begin) / lane.tokens.size();
    mine.measured.push_back(sample.nanoseconds);
    if (sample.idle != shm::kIdleUnknown) mine.least_slot = std::min(mine.least_slot, sample.nanoseconds + sample.idle);
    if (sample.end == 0) continue;
    if (mine.run == run && turn > mine.turn && sample.end > mine.end) {
      periods.push_back((sample.end - mine.end) / (turn - mine.turn));
    }
    mine.run = run;
    mine.turn = turn;
    mine.end = sample.end;
  }
  for (std::vector<Own>& lane : own) {
    for (Own& mine : lane) {
      if (!mine.measured.empty()) mine.busy = likely(mine.measured);
    }
  }
  if (!periods.empty()) result.period = median(std::move(periods));
  result.pace = result.period != 0 ? result.period : about_period();

  const std::uint64_t launch = launches_.empty() ? 0 : median(launches_);
  // How long the launches that are known take for a byte of the blocks that they name.
  double known_time = 0, known_bytes = 0;
  // Those of one function and grid may differ much, as products of matrices do in their inner length: the least of all
  // would say too little of each, and the median of their sum.
  Averages alike_here;
  // Of the same function with the same grid, those that name as many bytes are more alike than others.
  std::map<std::pair<std::uint64_t, std::uint64_t>, Average> by_shape_and_bytes;
  for (const Step& step : steps_) {
    if (!step.on_device || step.kind != kLaunches || step.bytes == 0) continue;
    const Own& mine = own[step.lane][step.phase];
    const auto alike = least_by_shape_.find(step.shape);
    const bool measured = !mine.measured.empty();
    if (!measured && alike == least_by_shape_.end()) continue;
    if (measured) {
      alike_here[step.shape].add(mine.busy);
      by_shape_and_bytes[{step.shape, step.bytes}].add(mine.busy);
    }
    known_time += static_cast<double>(measured ? mine.busy : alike->second);
    known_bytes += static_cast<double>(step.bytes);
  }
  const double launched_rate = known_bytes > 0 ? known_time / known_bytes : 0;
  std::uint64_t idle = 0;
  std::vector<IterationTimes::Time*> unknown;  // how long the device idles before it
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    if (!step.on_device) continue;
    IterationTimes::Time& time = result.operations[k];
    const Own& mine = own[step.lane][step.phase];
    const bool knows_slot = mine.least_slot != std::numeric_limits<std::uint64_t>::max();
    if (!knows_slot) unknown.push_back(&time);
    if (!mine.measured.empty()) {
      time.busy = mine.busy;
      // What is likely of all may be more than the least of these.
      if (knows_slot) time.idle = mine.least_slot - std::min(mine.least_slot, mine.busy);
      time.source = IterationTimes::Source::kMeasured;
    } else {
      time = of_others(step, alike_here, launch, launched_rate);
      const auto alike = by_shape_and_bytes.find({step.shape, step.bytes});
      if (step.kind == kLaunches && alike != by_shape_and_bytes.end()) time.busy = alike->second.value();
    }
    ++result.on_device;
    ++result.of[static_cast<std::size_t>(time.source)];
    result.busy += time.busy;
    idle += time.idle;
  }
  if (result.period == 0) return result;
  const std::uint64_t room = result.period > result.busy ? result.period - result.busy : 0;
  if (idle > room) {
    const double part = static_cast<double>(room) / static_cast<double>(idle);
    idle = 0;
    for (IterationTimes::Time& time : result.operations) {
      time.idle = static_cast<std::uint64_t>(static_cast<double>(time.idle) * part);
      idle += time.idle;
    }
  }
  std::uint64_t rest = room > idle ? room - idle : 0;
  if (!unknown.empty()) {
    const std::uint64_t each = rest / unknown.size();
    for (IterationTimes::Time* const time : unknown) time->idle = each;
    rest -= each * unknown.size();
  }
  result.idle_at_end = rest;
  return result;
}

}  // namespace memopt::planner
