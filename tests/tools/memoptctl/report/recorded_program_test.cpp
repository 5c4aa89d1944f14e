// What read_program() makes of recordings, against sums that are made here, record by record.
#include "tools/memoptctl/report/recorded_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/planner/recording/recorded_file.h"

namespace memopt::tools {
namespace {

using planner::test::Record;
using planner::test::RecordedFile;

RecordedProgram read(RecordedFile& recorded) {
  EXPECT_TRUE(recorded.writer.finish());
  input::File file(recorded.path());
  return read_program(file, nullptr);
}

class Random : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Random, LoadAndPeakAreThoseOfTheRecords) {
  std::mt19937 random(GetParam());
  RecordedFile recorded;
  std::map<std::uint64_t, std::uint64_t> live;
  std::uint64_t load = 0, peak = 0, peak_record = 0, record = 0, next = 1;
  std::map<std::uint64_t, std::uint64_t> at_peak;
  std::set<std::uint64_t> freed_later;
  for (int i = 0; i < 3000; ++i) {
    ++record;
    if (live.empty() || random() % 5 < 3 - (live.size() > 100 ? 2 : 0)) {
      const std::uint64_t bytes = random() % 100'000;
      recorded.add(Record::malloc(next, bytes));
      live[next++] = bytes;
      load += bytes;
      if (load > peak) {
        peak = load;
        peak_record = record;
        at_peak = live;
        freed_later.clear();
      }
    } else {
      const auto block = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      recorded.add(Record::free(block->first));
      freed_later.insert(block->first);
      load -= block->second;
      live.erase(block);
    }
  }
  const RecordedProgram program = read(recorded);
  EXPECT_EQ(program.records, record);
  EXPECT_EQ(program.peak_load, peak);
  EXPECT_EQ(program.peak_record, peak_record);
  EXPECT_EQ(program.peak_blocks, at_peak.size());
  ASSERT_EQ(program.at_peak.size(), at_peak.size());
  std::uint64_t largest = ~std::uint64_t{0};
  for (const PeakBlock& block : program.at_peak) {
    ASSERT_TRUE(at_peak.contains(block.number));
    EXPECT_EQ(block.bytes, at_peak[block.number]);
    EXPECT_EQ(block.freed_ns >= 0, freed_later.contains(block.number));
    EXPECT_LE(block.bytes, largest);
    largest = block.bytes;
  }
  ASSERT_EQ(program.load.size(), kLoadPieces);
  std::uint64_t most = 0;
  double end = 0;
  for (const LoadPiece& piece : program.load) {
    EXPECT_LE(piece.least, piece.most);
    EXPECT_GT(piece.end_ns, end);
    end = piece.end_ns;
    most = std::max(most, piece.most);
  }
  EXPECT_EQ(most, peak);
  EXPECT_DOUBLE_EQ(end, program.length_ns);
  EXPECT_GE(program.reserved, peak);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(1u, 9u));

TEST(RecordedProgram, CallStacksHaveTheNamesOfFiles) {
  RecordedFile recorded;
  recorded.add(Record::name(shm::RecordKind::kModule, 0x5000, "/usr/lib/libone.so\n1234"));
  recorded.add(Record::stack(9, {0x5010, 0x5020}));
  recorded.add(Record::malloc(1, 100, 0, 9));
  recorded.add(Record::malloc(2, 300));
  const RecordedProgram program = read(recorded);
  EXPECT_TRUE(program.has_stacks);
  ASSERT_EQ(program.at_peak.size(), 2u);
  const auto names = [&](std::uint32_t stack) {
    std::vector<std::string> frames;
    for (const std::uint32_t frame : program.stacks[stack]) frames.push_back(program.frames.all()[frame]);
    return frames;
  };
  EXPECT_EQ(names(program.at_peak[1].stack), (std::vector<std::string>{"libone.so+0x10", "libone.so+0x20"}));
  EXPECT_EQ(names(program.at_peak[0].stack), (std::vector<std::string>{"0x1000"}));
}

// What a caching allocator would hold depends on what was before.
TEST(RecordedProgram, WhatWouldBeReservedIsNotKnownWhereRecordsAreMissing) {
  RecordedFile recorded;
  recorded.add(Record::malloc(1, 100));
  EXPECT_EQ(read(recorded).reserved, std::uint64_t{2} << 20);
  RecordedFile gap;
  gap.add(Record::malloc(1, 100));
  Record later = Record::malloc(2, 100);
  gap.writer.add(0, later.at(7, 9000).view());
  const RecordedProgram program = read(gap);
  EXPECT_EQ(program.reserved, 0u);
  EXPECT_EQ(program.missing, 5u);
}

// Nothing happens for a while: what is live, and reserved, is what was before.
TEST(RecordedProgram, BetweenRecordsAllStaysAsItWas) {
  RecordedFile recorded;
  recorded.add(Record::malloc(1, 100));
  Record late = Record::malloc(2, 30 << 20);
  recorded.writer.add(0, late.at(2, 100'000).view());
  const RecordedProgram program = read(recorded);
  ASSERT_EQ(program.load.size(), kLoadPieces);
  for (std::size_t i = 0; i + 1 < kLoadPieces; ++i) {
    EXPECT_EQ(program.load[i].most, 100u);
    EXPECT_EQ(program.load[i].reserved, std::uint64_t{2} << 20);
  }
  EXPECT_EQ(program.load.back().most, (std::uint64_t{30} << 20) + 100);
  EXPECT_EQ(program.load.back().reserved, std::uint64_t{32} << 20);
}

TEST(RecordedProgram, AnEmptyRecordingHasNoLoad) {
  RecordedFile recorded;
  const RecordedProgram program = read(recorded);
  EXPECT_EQ(program.peak_load, 0u);
  EXPECT_TRUE(program.load.empty());
}

}  // namespace
}  // namespace memopt::tools
