// The iteration of real recordings as it is drawn: against the plan's own figures, and by looking at each rectangle.
#include "tools/memoptctl/report/report_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/planner/recording/recorded_file.h"
#include "tools/memoptctl/report/report_json.h"

namespace memopt::tools {
namespace {

std::string path_of(const std::string& name) { return std::string(MEMOPT_TEST_RECORDINGS) + "/" + name + ".rec"; }

ReportModel model_of(const std::string& name, double seconds, const std::string& limit = "") {
  input::File file(path_of(name));
  ModelOptions options{.limit = limit, .machine = {}, .sweep = {}};
  options.sweep.seconds = seconds;
  options.sweep.threads = 1;
  return make_report(file, options);
}

// No two share a byte at any time. Times are rounded, so that a nanosecond is nothing.
void expect_no_overlap(const ShownIteration& iteration, const DrawnPlan& plan) {
  std::vector<DrawnBlock> blocks = plan.blocks;
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = i + 1; j < blocks.size() && blocks[j].from < blocks[i].to - 1; ++j) {
      const std::uint64_t i_end = blocks[i].offset + iteration.blocks[blocks[i].block].bytes;
      const std::uint64_t j_end = blocks[j].offset + iteration.blocks[blocks[j].block].bytes;
      ASSERT_TRUE(i_end <= blocks[j].offset || j_end <= blocks[i].offset || blocks[j].to - blocks[j].from < 1)
          << "blocks " << blocks[i].block << " and " << blocks[j].block;
    }
  }
}

class Drawn : public testing::TestWithParam<const char*> {};

TEST_P(Drawn, LayoutIsThatOfThePlan) {
  const ReportModel model = model_of(GetParam(), 0);
  ASSERT_TRUE(model.iteration) << model.no_iteration;
  const ShownIteration& iteration = *model.iteration;
  const FilePlan& plan = *model.planning.plan;
  EXPECT_EQ(iteration.blocks.size(), plan.mallocs + plan.persistent_blocks);
  ASSERT_EQ(iteration.plans.size(), 1u);
  const std::uint64_t footprint = iteration.plans[0].point.footprint;
  EXPECT_NEAR(static_cast<double>(footprint), static_cast<double>(plan.footprint),
              0.01 * static_cast<double>(plan.footprint));
  const DrawnPlan& drawn = *iteration.plans[0].drawn;
  EXPECT_DOUBLE_EQ(drawn.length, iteration.period);
  expect_no_overlap(iteration, drawn);
  std::uint64_t top = 0;
  for (const DrawnBlock& block : drawn.blocks) {
    EXPECT_LT(block.from, block.to);
    EXPECT_GE(block.from, 0);
    EXPECT_LE(block.to, drawn.length);
    top = std::max(top, block.offset + iteration.blocks[block.block].bytes);
  }
  EXPECT_EQ(top, footprint);
  EXPECT_GE(top, iteration.peak_load);
}

// What lives at the peak is the peak, and the load is never above it.
TEST_P(Drawn, PeakIsTheSumOfItsBlocks) {
  const ReportModel model = model_of(GetParam(), 0);
  const ShownIteration& iteration = *model.iteration;
  std::uint64_t sum = 0;
  for (const std::uint32_t block : iteration.at_peak) sum += iteration.blocks[block].bytes;
  EXPECT_EQ(sum, iteration.peak_load);
  EXPECT_EQ(iteration.peak_load, model.planning.plan->peak_load);
  std::uint64_t most = 0;
  for (const LoadLevel& level : iteration.load) most = std::max(most, level.bytes);
  EXPECT_EQ(most, iteration.peak_load);
}

TEST_P(Drawn, UsesAreOfStepsWithinTheLifetime) {
  const ReportModel model = model_of(GetParam(), 0);
  const ShownIteration& iteration = *model.iteration;
  std::size_t used = 0;
  for (const ShownBlock& block : iteration.blocks) {
    ASSERT_LE(block.first_use + block.uses, iteration.uses.size());
    EXPECT_EQ(block.uses, block.accesses);
    used += block.uses;
    for (std::uint32_t i = 0; i < block.uses; ++i) {
      ASSERT_LT(iteration.uses[block.first_use + i].step, iteration.steps.size());
      if (block.persistent) continue;
      const ShownStep& step = iteration.steps[iteration.uses[block.first_use + i].step];
      const double behind = step.begin < block.born ? iteration.period : 0;
      EXPECT_LE(step.begin + behind, block.freed + 1);
    }
  }
  EXPECT_EQ(used, iteration.uses.size());
  EXPECT_GT(used, 0u);
  double last = 0;
  for (const ShownStep& step : iteration.steps) {
    EXPECT_GE(step.begin, last);
    EXPECT_GE(step.length, 0);
    last = step.begin;
  }
}

INSTANTIATE_TEST_SUITE_P(Recordings, Drawn, testing::Values("gpt", "resnet18", "lstm_sgd", "unet"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ReportModel, PlansHoldWithinTheirLimits) {
  const ReportModel model = model_of("gpt", 2, "65%");
  ASSERT_TRUE(model.iteration);
  const ShownIteration& iteration = *model.iteration;
  ASSERT_GT(iteration.plans.size(), 3u) << model.no_swaps;
  std::size_t wanted = 0;
  for (std::size_t i = 1; i < iteration.plans.size(); ++i) {
    const PlanPoint& point = iteration.plans[i].point;
    wanted += point.wanted;
    if (point.wanted) {
      EXPECT_EQ(point.limit, static_cast<std::uint64_t>(0.65 * static_cast<double>(iteration.peak_load)));
    }
    if (!point.feasible) continue;
    if (point.limit != 0) {
      EXPECT_LE(point.footprint, point.limit);
    }
    EXPECT_GE(point.footprint, iteration.least_limit);
    const DrawnPlan& drawn = *iteration.plans[i].drawn;
    EXPECT_NEAR(drawn.length, iteration.period + point.report.timing.added_ns, 1);
    expect_no_overlap(iteration, drawn);
    std::uint64_t top = 0;
    for (const DrawnBlock& block : drawn.blocks) {
      top = std::max(top, block.offset + iteration.blocks[block.block].bytes);
    }
    EXPECT_LE(top, point.footprint);
    std::map<bool, std::uint64_t> moved;
    std::map<bool, double> end;
    for (const DrawnCopy& copy : drawn.copies) {
      // One at a time; what is cut at the iteration's ends may be there twice.
      EXPECT_GE(copy.from, end[copy.in] - 1);
      end[copy.in] = copy.to;
      if (copy.from > 0 && copy.to < drawn.length) moved[copy.in] += iteration.blocks[copy.block].bytes;
    }
    EXPECT_LE(moved[false], point.report.bytes_out);
    EXPECT_LE(moved[true], point.report.bytes_in);
    EXPECT_EQ(drawn.copies.empty(), point.report.bytes_out == 0);
    double waits = 0;
    for (const DrawnWait& wait : drawn.waits) waits += wait.to - wait.from;
    EXPECT_NEAR(waits, point.report.timing.added_ns, 1 + 1e-6 * waits);
  }
  EXPECT_EQ(wanted, 1u);
}

// A plan for less memory never adds less time.
TEST(ReportModel, LessMemoryNeverTakesLessTime) {
  const ReportModel model = model_of("gpt", 1);
  double least = -1;
  for (const ShownPlan& plan : model.iteration->plans) {
    if (!plan.swaps || !plan.point.feasible || plan.point.limit == 0) continue;
    EXPECT_GE(plan.point.report.timing.added_ns, least);
    least = plan.point.report.timing.added_ns;
  }
  EXPECT_GE(least, 0);
}

TEST(ReportModel, OptionsThatCantBeAreRefused) {
  EXPECT_THROW(model_of("lstm_sgd", 0, "much"), std::invalid_argument);
  input::File file(path_of("lstm_sgd"));
  ModelOptions options;
  options.machine = "toaster";
  EXPECT_THROW(make_report(file, options), std::invalid_argument);
}

TEST(ReportModel, TextTracesAreShownToo) {
  std::string trace;
  int at = 0;
  for (int i = 0; i < 10; ++i) {
    for (const char* line : {"Malloc 0xa0 1048576", "Mutable 0xa0 1048576", "Malloc 0xb0 2097152", "Read 0xa0 1048576",
                             "Free 0xb0 2097152", "Free 0xa0 1048576"}) {
      trace += std::string(line) + " " + std::to_string(1000 * at++) + "\n";
    }
  }
  input::File file = input::File::holding(trace, "trace");
  ModelOptions options;
  options.sweep.seconds = 0;
  const ReportModel model = make_report(file, options);
  ASSERT_TRUE(model.iteration) << model.no_iteration;
  EXPECT_EQ(model.iteration->peak_load, 3u << 20);
  EXPECT_EQ(model.program.peak_load, 3u << 20);
  EXPECT_EQ(model.program.operations.all(), (std::vector<std::string>{"write", "read"}));
  EXPECT_FALSE(model.no_swaps.empty());
}

// Programs made up at random: blocks of any size, freed soon, some iterations later, or never; operations that name any
// of them; and records of any contents in between.
class MadeUp {
 public:
  explicit MadeUp(std::uint32_t seed) : random_(seed) {
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      const std::uint64_t sizes[] = {0, 1, 512, 1 << 20, 5 << 20, std::uint64_t{1} << 41};
      bytes_.push_back(sizes[random_() % std::size(sizes)]);
      lags_.push_back(random_() % 4 == 0 ? random_() % 10 : 0);
      accessed_.push_back(random_() % kSlots);
      kinds_.push_back(random_() % 3);
    }
    const std::uint32_t rounds = 12 + seed % 5;
    for (std::uint32_t round = 0; round < rounds; ++round) iterate(round, seed % 3 == 0);
    EXPECT_TRUE(recorded_.writer.finish());
  }

  const std::string& path() const { return recorded_.path(); }

 private:
  using Record = planner::test::Record;
  static constexpr std::uint64_t kSlots = 12;

  static std::uint64_t block(std::uint64_t round, std::uint64_t slot) { return 1 + round * kSlots + slot; }

  void iterate(std::uint32_t round, bool noise) {
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      recorded_.add(Record::malloc(block(round, slot), bytes_[slot], 0x1000 * slot, slot));
      const std::uint64_t other = block(round, std::min(accessed_[slot], slot));
      if (kinds_[slot] == 0) recorded_.add(Record::launch(1, {block(round, slot), other | shm::kAccessReads}));
      if (kinds_[slot] == 1) recorded_.add(Record::make(shm::RecordKind::kMemset, shm::MemsetBody{0, other, 100}));
      if (kinds_[slot] == 2)
        recorded_.add(Record::make(shm::RecordKind::kCopy, shm::CopyBody{0, other, block(round, slot), 10}, {}, 3));
      if (noise && slot == 5 && round > 9) recorded_.add(Record::random(random_));
    }
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
      if (lags_[slot] <= round && lags_[slot] != 9) recorded_.add(Record::free(block(round - lags_[slot], slot)));
    }
  }

  std::mt19937_64 random_;
  std::vector<std::uint64_t> bytes_, lags_, accessed_, kinds_;
  planner::test::RecordedFile recorded_;
};

// Whatever a file says: there is a page, or a reason.
TEST(ReportModel, OfAnyRecordsIsShown) {
  std::size_t iterations = 0, none = 0, swaps = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const MadeUp made(seed);
    input::File file(made.path());
    ModelOptions options;
    options.sweep.seconds = seed % 10 == 0 ? 0.3 : 0;
    options.sweep.threads = 1;
    const ReportModel model = make_report(file, options);
    EXPECT_NE(model.iteration.has_value(), !model.no_iteration.empty());
    const std::string json = report_json(model, made.path(), "1");
    EXPECT_EQ(json.front(), '{');
    EXPECT_EQ(json.back(), '}');
    if (!model.iteration) {
      ++none;
      continue;
    }
    ++iterations;
    swaps += model.iteration->plans.size() - 1;
    for (const ShownPlan& plan : model.iteration->plans) {
      if (plan.drawn) expect_no_overlap(*model.iteration, *plan.drawn);
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t block : model.iteration->at_peak) sum += model.iteration->blocks[block].bytes;
    EXPECT_EQ(sum, model.iteration->peak_load) << seed;
  }
  EXPECT_GT(iterations, 10u);
  EXPECT_GT(none, 0u);
  EXPECT_GT(swaps, 0u);
}

TEST(ReportJson, HasNothingThatEndsItsElement) {
  ReportModel model;
  model.no_iteration = "</script><script>alert(1)</script>";
  model.program.frames.number("</script>\x01\xff&");
  const std::string json = report_json(model, "/tmp/<b>.rec", "1");
  EXPECT_EQ(json.find('<'), std::string::npos);
  EXPECT_EQ(json.find('>'), std::string::npos);
  EXPECT_EQ(json.find('&'), std::string::npos);
  EXPECT_NE(json.find("\\u003cb\\u003e.rec"), std::string::npos);
}

TEST(SweptLimits, AreRoundPartsOfThePeakLoadAboveTheLeast) {
  EXPECT_EQ(swept_limits(1000, 350), (std::vector<std::uint64_t>{1000, 900, 800, 700, 600, 500, 400}));
  EXPECT_EQ(swept_limits(1000, 970), (std::vector<std::uint64_t>{1000, 990, 980, 970}));
  EXPECT_EQ(swept_limits(1000, 0), (std::vector<std::uint64_t>{1000, 800, 600, 400, 200}));
  EXPECT_TRUE(swept_limits(0, 0).empty());
  for (std::uint64_t least = 0; least <= 1000; least += 7) {
    const auto limits = swept_limits(1000, least);
    EXPECT_LE(limits.size(), 9u);
    EXPECT_GE(limits.size(), 1u);
    for (const std::uint64_t limit : limits) EXPECT_GE(limit, least);
  }
}

}  // namespace
}  // namespace memopt::tools
