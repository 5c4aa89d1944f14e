// What replay makes of trace files, good and bad.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "trace.h"

namespace replay {
namespace {

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' without '" << part << "'";
}

std::string error_of(const std::string& text) {
  try {
    parse_trace(text, "some.csv");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplayTrace, ReadsLinesWithSizes) {
  const Trace trace = parse_trace(
      "Malloc 0x7f10 4096 100\n"
      "Mutable 0x7f10 4096 110\n"
      "Read 0x7f10 4096 120\n"
      "Layer 0x7f10 4096 130\n"
      "Free 0x7f10 4096 140\n",
      "t");
  ASSERT_EQ(trace.operations.size(), 5u);
  EXPECT_EQ(trace.operations[0].verb, Verb::kMalloc);
  EXPECT_EQ(trace.operations[1].verb, Verb::kWrite);
  EXPECT_EQ(trace.operations[2].verb, Verb::kRead);
  EXPECT_EQ(trace.operations[3].verb, Verb::kMarker);
  EXPECT_EQ(trace.operations[4].verb, Verb::kFree);
  EXPECT_EQ(trace.operations[4].time_ns, 140u);
  ASSERT_EQ(trace.blocks.size(), 1u);
  EXPECT_EQ(trace.blocks[0].bytes, 4096u);
  EXPECT_FALSE(trace.blocks[0].from_before);
  EXPECT_EQ(trace.accesses, 2u);
  EXPECT_EQ(trace.markers, 1u);
  EXPECT_EQ(trace.ignored, 0u);
}

TEST(ReplayTrace, ReadsLinesWithoutSizesAndWithRemarks) {
  const Trace trace = parse_trace(
      "Malloc 0x405340000 6912 1521114924962202390 (data_&size)\r\n"
      "Mutable 0x405340000 1521114924962241854\r\n"
      "\n"
      "Free 0x405340000 1521114935789163747",
      "t");
  ASSERT_EQ(trace.operations.size(), 3u);
  EXPECT_EQ(trace.bytes(trace.operations[1]), 6912u);
  EXPECT_EQ(trace.operations[1].time_ns, 1521114924962241854u);
}

TEST(ReplayTrace, TurnsMillisecondsOfAClockIntoNanoseconds) {
  const Trace trace = parse_trace("Malloc 0x1 8 1512107406951\nFree 0x1 1512107406953\n", "t");
  EXPECT_EQ(trace.operations[1].time_ns - trace.operations[0].time_ns, 2'000'000u);
  EXPECT_EQ(trace.accesses, 0u);
}

TEST(ReplayTrace, APointerThatIsAllocatedAgainIsAnotherBlock) {
  const Trace trace = parse_trace("Malloc 1 8 0\nFree 1 0\nMalloc 1 16 0\nFree 1 0\n", "t");
  ASSERT_EQ(trace.blocks.size(), 2u);
  EXPECT_EQ(trace.operations[1].block, 0u);
  EXPECT_EQ(trace.operations[3].block, 1u);
  EXPECT_EQ(peak_load(trace), 16u);
}

TEST(ReplayTrace, BlocksFromBeforeTheTraceNeedASize) {
  const Trace sized = parse_trace("Malloc 9 8 0\nRead 1 100 0\nRead 1 100 0\nFree 2 50 0\n", "t");
  ASSERT_EQ(sized.blocks.size(), 3u);
  EXPECT_TRUE(sized.blocks[1].from_before);
  EXPECT_TRUE(sized.blocks[2].from_before);
  EXPECT_EQ(sized.ignored, 0u);
  EXPECT_EQ(peak_load(sized), 158u);

  const Trace bare = parse_trace("Malloc 9 8 0\nRead 1 0\nFree 2 0\nRead 9 0\n", "t");
  EXPECT_EQ(bare.blocks.size(), 1u);
  EXPECT_EQ(bare.ignored, 2u);
  EXPECT_EQ(bare.operations.size(), 2u);
}

TEST(ReplayTrace, AUseAfterTheFreeIsIgnoredAndCounted) {
  const Trace trace = parse_trace("Malloc 1 8 0\nFree 1 8 0\nRead 1 8 0\nFree 1 8 0\n", "t");
  EXPECT_EQ(trace.ignored, 2u);
  EXPECT_EQ(trace.operations.size(), 2u);
}

TEST(ReplayTrace, AllocationsOnlyLeavesTheRestOut) {
  const Trace all = parse_trace("Malloc 1 8 0\nMutable 1 8 0\nLayer 1 8 0\nRead 1 8 0\nFree 1 8 0\n", "t");
  const Trace bare = allocations_only(all);
  ASSERT_EQ(bare.operations.size(), 2u);
  EXPECT_EQ(bare.operations[1].verb, Verb::kFree);
  EXPECT_EQ(bare.accesses, 0u);
  EXPECT_EQ(bare.blocks.size(), 1u);
}

TEST(ReplayTrace, NamesFileLineAndWhatWasExpected) {
  EXPECT_TRUE(
      contains(error_of("Malloc 1 8 0\nAlloc 1 8 0\n"), "some.csv:2: unknown operation 'Alloc'; expected Malloc"));
  EXPECT_TRUE(contains(error_of("Malloc 1 8\n"), "some.csv:1: expected 'Malloc POINTER SIZE TIME'"));
  EXPECT_TRUE(contains(error_of("Read 1\n"), "expected 'Read POINTER [SIZE] TIME'"));
  EXPECT_TRUE(contains(error_of("Malloc zz 8 0\n"), "'zz' is not a pointer in hexadecimal"));
  EXPECT_TRUE(contains(error_of("Malloc 1 8x 0\n"), "'8x' is not a size in bytes"));
  EXPECT_TRUE(contains(error_of("Malloc 1 -8 0\n"), "'-8' is not a size in bytes"));
  EXPECT_TRUE(contains(error_of("Malloc 1 99999999999999999999 0\n"), "is not a size in bytes"));
  EXPECT_TRUE(contains(error_of("Malloc 1 8 soon\n"), "'soon' is not a time"));
  EXPECT_TRUE(contains(error_of("Malloc 1 0 0\n"), "a block of 0 bytes"));
  EXPECT_TRUE(contains(error_of("Malloc 1 8 0\nMalloc 1 8 0\n"), "some.csv:2: the block at 1 is allocated twice"));
  EXPECT_TRUE(contains(error_of("Malloc 1 8 0\nRead 1 9 0\n"), "some.csv:2: the block at 1 has 8 bytes, not 9"));
  EXPECT_TRUE(contains(error_of(""), "some.csv: no operations"));
  EXPECT_TRUE(contains(error_of("\n  \n"), "some.csv: no operations"));
  EXPECT_TRUE(contains(error_of(std::string("\0\0\0\0", 4)), "some.csv:1: unknown operation"));
}

TEST(ReplayTrace, ReadsFilesAndSaysWhatItCannotRead) {
  const std::string path = testing::TempDir() + "replay_trace_test." + std::to_string(getpid());
  std::ofstream(path) << "Malloc 1 8 0\n";
  EXPECT_EQ(read_trace(path).operations.size(), 1u);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THROW(read_trace(path), TraceError);
  std::remove(path.c_str());
  try {
    read_trace(path);
    FAIL() << "a file that is not there was read";
  } catch (const TraceError& error) {
    EXPECT_TRUE(contains(error.what(), path + ": can't be read: No such file"));
  }
  EXPECT_THROW(read_trace(testing::TempDir()), TraceError);
}

}  // namespace
}  // namespace replay
