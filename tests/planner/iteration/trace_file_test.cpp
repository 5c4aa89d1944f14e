// Text traces: what is read, what is refused, and what the planner makes of the published ones.
#include "planner/iteration/trace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "stream.h"

namespace memopt::planner {
namespace {

class TraceFile : public testing::Test {
 protected:
  TraceFile() : path_(testing::TempDir() + "memopt_trace_file_test." + std::to_string(::getpid())) {}
  ~TraceFile() override { std::remove(path_.c_str()); }
  Trace read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_trace(path_);
  }
  std::string error(const std::string& text) {
    try {
      read(text);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

 private:
  std::string path_;
};

TEST_F(TraceFile, ReusedPointersAreNewBlocks) {
  const Trace trace = read(
      "Malloc 0xa0 100 1 (data_&size)\nMutable 0xa0 2\nFree 0xa0 3\n\nMalloc 0xa0 200 4\nRead 0xa0 5\nLayer 0xb 6\n");
  ASSERT_EQ(trace.operations.size(), 6u);
  EXPECT_EQ(trace.operations[0].block, 1u);
  EXPECT_EQ(trace.operations[2].bytes, 100u);
  EXPECT_EQ(trace.operations[3].block, 2u);
  EXPECT_EQ(trace.operations[4].block, 2u);
  EXPECT_EQ(trace.operations[4].bytes, 200u);
  EXPECT_EQ(trace.operations[4].time, 5u);
  EXPECT_EQ(trace.operations[5].kind, TraceKind::kLayer);
  EXPECT_EQ(trace.assumed + trace.ignored, 0u);
}

TEST_F(TraceFile, WhatWasThereBeforeIsAssumedOrIgnored) {
  const Trace sized = read("Read 0xa0 512 10\nFree 0xb0 256 11\nMalloc 0xb0 256 12\n");
  EXPECT_EQ(sized.assumed, 2u);
  ASSERT_EQ(sized.operations.size(), 5u);
  EXPECT_EQ(sized.operations[0].kind, TraceKind::kMalloc);
  EXPECT_EQ(sized.operations[0].bytes, 512u);
  EXPECT_EQ(sized.operations[0].time, 10u);
  EXPECT_EQ(sized.operations[3].block, sized.operations[1].block);
  EXPECT_NE(sized.operations[4].block, sized.operations[1].block);
  const Trace unsized = read("Read 0xa0 10\nMalloc 0xb0 256 12\n");
  EXPECT_EQ(unsized.ignored, 1u);
  EXPECT_EQ(unsized.operations.size(), 1u);
}

TEST_F(TraceFile, SaysWhereAndWhatIsWrong) {
  EXPECT_NE(error("Malloc 0xa0 100 1\nTake 0xa0 2\n").find(": line 2: expected Malloc, Free"), std::string::npos);
  EXPECT_NE(error("Malloc a0 100 1\n").find(": line 1: expected a pointer"), std::string::npos);
  EXPECT_NE(error("Malloc 0xa0\n").find("expected a size behind the pointer of Malloc, found nothing"),
            std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 x 1\n").find("expected a size"), std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 99999999999999999999 1\n").find("found \"99999999999999999999\""), std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 1 1\nMalloc 0xa0 1 1\n").find(": line 2: expected no Malloc"), std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 1 1\nFree 0xa0\n").find("line 2: expected a time behind the pointer"),
            std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 1 1\nMalloc 0xb0 1\n").find("line 2: expected a time behind the size"),
            std::string::npos);
  EXPECT_NE(error("Malloc 0xa0 1\nMalloc 0xb0 1 7\n").find("line 2: expected no time behind the size"),
            std::string::npos);
  EXPECT_NE(error("7 Malloc 0xa0 1 1\n8\n").find("line 2: expected Malloc, Free"), std::string::npos);
  EXPECT_NE(error("Free 0xa0\n").find("no operation"), std::string::npos);
  EXPECT_NE(error("\n \n").find("no operation"), std::string::npos);
  EXPECT_THROW(read_trace("/nowhere/at all"), std::runtime_error);
}

TEST_F(TraceFile, AnIndexInFrontIsPassedOver) {
  const Trace trace = read("0 Malloc 0xa0 100 1\n1\tRead 0xa0 2\n2 Free 0xa0 100 3 (remark)\n");
  EXPECT_TRUE(trace.indexed);
  EXPECT_TRUE(trace.timed);
  ASSERT_EQ(trace.operations.size(), 3u);
  EXPECT_EQ(trace.operations[1].time, 2u);
  EXPECT_EQ(trace.operations[2].bytes, 100u);
  EXPECT_FALSE(read("Malloc 0xa0 100 1\n").indexed);
}

TEST_F(TraceFile, WithoutTimesOperationsAreEquallyFarApart) {
  for (const char* const text :
       {"Malloc 0xa0 100\nRead 0xa0 100\nFree 0xa0 100\n", "Malloc 0xa0 100\nRead 0xa0\nFree 0xa0\n",
        "Malloc 0xa0 100 (remark)\nRead 0xa0 (remark)\nFree 0xa0 100 (remark)\n"}) {
    const Trace trace = read(text);
    EXPECT_FALSE(trace.timed);
    ASSERT_EQ(trace.operations.size(), 3u) << text;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(trace.operations[i].time, i * kAssumedTime);
    EXPECT_EQ(trace.operations[2].bytes, 100u);
  }
}

// The number of a Read in front of the first Malloc is a size or a time, as that shows.
TEST_F(TraceFile, WhetherThereAreTimesMayShowLate) {
  const Trace timed = read("Read 0xc0 512\nMalloc 0xa0 100 7\n");
  EXPECT_TRUE(timed.timed);
  EXPECT_EQ(timed.ignored, 1u);
  EXPECT_EQ(timed.operations.size(), 1u);
  const Trace untimed = read("Read 0xc0 512\nMalloc 0xa0 100\n");
  EXPECT_FALSE(untimed.timed);
  EXPECT_EQ(untimed.assumed, 1u);
  ASSERT_EQ(untimed.operations.size(), 3u);
  EXPECT_EQ(untimed.operations[0].bytes, 512u);
}

TEST_F(TraceFile, BlocksAddUpToNumbersThatFit) {
  const std::string half = std::to_string(std::uint64_t{1} << 61), line = "Malloc 0xa0 " + half + " 1\n";
  EXPECT_EQ(error(line + "Malloc 0xb0 " + half + " 2\n"), "");
  EXPECT_EQ(error(line + "Free 0xa0 2\nMalloc 0xb0 " + half + " 2\nMalloc 0xc0 " + half + " 3\n"), "");
  EXPECT_NE(
      error(line + "Malloc 0xb0 " + half + " 2\nMalloc 0xc0 1 2\n").find("line 3: expected blocks of at most 2^62"),
      std::string::npos);
  EXPECT_NE(error(line + "Read 0xb0 " + half + " 2\nRead 0xc0 1 2\n").find("line 3: expected blocks of at most 2^62"),
            std::string::npos);
}

struct Published {
  const char* file;
  std::uint64_t operations;
  std::uint64_t repeated_twice;  // record with which the second repeat is complete at the latest
  double ratio;                  // footprint to peak load, at most
};

class PublishedTrace : public testing::TestWithParam<Published> {};

TEST_P(PublishedTrace, IsPlannedInTime) {
  const char* shared = std::getenv("MEMOPT_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMOPT_SHARED is not set: the published traces are not here";
  const std::string path = std::string(shared) + "/traces/" + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const Trace trace = read_trace(path);
  EXPECT_EQ(trace.ignored, 0u);
  IterationPlanner::Options options;
  options.planning.unroll = true;
  Stream stream(options);
  for (const TraceOperation& operation : trace.operations) stream.add(record_of(operation, stream.builder));
  ASSERT_EQ(stream.plans.size(), 1u) << stream.planner.note();
  const FoundPlan& found = stream.plans[0];
  EXPECT_EQ(found.operations, GetParam().operations);
  EXPECT_LE(found.at, GetParam().repeated_twice + 3 * GetParam().operations);
  const IterationLifetimes& lives = found.plan.lifetimes;
  const double footprint =
      static_cast<double>(found.plan.outcome.solution.height) +
      static_cast<double>(lives.persistent_bytes + lives.persistent.size() * (shm::kPlanAlignment - 1));
  EXPECT_LE(footprint / static_cast<double>(lives.peak_load), GetParam().ratio);
}

// First two equal periods of the 20-iteration traces begin at operations 201, 2245 and 2813; of the others the second
// iteration is the first whose predecessor's blocks are all known.
INSTANTIATE_TEST_SUITE_P(Zhang2019, PublishedTrace,
                         testing::Values(Published{"memInfo_alex_20itr_100size.text", 188, 201 + 2 * 188, 1.0121},
                                         Published{"memInfo_vgg_20itr_100size.text", 1020, 2245 + 2 * 1020, 1.0121},
                                         Published{"memInfo_resnet_20itr_100size.text", 1268, 2813 + 2 * 1268, 1.0121},
                                         Published{"blockInfo_Alex_316.text", 612, 1188 + 2 * 612, 1.0121},
                                         Published{"blockInfo_VGG_315.text", 3098, 3427 + 2 * 3098, 1.0121},
                                         Published{"blockInfo_resnet_315.text", 4035, 4482 + 2 * 4035, 1.0121},
                                         Published{"vec_block_fresh_vgg.csv", 3172, 3425 + 2 * 3172, 1.0121}),
                         [](const auto& trace) {
                           std::string name = trace.param.file;
                           for (char& c : name) c = c == '.' || c == '_' ? 'X' : c;
                           return name;
                         });

}  // namespace
}  // namespace memopt::planner
