// Swaps planned for iterations of random programs, as an agent reads them.
#include "planner/sending/swap_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "agent/plan/plan.h"
#include "planner/program.h"
#include "planner/sending/iteration_problem.h"
#include "planner/swap/search/search.h"
#include "planner/swap/simulation/verify.h"
#include "tests/planner/iteration/stream.h"
#include "tests/planner/layout/sanitized.h"
#include "tests/planner/sending/training.h"

namespace memopt::planner {
namespace {

using layout::kSanitized;

constexpr std::uint64_t kMiB = 1 << 20;

// Swaps say where each block lies.
IterationPlanner::Options separate_places() {
  IterationPlanner::Options options;
  options.planning.pools = false;
  return options;
}

// A tick is a nanosecond.
bool find_plan(Training<Stream>& training) {
  Stream& stream = training.told;
  while (stream.plans.empty() && stream.builder.sequence() < 4000) training.iterate();
  return !stream.plans.empty();
}

struct Planned {
  std::vector<std::uint64_t> ranks;
  swap::Problem problem;
  std::vector<StayingPages> pages;
  swap::Decisions decisions;
  double added_ns = 0;
};

// Nothing where the search swaps nothing.
std::optional<Planned> planned(const Training<Stream>& training, std::uint64_t seed, bool limited) {
  const Stream& stream = training.told;
  Planned result;
  const IterationProblemBuilder builder(stream.planner.store(), *stream.planner.plan(), "");
  IterationProblem iteration = builder.build([](std::uint64_t ticks) { return ticks; });
  result.ranks = std::move(iteration.ranks);
  result.problem = std::move(iteration.problem);
  result.pages = gather_pages(iteration.persistent, result.problem.chunk, result.problem, result.ranks).pages;
  join_launches(result.ranks, result.problem);
  const swap::Liveness liveness = swap::find_liveness(result.problem);
  if (limited) result.problem.limit = liveness.peak * 11 / 20;
  swap::SearchLimits limits;
  limits.time = std::chrono::nanoseconds::max();
  limits.attempts = 3000;
  limits.seed = seed;
  swap::SearchPlan plan =
      swap::search(result.problem, liveness, limited ? swap::Objective::kTime : swap::Objective::kFootprint, limits);
  result.problem.limit.reset();
  if (plan.decisions.swaps.empty()) return std::nullopt;
  result.decisions = std::move(plan.decisions);
  result.added_ns = plan.added_ns;
  return result;
}

std::vector<std::byte> sent(const Training<Stream>& training, const Planned& plan, std::string& fault) {
  const IterationPlanner& planner = training.told.planner;
  std::vector<std::byte> bytes =
      SwapPlanWriter(planner.store(), *planner.plan(), planner.persistent())
          .bytes({plan.problem, plan.pages, plan.decisions, plan.ranks, plan.added_ns}, fault);
  if (!bytes.empty()) set_generation(bytes, 3);
  return bytes;
}

// Whether each block that an operation of the iteration accesses is on the device then, by what the agent was sent.
void expect_present(const Planned& plan, const agent::Plan& read) {
  const std::uint64_t n = read.operations;
  const std::size_t mallocs = read.mallocs.size();
  for (std::size_t i = 0; i < plan.problem.operations.size(); ++i) {
    const swap::Operation& operation = plan.problem.operations[i];
    if (operation.kind != swap::Kind::kRead && operation.kind != swap::Kind::kWrite) continue;
    const bool persists = operation.block >= mallocs;
    const std::uint64_t block = persists ? operation.block - mallocs : operation.block;
    const std::uint64_t position = plan.ranks[i] + operation.age * n;
    for (const shm::PlannedSwap& swap : read.swaps_of(block, persists)) {
      for (const std::uint64_t then : {position, position + n}) {
        if (!persists && then != position) continue;
        EXPECT_FALSE(swap.out_after < then && then < std::min(swap.need, std::uint64_t{1} << 62))
            << "block " << block << " at " << then << ", away from " << swap.out_after << " to " << swap.need;
      }
    }
  }
}

TEST(SwapPlan, AnAgentReadsWhatWasPlanned) {
  std::size_t with_swaps = 0, of_pages = 0, with_added_time = 0;
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 12 : 60); ++seed) {
    Training<Stream> training(seed, separate_places());
    ASSERT_TRUE(find_plan(training)) << seed;
    const auto plan = planned(training, seed, seed % 2 == 0);
    if (!plan) continue;
    const swap::Report report = swap::verify(plan->problem, plan->decisions);
    ASSERT_FALSE(report.fault.has_value()) << seed << ": " << *report.fault;
    std::string fault;
    const std::vector<std::byte> bytes = sent(training, *plan, fault);
    ASSERT_FALSE(bytes.empty()) << seed << ": " << fault;
    const auto read = agent::parse_plan(bytes, &fault);
    ASSERT_NE(read, nullptr) << seed << ": " << fault;
    ++with_swaps;
    with_added_time += read->added_ns > 0 ? 1 : 0;
    EXPECT_EQ(read->generation, 3u);
    EXPECT_EQ(read->swaps.size(), plan->decisions.swaps.size());
    EXPECT_EQ(read->period_ns, static_cast<std::uint64_t>(plan->problem.period));
    EXPECT_GE(read->slab_bytes, *report.footprint);
    EXPECT_LT(read->slab_bytes, *report.footprint + shm::kPlanAlignment);
    EXPECT_EQ(read->chunk_bytes, plan->problem.chunk);
    for (const shm::PlannedSwap& swap : read->swaps) of_pages += swap.flags & shm::kSwapPages;
    ASSERT_EQ(read->pages.size(), plan->pages.size());
    for (std::size_t i = 0; i < read->pages.size(); ++i) EXPECT_EQ(read->pages[i].address, plan->pages[i].address);
    expect_present(*plan, *read);
  }
  EXPECT_GT(with_swaps, kSanitized ? 6u : 30u);
  EXPECT_GT(of_pages, kSanitized ? 4u : 20u);
  EXPECT_GE(with_added_time, kSanitized ? 0u : 4u);
}

// Whatever the planner's own verifier accepts, an agent accepts; so an agent refuses nothing that holds.
TEST(SwapPlan, ChangedPlansAreRefusedOnlyIfTheyDoNotHold) {
  std::size_t held = 0, refused = 0;
  std::mt19937_64 random(7);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Training<Stream> training(seed, separate_places());
    ASSERT_TRUE(find_plan(training)) << seed;
    const auto plan = planned(training, seed, true);
    if (!plan) continue;
    for (int round = 0; round < 60; ++round) {
      Planned changed = *plan;
      swap::Decisions& decisions = changed.decisions;
      swap::Swap& swap = decisions.swaps[random() % decisions.swaps.size()];
      switch (random() % 5) {
        case 0:
          swap.in_after -= std::min<std::uint64_t>(swap.in_after, 1 + random() % 3);
          break;
        case 1:
          swap.out_after += 1 + random() % 3;
          break;
        case 2:
          swap.need += random() % 2 == 0 ? 1 : -1;
          break;
        case 3:
          decisions.swaps.erase(decisions.swaps.begin() + static_cast<std::ptrdiff_t>(&swap - decisions.swaps.data()));
          break;
        default:
          for (std::uint64_t& offset : decisions.places[random() % decisions.places.size()].offsets) {
            offset += (random() % 2 == 0 ? 1 : 2) * 2 * kMiB;
          }
      }
      const bool holds = !swap::verify(changed.problem, decisions).fault.has_value();
      std::string fault;
      const std::vector<std::byte> bytes = sent(training, changed, fault);
      const auto read = bytes.empty() ? nullptr : agent::parse_plan(bytes, &fault);
      if (holds) {
        EXPECT_NE(read, nullptr) << seed << ": " << fault;
        ++held;
      } else {
        refused += read == nullptr ? 1 : 0;
      }
    }
  }
  EXPECT_GT(held, 50u);
  EXPECT_GT(refused, 50u);
}

// Points say where a thread is when an operation happens: replayed from the program's own order.
TEST(SwapPlan, PointsCountFromTheLastMalloc) {
  Training<Stream> training(2, separate_places());
  ASSERT_TRUE(find_plan(training));
  const auto plan = planned(training, 1, true);
  ASSERT_TRUE(plan.has_value());
  std::string fault;
  const auto read = agent::parse_plan(sent(training, *plan, fault), &fault);
  ASSERT_NE(read, nullptr) << fault;
  std::map<std::uint64_t, swap::Kind> kinds;  // by rank; the accesses of a launch are one
  for (std::size_t i = 0; i < plan->ranks.size(); ++i) kinds.emplace(plan->ranks[i], plan->problem.operations[i].kind);
  ASSERT_EQ(kinds.size(), read->operations);
  for (const shm::PlannedPoint& point : read->points) {
    std::uint32_t since = 0, mallocs = 0;
    for (std::uint64_t back = point.rank;; back = (back + read->operations - 1) % read->operations) {
      if (kinds[back] == swap::Kind::kMalloc) break;
      since += kinds[back] == swap::Kind::kFree ? 0 : 1;
      ASSERT_LE(since, read->operations);
    }
    for (std::uint64_t rank = 0; rank <= point.rank; ++rank) mallocs += kinds[rank] == swap::Kind::kMalloc ? 1 : 0;
    const std::size_t count = read->lanes[0].mallocs.size();
    EXPECT_EQ(point.operations, since) << point.rank;
    EXPECT_EQ(point.flags, kinds[point.rank] == swap::Kind::kFree ? shm::kPointUncounted : 0) << point.rank;
    EXPECT_EQ((point.malloc + 1) % count, mallocs % count) << point.rank;
  }
}

TEST(SwapPlan, LaunchesAreJoinedByTheirRanks) {
  swap::Problem problem;
  using swap::Kind;
  problem.operations = {{Kind::kRead, 0, 0},
                        {Kind::kWrite, 1, 0},
                        {Kind::kNothing, swap::kNoBlock, 5},
                        {Kind::kRead, 0, 6},
                        {Kind::kRead, 0, 7}};
  join_launches({0, 0, 0, 1, 2}, problem);
  std::vector<bool> continues;
  for (const swap::Operation& operation : problem.operations) continues.push_back(operation.continues);
  EXPECT_EQ(continues, (std::vector<bool>{false, true, false, false, false}));
}

}  // namespace
}  // namespace memopt::planner
