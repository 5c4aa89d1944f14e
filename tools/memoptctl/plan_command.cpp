#include "plan_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/iteration/iteration_planner.h"
#include "planner/iteration/plan_json.h"
#include "planner/iteration/trace_file.h"
#include "planner/layout/files/csv_writer.h"
#include "planner/layout/files/instance.h"
#include "planner/layout/validation.h"
#include "planner/recording/format.h"
#include "planner/recording/reader.h"
#include "printable.h"
#include "shm/channel.h"

namespace memopt::tools {
namespace {

constexpr int kExitNoIteration = 4;
// No program comes as far; a file can say so.
constexpr std::uint64_t kLargestSequence = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestHole = std::uint64_t{1} << 30;

bool is_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  std::uint64_t magic = 0;
  file.read(reinterpret_cast<char*>(&magic), sizeof(magic));
  return file.gcount() == sizeof(magic) && magic == planner::recording::kFileMagic;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written: " + std::strerror(errno));
}

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

// The planner, looked at wherever the daemon would.
class Watcher {
 public:
  explicit Watcher(const PlanOptions& options)
      : name_(options.file.substr(options.file.rfind('/') + 1)),
        json_(!options.json.empty()),
        buffers_(!options.buffers.empty()),
        planner_(unrolled()) {}

  void add(std::uint32_t lane, const shm::RecordView& record) {
    const std::uint64_t sequence = record.header.sequence;
    if (sequence != last_ + 1) planner_.add_gap();
    last_ = sequence;
    ++records_;
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
    }
    return {std::move(plan_), planner_.note(), 0};
  }

 private:
  static planner::IterationPlanner::Options unrolled() {
    planner::IterationPlanner::Options options;
    options.planning.unroll = true;
    return options;
  }

  void check() {
    const auto begin = std::chrono::steady_clock::now();
    const bool found = planner_.check();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!found) return;
    const planner::IterationPlan& planned = *planner_.plan();
    FilePlan plan;
    plan.operations = planned.lifetimes.operations;
    plan.began_at = planned.lifetimes.first_iteration;
    plan.found_at = planned.detected_at;
    plan.plans = planner_.generation();
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
    if (planned.rounds > 1) {
      std::string fault;
      const auto in_turn = planner::plan_iteration(planner_.store(), planned.iteration, {}, fault);
      if (!in_turn) throw std::runtime_error("a layout of the planner is wrong: " + fault);
      plan.in_turn_slab = in_turn->outcome.solution.height;
    }
    const layout::Instance whole = whole_layout(planned, planner_.store());
    plan.rounding = layout::load_bound(whole.problem) - layout::load_bound(exact_layout(planned, planner_.store()));
    if (buffers_) plan.buffers = layout::write_csv(whole);
    if (json_) {
      std::ostringstream text;
      planner::write_plan_json(planner_.store(), planned, name_, text);
      plan.json = std::move(text).str();
    }
    plan_ = std::move(plan);
  }

  std::string name_;
  bool json_;
  bool buffers_;
  planner::IterationPlanner planner_;
  std::uint64_t last_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t check_point_ = shm::kFirstCheckPoint;
  double seconds_ = 0;
  std::optional<FilePlan> plan_;
};

std::string ratio(std::uint64_t bytes, std::uint64_t load) {
  return load == 0 ? "-" : fmt::format("{:.4f}", static_cast<double>(bytes) / static_cast<double>(load));
}

std::string both(std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", bytes_text(static_cast<double>(bytes)), bytes);
}

}  // namespace

FilePlanning plan_file(const PlanOptions& options) {
  const std::string& file = options.file;
  Watcher watcher(options);
  if (is_recording(file)) {
    planner::RecordingReader reader = planner::RecordingReader::open(file);
    while (const auto entry = reader.next()) {
      if (entry->kind == planner::recording::EntryKind::kRecord) watcher.add(entry->lane, entry->record);
    }
    return watcher.finish();
  }
  const planner::Trace trace = planner::read_trace(file);
  planner::RecordBuilder builder;
  for (const planner::TraceOperation& operation : trace.operations) watcher.add(0, record_of(operation, builder));
  FilePlanning planning = watcher.finish();
  planning.ignored = trace.ignored;
  return planning;
}

std::string plan_table(const FilePlanning& planning) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (planning.plan) {
    const FilePlan& plan = *planning.plan;
    rows = {{"operations per iteration", fmt::format("{}", plan.operations)},
            {"iteration found at", fmt::format("record {} of {}", plan.found_at, plan.records)},
            {"first iteration", fmt::format("from record {}", plan.began_at)},
            {"plans found", fmt::format("{}", plan.plans)},
            {"allocations", fmt::format("{} in {} lane{}", plan.mallocs, plan.lanes, plan.lanes == 1 ? "" : "s")},
            {"persistent", fmt::format("{} blocks, {}", plan.persistent_blocks, both(plan.persistent_bytes))},
            {"peak load", both(plan.peak_load)},
            {"slab", both(plan.slab)},
            {"lower bound of the slab", both(plan.lower_bound)},
            {"footprint", both(plan.footprint)},
            {"footprint / peak load", ratio(plan.footprint, plan.peak_load)},
            {"  of it by rounding to 512 B", ratio(plan.rounding, plan.peak_load)}};
    if (plan.rounds > 1) {
      rows.emplace_back("iterations planned as one", fmt::format("{}", plan.rounds));
      rows.emplace_back("  places in turn instead",
                        ratio(plan.footprint - plan.slab + plan.in_turn_slab, plan.peak_load));
    }
    rows.emplace_back("layout", plan.solver);
    rows.emplace_back("planning time", fmt::format("{:.1f} ms", plan.seconds * 1000));
  } else {
    rows.emplace_back("no iteration found", planning.note.empty() ? "there is no operation" : planning.note);
  }
  if (planning.ignored != 0) {
    rows.emplace_back("ignored", fmt::format("{} accesses to what was never allocated", planning.ignored));
  }
  std::size_t widest = 0;
  for (const auto& [name, value] : rows) widest = std::max(widest, name.size());
  std::string table;
  for (const auto& [name, value] : rows) table += fmt::format("{:{}}  {}\n", name, widest, value);
  return table;
}

int plan(const PlanOptions& options) {
  const FilePlanning planning = plan_file(options);
  fmt::print("{}", plan_table(planning));
  if (!planning.plan) return kExitNoIteration;
  if (!options.json.empty()) write_file(options.json, planning.plan->json);
  if (!options.buffers.empty()) write_file(options.buffers, planning.plan->buffers);
  return 0;
}

}  // namespace memopt::tools
