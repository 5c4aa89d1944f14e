#include "tools/memoptctl/fit/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "planner/recording/format.h"
#include "planner/recording/reader.h"
#include "planner/sending/framework_memory.h"
#include "planner/swap/model/load.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/plan/file_plan.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {
namespace {

// Physical memory comes in these, on all devices that memopt knows.
constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;
// Searches, within the time for all of them: the first two, and some to come close for each share of added time.
constexpr int kSearches = 16;
// Of the peak load: closer limits are not told apart.
constexpr double kClose = 0.01;
constexpr double kShortest = 0.05;  // seconds of a search

std::uint64_t in_chunks(std::uint64_t bytes) { return (bytes + kChunk - 1) / kChunk * kChunk; }

// What is live at most, and what a pool would hold.
void add_loads(input::File& file, Needs& needs) {
  planner::RecordingReader reader(file.stream());
  planner::FrameworkMemory pool;
  std::unordered_map<std::uint64_t, std::uint64_t> live;
  std::uint64_t load = 0, last = 0;
  while (const auto entry = reader.next()) {
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    const shm::RecordView& record = entry->record;
    if (record.header.sequence != last + 1) pool.add_gap({});
    last = record.header.sequence;
    pool.add(record, {});
    if (record.kind() == shm::RecordKind::kMalloc) {
      const auto body = record.as<shm::MallocBody>();
      std::uint64_t& bytes = live[body.block];
      load += body.bytes - bytes;
      bytes = body.bytes;
      needs.peak_load = std::max(needs.peak_load, load);
    } else if (record.kind() == shm::RecordKind::kFree) {
      const auto there = live.find(record.as<shm::FreeBody>().block);
      if (there == live.end()) continue;
      load -= there->second;
      live.erase(there);
    }
  }
  needs.caching = pool.reserved();
  if (reader.damage()) needs.damage = planner::to_string(*reader.damage());
}

// The least limits within which so much time is added at most, by searches for the least time within limits between.
class Curve {
 public:
  Curve(SwapProblem& input, const NeedsOptions& options, const std::function<void(const std::string&)>& stage)
      : problem_(input.file.problem), liveness_(input.liveness), stage_(stage) {
    limits_.time =
        std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * std::max(kShortest, options.seconds / kSearches)));
    limits_.threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    limits_.seed = options.seed;
    // As for a program that runs: it does not know which of a block's places is whose turn.
    limits_.in_step = false;
    limits_.cancelled = &end_at_interrupt();
  }

  // `whole`: what holds at no added time without swaps.
  void find(std::uint64_t whole, Needs& needs) {
    // Half of the time for the one that all others are compared with.
    problem_.limit.reset();
    stage_("swaps at no added time");
    std::uint64_t least = whole;
    if (const swap::SearchPlan plan = search(swap::Objective::kFootprint); plan.feasible)
      least = std::min(least, plan.footprint);
    known_[least] = 0;
    for (std::size_t i = 0; i < kAdded.size(); ++i) {
      needs.swapped[i] = in_chunks(i == 0 ? least : narrow(kAdded[i] / 100.0));
      if (interrupted()) return;
    }
  }

 private:
  swap::SearchPlan search(swap::Objective objective) {
    swap::SearchPlan plan = swap::search(problem_, liveness_, objective, limits_);
    if (!plan.feasible) return plan;
    const swap::Report report = swap::verify(problem_, plan.decisions);
    if (report.fault) throw std::runtime_error("a plan of ours does not hold: " + *report.fault);
    plan.added_ns = report.timing.added_ns;
    return plan;
  }

  // Between what is known to be enough and what is known, or certain, not to be.
  std::uint64_t narrow(double share) {
    const double allowed = std::max(share, swap::kUnnoticed) * problem_.period;
    std::uint64_t enough = ~std::uint64_t{0}, less = swap::least_load(problem_, liveness_);
    for (const auto& [limit, added] : known_) {
      if (added <= allowed) enough = std::min(enough, limit);
    }
    for (const auto& [limit, added] : known_) {
      if (added > allowed && limit < enough) less = std::max(less, limit);
    }
    const auto close = static_cast<std::uint64_t>(kClose * static_cast<double>(liveness_.peak));
    while (enough > less + std::max(close, kChunk) && !interrupted()) {
      const std::uint64_t limit = less + (enough - less) / 2;
      stage_(fmt::format("swaps that add {:g} %, within {} MiB", 100 * share, limit >> 20));
      problem_.limit = limit;
      const swap::SearchPlan plan = search(swap::Objective::kTime);
      const double added = plan.feasible ? plan.added_ns : HUGE_VAL;
      known_[limit] = added;
      if (plan.feasible && plan.footprint < limit) {
        const auto [there, fresh] = known_.try_emplace(plan.footprint, added);
        if (!fresh) there->second = std::min(there->second, added);
      }
      if (added <= allowed) {
        enough = std::min(limit, plan.footprint);
      } else {
        less = limit;
      }
    }
    return enough;
  }

  swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const std::function<void(const std::string&)>& stage_;
  swap::SearchLimits limits_;
  std::map<std::uint64_t, double> known_;  // limit -> time that the best plan within it adds
};

}  // namespace

Needs find_needs(input::File& recording, const NeedsOptions& options,
                 const std::function<void(const std::string&)>& stage) {
  Needs needs;
  if (!planner::recording::is_recording(recording.head())) {
    throw std::runtime_error(recording.name() +
                             ": expected a recording (memoptctl record), or what memoptctl import reads");
  }
  stage("reading");
  try {
    add_loads(recording, needs);
  } catch (const planner::RecordingError& error) {
    throw std::runtime_error(recording.name() + ": " + error.what());
  }
  stage("layout");
  const FilePlanning planning = plan_file(recording, {.chunk_bytes = kChunk});
  if (!planning.plan) {
    needs.note =
        "no iteration was found: " + (planning.note.empty() ? std::string("there is no operation") : planning.note);
    return needs;
  }
  needs.layout = planning.plan->held;
  needs.iteration_load = planning.plan->peak_load;
  if (!options.swaps) return needs;
  if (planning.blind_launches != 0) {
    needs.note = fmt::format("no swaps: what {} launches touch was not seen", planning.blind_launches);
    return needs;
  }
  try {
    SwapPlanOptions swaps;
    // The device of a recording waits for cudaMalloc, which it will not under a plan: what is hidden behind that would
    // not be.
    swaps.idle = false;
    std::optional<SwapProblem> input = read_problem(swaps, recording);
    if (!input) return needs;
    input->file.problem.machine = options.machine;
    needs.period_ns = input->file.problem.period;
    needs.times = input->times;
    Curve(*input, options, stage).find(planning.plan->held, needs);
  } catch (const input::InputError&) {
    throw;
  } catch (const std::runtime_error& error) {
    std::string why = error.what();
    if (why.starts_with(recording.name() + ": ")) why.erase(0, recording.name().size() + 2);
    needs.note = "no swaps: " + why;
  }
  return needs;
}

}  // namespace memopt::tools
