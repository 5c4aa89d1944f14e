#include "tools/memoptctl/top/top_model.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace memopt::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Numbers {
  std::uint64_t out = 0, in = 0, deviations = 0, iteration = 0;
  double attached = 1;
  std::uint64_t limit = 100, held = 50, footprint = 60;
};

StatusRow row(pid_t pid, const Numbers& numbers = {}, const std::string& command = "prog") {
  StatusRow made;
  made.pid = pid;
  made.command = command;
  made.state = "planned";
  made.footprint = numbers.footprint;
  made.deviations = numbers.deviations;
  made.iteration = numbers.iteration;
  made.raw = {
      {"attached_seconds", numbers.attached},
      {"plan", {{"footprint_peak", 90}}},
      {"swaps",
       {{"limit", numbers.limit}, {"held", numbers.held}, {"copied_out", numbers.out}, {"copied_in", numbers.in}}}};
  return made;
}

std::vector<pid_t> order(const TopModel& model) {
  std::vector<pid_t> pids;
  for (const TopProcess& process : model.processes()) pids.push_back(process.pid);
  return pids;
}

TEST(TopModel, RatesComeFromTwoSamples) {
  TopModel model;
  model.add({row(1, {.out = 1000, .in = 500, .deviations = 3, .iteration = 10})}, seconds(5));
  EXPECT_EQ(model.processes()[0].out_rate, std::nullopt);
  EXPECT_EQ(model.processes()[0].copy_rate(), std::nullopt);
  model.add({row(1, {.out = 2000, .in = 1500, .deviations = 4, .iteration = 14, .attached = 3})}, seconds(7));
  const TopProcess& process = model.processes()[0];
  EXPECT_EQ(process.out_rate, 500.0);
  EXPECT_EQ(process.in_rate, 500.0);
  EXPECT_EQ(process.copy_rate(), 1000.0);
  EXPECT_EQ(process.deviation_rate, 0.5);
  EXPECT_EQ(process.iteration_rate, 2.0);
}

TEST(TopModel, AnotherProcessOfTheSameNumberHasNoRates) {
  TopModel model;
  model.add({row(1, {.out = 1000, .attached = 50})}, seconds(1));
  model.add({row(1, {.out = 5000, .attached = 1})}, seconds(2));
  EXPECT_EQ(model.processes()[0].out_rate, std::nullopt);
  model.add({row(1, {.out = 6000, .attached = 2})}, seconds(3));
  EXPECT_EQ(model.processes()[0].out_rate, 1000.0);
}

TEST(TopModel, CountersThatFallAndTimesThatDoNotPassGiveNoRates) {
  TopModel model;
  model.add({row(1, {.out = 1000})}, seconds(1));
  model.add({row(1, {.out = 999})}, seconds(2));
  EXPECT_EQ(model.processes()[0].out_rate, std::nullopt);
  model.add({row(1, {.out = 2000})}, seconds(2));
  EXPECT_EQ(model.processes()[0].out_rate, std::nullopt);
  model.add({row(1, {.out = 3000})}, seconds(1));
  EXPECT_EQ(model.processes()[0].out_rate, std::nullopt);
}

TEST(TopModel, WithoutAnAnswerNothingIsKnown) {
  TopModel model;
  StatusRow silent;
  silent.pid = 7;
  silent.state = "?";
  silent.problems = {"no status: it did not answer in time"};
  model.add({silent}, seconds(1));
  model.add({silent}, seconds(2));
  const TopProcess& process = model.processes()[0];
  EXPECT_TRUE(process.problem);
  EXPECT_EQ(process.filled(), std::nullopt);
  EXPECT_EQ(process.copy_rate(), std::nullopt);
  EXPECT_EQ(process.lines, std::vector<std::string>{"problem: no status: it did not answer in time"});
}

TEST(TopModel, ALimitOfNothingIsNone) {
  TopModel model;
  model.add({row(1, {.limit = 0}), row(2, {.limit = 200, .held = 100})}, seconds(1));
  EXPECT_EQ(model.processes()[0].limit, std::nullopt);
  EXPECT_EQ(model.processes()[0].filled(), std::nullopt);
  EXPECT_EQ(model.processes()[1].filled(), 0.5);
}

TEST(TopModel, SortsByEachKeyBothWays) {
  TopModel model;
  const std::vector<StatusRow> before = {
      row(1, {.deviations = 5, .limit = 100, .held = 10, .footprint = 30}, "c"),
      row(2, {.deviations = 7, .limit = 100, .held = 90, .footprint = 10}, "a"),
      row(3, {.deviations = 6, .limit = 0, .footprint = 20}, "b"),
  };
  auto now = before;
  now[0].raw["swaps"]["copied_out"] = 10U;
  now[2].raw["swaps"]["copied_in"] = 500U;
  model.add(before, seconds(1));
  model.add(now, seconds(2));
  const std::pair<TopKey, std::vector<pid_t>> wanted[] = {
      {TopKey::kFootprint, {1, 3, 2}},  {TopKey::kFilled, {2, 1, 3}}, {TopKey::kCopies, {3, 1, 2}},
      {TopKey::kDeviations, {2, 3, 1}}, {TopKey::kPid, {1, 2, 3}},    {TopKey::kState, {1, 2, 3}},
      {TopKey::kCommand, {2, 3, 1}},
  };
  for (const auto& [key, pids] : wanted) {
    model.sort_by(key);
    EXPECT_EQ(order(model), pids) << name_of(key);
    model.reverse();
    std::vector<pid_t> other(pids.rbegin(), pids.rend());
    // What is equal stays in the order of its numbers.
    if (key == TopKey::kState) other = pids;
    EXPECT_EQ(order(model), other) << name_of(key) << ", reversed";
    model.reverse();
  }
}

TEST(TopModel, TheSelectionStaysWithItsProcess) {
  TopModel model;
  EXPECT_EQ(model.selected(), std::nullopt);
  model.move_selection(1);
  model.add({row(1, {.footprint = 30}), row(2, {.footprint = 20}), row(3, {.footprint = 10})}, seconds(1));
  EXPECT_EQ(model.selected(), 0u);
  model.move_selection(1);
  model.sort_by(TopKey::kPid);
  model.reverse();
  model.sort_by(TopKey::kFootprint);
  EXPECT_EQ(order(model), (std::vector<pid_t>{3, 2, 1}));
  EXPECT_EQ(model.selected(), 1u);
  model.add({row(1, {.footprint = 30}), row(2, {.footprint = 5}), row(3, {.footprint = 10})}, seconds(2));
  EXPECT_EQ(model.processes()[*model.selected()].pid, 2);
  model.move_selection(-100);
  EXPECT_EQ(model.selected(), 0u);
  model.move_selection(100);
  EXPECT_EQ(model.selected(), 2u);
}

TEST(TopModel, AProcessThatEndedIsShownForAWhile) {
  TopModel model;
  model.add({row(1), row(2)}, seconds(1));
  model.sort_by(TopKey::kPid);
  model.select(1);
  for (int i = 0; i < TopModel::kShownAfterEnd; ++i) {
    model.add({row(1)}, seconds(2 + i));
    ASSERT_EQ(order(model), (std::vector<pid_t>{1, 2}));
    EXPECT_TRUE(model.processes()[1].ended);
    EXPECT_EQ(model.processes()[1].state, "ended");
    EXPECT_EQ(model.selected(), 1u);
  }
  model.add({row(1)}, seconds(9));
  EXPECT_EQ(order(model), std::vector<pid_t>{1});
  EXPECT_EQ(model.selected(), 0u);
  // Back again: another one, which begins anew.
  model.add({row(1), row(2, {.out = 7})}, seconds(10));
  EXPECT_FALSE(model.processes()[1].ended);
  EXPECT_EQ(model.processes()[1].out_rate, std::nullopt);
  for (int i = 0; i <= TopModel::kShownAfterEnd; ++i) model.add({}, seconds(11 + i));
  EXPECT_TRUE(model.processes().empty());
  EXPECT_EQ(model.selected(), std::nullopt);
}

// Whatever comes and goes: in order, with a selection in bounds, and no process twice.
TEST(TopModel, HoldsOnToItsPromisesInAnyOrderOfEvents) {
  std::mt19937 random(7);
  const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
  TopModel model;
  for (int step = 0; step < 2000; ++step) {
    switch (below(5)) {
      case 0: {
        std::vector<StatusRow> rows;
        for (pid_t pid = 1; pid <= 8; ++pid) {
          if (below(2) == 0) rows.push_back(row(pid, {.out = below(50), .held = below(200), .footprint = below(9)}));
        }
        model.add(rows, milliseconds(step));
        break;
      }
      case 1:
        model.sort_by(static_cast<TopKey>(below(static_cast<unsigned>(TopKey::kCount))));
        break;
      case 2:
        model.reverse();
        break;
      case 3:
        model.move_selection(static_cast<std::ptrdiff_t>(below(7)) - 3);
        break;
      default:
        model.select(below(12));
    }
    auto pids = order(model);
    ASSERT_EQ(model.selected().has_value(), !pids.empty());
    ASSERT_LT(model.selected().value_or(0), std::max<std::size_t>(pids.size(), 1));
    std::sort(pids.begin(), pids.end());
    ASSERT_EQ(std::adjacent_find(pids.begin(), pids.end()), pids.end());
  }
}

}  // namespace
}  // namespace memopt::tools
