#include "tools/memoptctl/plan/file_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/trace_file.h"
#include "planner/layout/files/csv.h"
#include "planner/layout/files/instance.h"
#include "planner/layout/problem/validation.h"
#include "planner/recording/clock_line.h"
#include "planner/recording/format.h"
#include "planner/recording/reader.h"
#include "planner/sending/timed_iteration.h"
#include "shm/channel.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

// No program comes as far; a file can say so.
constexpr std::uint64_t kLargestSequence = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostChunks = 10'000'000;
constexpr std::uint64_t kLargestHole = std::uint64_t{1} << 30;

// The layout problem with the blocks that are always there, which the planner itself leaves where they are.
layout::Instance whole_layout(const planner::IterationPlan& plan, const planner::OperationStore& store) {
  layout::Instance instance;
  instance.problem = plan.problem;
  const std::uint64_t end = plan.lifetimes.operations * plan.rounds;
  for (std::size_t i = 0; i < plan.problem.buffers.size(); ++i) instance.ids.push_back(fmt::format("{}", i));
  for (const std::uint32_t block : plan.lifetimes.persistent) {
    const auto& persistent = store.blocks()[block];
    instance.problem.add(planner::place_bytes(persistent.bytes), {0, end});
    instance.ids.push_back(fmt::format("persistent-{}", persistent.number));
  }
  return instance;
}

// The same with sizes as the program asked for them.
layout::Problem exact_layout(const planner::IterationPlan& plan, const planner::OperationStore& store) {
  layout::Problem problem = whole_layout(plan, store).problem;
  std::size_t buffer = 0;
  if (plan.pools) return problem;  // places of pools are for blocks of several sizes
  for (const planner::LaneMallocs& lane : plan.lifetimes.lanes) {
    for (const planner::MallocLife& malloc : lane.mallocs) {
      const std::size_t places = plan.rounds > 1 ? plan.rounds : malloc.places;
      for (std::size_t i = 0; i < places; ++i) problem.buffers[buffer++].bytes = malloc.bytes;
    }
  }
  for (const std::uint32_t block : plan.lifetimes.persistent) {
    const auto& persistent = store.blocks()[block];
    problem.buffers[buffer++].bytes = persistent.bytes;
  }
  return problem;
}

// Chunks of the slab, and those beside it in which blocks lie that stay.
std::uint64_t held_chunks(const planner::IterationPlan& plan, std::uint64_t chunk_bytes) {
  std::set<std::uint64_t> beside;
  std::uint64_t homeless = 0;  // bytes of blocks without an address
  for (const planner::StayingBlock& block : plan.lifetimes.staying) {
    if (block.bytes == 0 || block.address == 0) continue;
    const std::uint64_t first = block.address / chunk_bytes, last = (block.address + block.bytes - 1) / chunk_bytes;
    // Addresses of a file can be anything.
    if (last - first > block.bytes / chunk_bytes + 1) {
      homeless += block.bytes;
      continue;
    }
    if (beside.size() + (last - first) > kMostChunks) {
      homeless += block.bytes;
      continue;
    }
    for (std::uint64_t chunk = first; chunk <= last; ++chunk) beside.insert(chunk);
  }
  for (const planner::KeptChunk& kept : plan.lifetimes.kept_chunks) beside.erase(kept.address / chunk_bytes);
  const std::uint64_t slab = (plan.outcome.solution.height + chunk_bytes - 1) / chunk_bytes;
  return (slab + beside.size() + (homeless + chunk_bytes - 1) / chunk_bytes) * chunk_bytes;
}

// The planner, looked at wherever the daemon would.
class Watcher {
 public:
  Watcher(const input::File& file, const FilePlanOptions& options, const planner::ClockLine& clock)
      : wanted_(options.iteration),
        buffers_(options.buffers),
        idle_(options.idle),
        chunk_bytes_(options.chunk_bytes),
        clock_(clock),
        planner_(planner_options(chunk_bytes_ != 0)),
        iteration_(printable(file.path().substr(file.path().rfind('/') + 1))) {
    planner_.keep_chunks_of(chunk_bytes_);
  }

  void add(std::uint32_t lane, const shm::RecordView& record) {
    const std::uint64_t sequence = record.header.sequence;
    const bool gap = sequence != last_ + 1;
    if (gap) planner_.add_gap();
    if (wanted_) iteration_.add(lane, record, gap);
    last_ = sequence;
    ++records_;
    blind_ += record.kind() == shm::RecordKind::kLaunch && (record.header.flags & shm::kBlindLaunch) != 0;
    planner_.add(lane, record);
    if (sequence < check_point_ || sequence > kLargestSequence) return;
    if (sequence - check_point_ > kLargestHole) check_point_ = sequence;
    while (check_point_ <= sequence) check_point_ = shm::next_check_point(check_point_);
    check();
  }

  FilePlanning finish() {
    check();
    if (plan_) {
      plan_->records = records_;
      plan_->seconds = seconds_;
      if (iteration_) build_iteration();
    }
    FilePlanning planning;
    planning.plan = std::move(plan_);
    planning.note = planner_.note();
    planning.blind_launches = blind_;
    return planning;
  }

 private:
  // `followed`: as of a program that runs under its plans (planner/sending/program.cpp), where a file's plan places
  // all.
  static planner::IterationPlanner::Options planner_options(bool followed) {
    planner::IterationPlanner::Options options;
    options.planning.unroll = true;
    if (followed) options.planning.unsteady = planner::Unsteady::kNotPlaced;
    return options;
  }

  void check() {
    const auto begin = std::chrono::steady_clock::now();
    const bool found = planner_.check();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (wanted_) iteration_.look(planner_);
    if (!found) return;
    const planner::IterationPlan& planned = *planner_.plan();
    FilePlan plan;
    plan.operations = planned.lifetimes.operations;
    plan.began_at = planned.lifetimes.first_iteration;
    plan.found_at = planned.detected_at;
    plan.plans = ++plans_;
    plan.lanes = planned.lifetimes.lanes.size();
    for (const planner::LaneMallocs& lane : planned.lifetimes.lanes) plan.mallocs += lane.operations.size();
    plan.persistent_blocks = planned.lifetimes.persistent.size();
    plan.persistent_bytes = planned.lifetimes.persistent_bytes;
    plan.peak_load = planned.lifetimes.peak_load;
    plan.slab = planned.outcome.solution.height;
    plan.footprint = plan.slab;
    for (const std::uint32_t block : planned.lifetimes.persistent) {
      plan.footprint += planner::place_bytes(planner_.store().blocks()[block].bytes);
    }
    plan.lower_bound = planned.outcome.lower_bound;
    plan.rounds = planned.rounds;
    plan.solver = planned.outcome.solver;
    plan.in_turn_slab = plan.slab;
    if (chunk_bytes_ != 0) {
      plan.held = held_chunks(planned, chunk_bytes_);
      plan_ = std::move(plan);
      // It goes live: chunks that it keeps for blocks that stay are where later plans have them.
      planner_.sent(plans_);
      planner_.adopted();
      return;
    }
    if (planned.rounds > 1) {
      std::string fault;
      const auto in_turn = planner::plan_iteration(planner_.store(), planned.iteration, {.pools = false}, fault);
      if (!in_turn) throw std::runtime_error("a layout of the planner is wrong: " + fault);
      plan.in_turn_slab = in_turn->outcome.solution.height;
    }
    const layout::Instance whole = whole_layout(planned, planner_.store());
    plan.rounding = layout::load_bound(whole.problem) - layout::load_bound(exact_layout(planned, planner_.store()));
    if (buffers_) plan.buffers = layout::write_csv(whole);
    plan_ = std::move(plan);
  }

  // What was measured behind the record at which it was found counts, too.
  void build_iteration() {
    plan_->times = iteration_.times();
    if (!idle_) plan_->times.forget_idle();
    if (plan_->times.known()) {
      plan_->iteration = iteration_.problem(plan_->times);
    } else {
      plan_->iteration = iteration_.problem([this](std::uint64_t ticks) { return clock_.nanoseconds(ticks); });
    }
  }

  bool wanted_;  // the iteration
  bool buffers_;
  bool idle_;  // counts
  std::uint64_t chunk_bytes_;
  const planner::ClockLine& clock_;
  planner::IterationPlanner planner_;
  planner::TimedIteration iteration_;  // of the last plan
  std::uint64_t last_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t plans_ = 0;  // that were found
  std::uint64_t blind_ = 0;
  std::uint64_t check_point_ = shm::kFirstCheckPoint;
  double seconds_ = 0;
  std::optional<FilePlan> plan_;
};

// Times need the whole file's clock.
planner::ClockLine clock_of(input::File& file) {
  planner::RecordingReader reader(file.stream());
  return planner::read_clock(reader);
}

FilePlanning plan_recording(input::File& file, const FilePlanOptions& options) {
  const planner::ClockLine clock = options.iteration ? clock_of(file) : planner::ClockLine();
  Watcher watcher(file, options, clock);
  planner::RecordingReader reader(file.stream());
  while (const auto entry = reader.next()) {
    if (entry->kind == planner::recording::EntryKind::kRecord) watcher.add(entry->lane, entry->record);
  }
  FilePlanning planning = watcher.finish();
  planning.recording = true;
  if (reader.damage()) planning.damage = planner::to_string(*reader.damage());
  return planning;
}

std::string assumed_of(const planner::Trace& trace) {
  std::string text;
  if (trace.indexed) text = "the numbers in front of the operations are an index";
  if (!trace.timed)
    text +=
        fmt::format("{}there are no times: {} ns between operations", text.empty() ? "" : "; ", planner::kAssumedTime);
  return text;
}

// The ticks of its records are the times of the trace, as they are.
FilePlanning plan_trace(input::File& file, const FilePlanOptions& options) {
  const planner::ClockLine none;
  Watcher watcher(file, options, none);
  const planner::Trace trace = planner::read_trace(file);
  planner::RecordBuilder builder;
  for (const planner::TraceOperation& operation : trace.operations) watcher.add(0, record_of(operation, builder));
  FilePlanning planning = watcher.finish();
  planning.ignored = trace.ignored;
  planning.assumed = assumed_of(trace);
  planning.timed = trace.timed;
  return planning;
}

std::string milliseconds(std::uint64_t nanoseconds) {
  return fmt::format("{:.3f} ms", static_cast<double>(nanoseconds) / 1e6);
}

std::string device_times(const planner::IterationTimes& times) {
  using Source = planner::IterationTimes::Source;
  std::string text =
      fmt::format("device, {} of {} operations measured", times.from(Source::kMeasured), times.on_device);
  const auto others = [&](Source source, const char* how) {
    if (times.from(source) != 0) text += fmt::format(", {} {}", times.from(source), how);
  };
  others(Source::kAlike, "as others of the same size");
  others(Source::kGuessed, "guessed");
  others(Source::kUnknown, "unknown, taken as none");
  if (times.period == 0) return text + "; idle times may be missing";
  if (times.busy > times.period) {
    text += fmt::format("; they take {}, the iteration {}: some ran at the same time", milliseconds(times.busy),
                        milliseconds(times.period));
  } else {
    text += fmt::format("; idle for {} of {}", milliseconds(times.period - times.busy), milliseconds(times.period));
  }
  return text;
}

}  // namespace

std::string times_text(const FilePlanning& planning) {
  if (!planning.recording && !planning.timed) {
    return fmt::format("assumed, {} ns between operations, as the trace has none", planner::kAssumedTime);
  }
  if (!planning.recording) return "the trace's, as nanoseconds";
  if (planning.plan->times.known()) return device_times(planning.plan->times);
  return "host's calls; what the device did is not recorded";
}

FilePlanning plan_file(input::File& file, const FilePlanOptions& options) {
  if (!planner::recording::is_recording(file.head())) return plan_trace(file, options);
  try {
    return plan_recording(file, options);
  } catch (const planner::RecordingError& error) {
    throw std::runtime_error(file.name() + ": " + error.what());
  }
}

}  // namespace memopt::tools
