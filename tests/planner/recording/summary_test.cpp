#include "planner/recording/summary.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::planner {
namespace {

using test::Record;

// Writes records, numbered one by one unless told otherwise, and sums them up.
class Summarised : public testing::Test {
 protected:
  void add(Record record, std::uint32_t lane = 0) {
    ++sequence_;
    writer_->add(lane, record.at(sequence_, 100 * sequence_).view());
  }
  Summary summary() {
    writer_->finish();
    RecordingReader reader = RecordingReader::open(file_.path());
    return summarise(reader);
  }
  static std::uint64_t count(const Summary& summary, shm::RecordKind kind) {
    return summary.counts[static_cast<std::size_t>(kind)];
  }

  test::ScratchFile file_;
  std::unique_ptr<RecordingWriter> writer_ = std::make_unique<RecordingWriter>(file_.fd(), RecordingInfo{}, nullptr);
  std::uint64_t sequence_ = 0;
};

TEST_F(Summarised, Nothing) {
  const Summary all = summary();
  EXPECT_EQ(all.records, 0u);
  EXPECT_TRUE(all.live.empty());
  EXPECT_FALSE(all.damage);
}

TEST_F(Summarised, CopiesByDirection) {
  const auto copy = [](std::uint32_t kind, std::uint64_t bytes) {
    return Record::make(shm::RecordKind::kCopy, shm::CopyBody{0, 1, 0, bytes}, {}, kind);
  };
  add(copy(static_cast<std::uint32_t>(shm::CopyKind::kToDevice), 100));
  add(copy(static_cast<std::uint32_t>(shm::CopyKind::kToDevice), 20));
  add(copy(static_cast<std::uint32_t>(shm::CopyKind::kToHost), 3));
  add(copy(0, 1000));
  add(copy(4'000'000'000, 7000));
  const Summary all = summary();
  const auto of = [&all](shm::CopyKind kind) { return all.copies[static_cast<std::size_t>(kind)]; };
  EXPECT_EQ(of(shm::CopyKind::kToDevice).count, 2u);
  EXPECT_EQ(of(shm::CopyKind::kToDevice).bytes, 120u);
  EXPECT_EQ(of(shm::CopyKind::kToHost).count, 1u);
  EXPECT_EQ(of(shm::CopyKind::kOnDevice).count, 0u);
  EXPECT_EQ(of(shm::CopyKind::kUnknown).count, 2u);
  EXPECT_EQ(of(shm::CopyKind::kUnknown).bytes, 8000u);
  EXPECT_EQ(all.copied_bytes, 8123u);
}

TEST_F(Summarised, LoadAndItsPeak) {
  add(Record::malloc(1, 100));
  add(Record::malloc(2, 50));
  add(Record::free(1));
  add(Record::malloc(3, 60));
  add(Record::free(2));
  add(Record::free(77));
  const Summary all = summary();
  EXPECT_EQ(all.peak_load, 150u);
  EXPECT_EQ(all.peak_sequence, 2u);
  EXPECT_EQ(all.peak_blocks, 2u);
  EXPECT_EQ(all.live_bytes, 60u);
  EXPECT_EQ(all.live_blocks, 1u);
  EXPECT_EQ(all.malloc_bytes, 210u);
  EXPECT_EQ(all.unknown_frees, 1u);
  EXPECT_EQ(count(all, shm::RecordKind::kMalloc), 3u);
  EXPECT_EQ(count(all, shm::RecordKind::kFree), 3u);
  EXPECT_EQ(all.missing, 0u);
  ASSERT_EQ(all.live.size(), 6u);
  EXPECT_EQ(all.live[1].peak, 150u);
  EXPECT_EQ(all.live[3].peak, 110u);
}

TEST_F(Summarised, LongCurvesBecomeTenPoints) {
  std::uint64_t largest_at = 0;
  for (std::uint64_t i = 1; i <= 30'000; ++i) {
    add(Record::malloc(i, i == 17'000 ? 1'000'000 : 1));
    if (i == 17'000) {
      largest_at = sequence_;
      add(Record::free(i));
    }
  }
  const Summary all = summary();
  EXPECT_EQ(all.live_bytes, 29'999u);
  ASSERT_GE(all.live.size(), 5u);
  ASSERT_LE(all.live.size(), kLivePoints);
  EXPECT_EQ(all.live.front().first, 1u);
  EXPECT_EQ(all.live.back().last, sequence_);
  for (std::size_t i = 0; i < all.live.size(); ++i) {
    EXPECT_EQ(all.live[i].first, i == 0 ? 1 : all.live[i - 1].last + 1);
    const bool has_it = all.live[i].first <= largest_at && largest_at <= all.live[i].last;
    EXPECT_EQ(all.live[i].peak > 1'000'000, has_it);
  }
  EXPECT_EQ(all.peak_load, 1'000'000u + 16'999u);
}

TEST_F(Summarised, GapsAreCounted) {
  add(Record::malloc(1, 1));
  sequence_ = 9;
  add(Record::malloc(2, 1));
  sequence_ = 20;
  add(Record::free(2));
  sequence_ = 3;
  add(Record::free(1));
  const Summary all = summary();
  EXPECT_EQ(all.gaps, 2u);
  EXPECT_EQ(all.missing, 8u + 10u);
  EXPECT_EQ(all.disordered, 1u);
  EXPECT_EQ(all.first_sequence, 1u);
  EXPECT_EQ(all.last_sequence, 21u);
}

TEST_F(Summarised, KernelsByCountWithTheirNamesAndTimes) {
  add(Record::name(shm::RecordKind::kFunction, 5, "sgemm"));
  for (int i = 0; i < 3; ++i) add(Record::launch(5, {1 | shm::kAccessReads, 2}));
  add(Record::launch(6, {}).flags(shm::kBlindLaunch), 4);
  add(Record::make(shm::RecordKind::kKernelTime, shm::KernelTimeBody{3, 500, 0}));
  add(Record::make(shm::RecordKind::kKernelTime, shm::KernelTimeBody{999, 500, 0}));
  const Summary all = summary();
  ASSERT_EQ(all.kernels.size(), 2u);
  EXPECT_EQ(all.kernels[0].name, "sgemm");
  EXPECT_EQ(all.kernels[0].launches, 3u);
  EXPECT_EQ(all.kernels[0].timed, 1u);
  EXPECT_EQ(all.kernels[0].nanoseconds, 500u);
  EXPECT_EQ(all.kernels[1].name, "");
  EXPECT_EQ(all.accesses, 6u);
  EXPECT_EQ(all.known_accesses, 3u);
  EXPECT_EQ(all.blind_launches, 1u);
  EXPECT_EQ(all.lanes, 2u);
}

TEST_F(Summarised, LargestBlocksWithTheirStacks) {
  add(Record::name(shm::RecordKind::kModule, 0x1000, "/opt/lib/libx.so\n8a9f"));
  add(Record::stack(7, {0x1010, 0x2020}));
  for (std::uint64_t i = 1; i <= 4; ++i) add(Record::malloc(i, 4096, 0, 7));
  add(Record::malloc(5, 1 << 20));
  const Summary all = summary();
  ASSERT_EQ(all.groups.size(), 2u);
  EXPECT_EQ(all.groups[0].bytes, 1u << 20);
  EXPECT_EQ(all.groups[1].count, 4u);
  ASSERT_EQ(all.stacks.count(7), 1u);
  EXPECT_EQ(all.stacks.at(7), (std::vector<std::uint64_t>{0x1010, 0x2020}));
  EXPECT_EQ(all.modules.name(0x1010), "libx.so+0x10");
  EXPECT_EQ(all.modules.name(0xfff), "0xfff");
}

TEST_F(Summarised, BlocksOfEachPlaceInPython) {
  const auto stack = [&](std::uint64_t hash, std::vector<std::uint64_t> ids) {
    return Record::make(shm::RecordKind::kPythonStack, shm::StackBody{hash, ids.size()}, ids);
  };
  add(Record::name(shm::RecordKind::kPythonFrame, 1, "forward (a.py:7)"));
  add(Record::name(shm::RecordKind::kPythonFrame, 2, "main (a.py:9)"));
  add(Record::malloc(1, 4096));
  add(stack(5, {1, 2}));
  for (std::uint64_t i = 2; i <= 3; ++i) add(Record::malloc(i, 4096));
  add(stack(6, {2, 3}));
  add(Record::malloc(4, 4096));
  add(stack(5, {}));
  add(Record::malloc(5, 4096));
  add(stack(0, {}));
  add(Record::malloc(6, 4096));
  std::map<std::uint64_t, std::uint64_t> counts;  // by stack
  const Summary all = summary();
  for (const BlockGroup& group : all.groups) counts[group.python] += group.count;
  EXPECT_EQ(counts, (std::map<std::uint64_t, std::uint64_t>{{0, 2}, {5, 3}, {6, 1}}));
  EXPECT_EQ(all.python.names(5), (std::vector<std::string>{"forward (a.py:7)", "main (a.py:9)"}));
  EXPECT_EQ(all.python.names(6), (std::vector<std::string>{"main (a.py:9)", "(not named)"}));
  EXPECT_TRUE(all.python.names(7).empty());
  EXPECT_TRUE(all.python.names(0).empty());
}

TEST(Modules, TheProgramHasItsName) {
  Modules modules;
  modules.add(0x1000, "/proc/self/exe\nid");
  EXPECT_EQ(modules.name(0x1001), "exe+0x1");
  modules.set_program("/opt/bin/train");
  EXPECT_EQ(modules.name(0x1001), "train+0x1");
  ASSERT_TRUE(modules.file(0x1001));
  EXPECT_EQ(modules.file(0x1001)->path, "/opt/bin/train");
  EXPECT_EQ(modules.file(0x1001)->build_id, "id");
  EXPECT_EQ(modules.file(0x1001)->base, 0x1000u);
  EXPECT_FALSE(modules.file(0xfff));
}

TEST_F(Summarised, TicksBecomeTime) {
  writer_->add_clock({1000, 5'000});
  add(Record::free(1));
  sequence_ = 49;
  add(Record::make(shm::RecordKind::kClock, shm::ClockBody{9'000}));  // ticks 5000: two ticks are two nanoseconds
  const Summary all = summary();
  EXPECT_TRUE(all.clock.known());
  EXPECT_EQ(all.clock.nanoseconds(3000), 7'000u);
  EXPECT_EQ(all.clock.nanoseconds(0), 4'000u);
  EXPECT_EQ(all.nanoseconds, 4'900u);
}

TEST(ClockLine, SurvivesNonsense) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  ClockLine line;
  EXPECT_EQ(line.nanoseconds(5), 5u);
  line.add({kHuge, 0});
  EXPECT_FALSE(line.known());
  line.add({0, kHuge});
  EXPECT_FALSE(line.known());
  ClockLine steep;
  steep.add({0, 1});
  steep.add({1, kHuge});
  EXPECT_GT(steep.nanoseconds(kHuge), kHuge / 4);
  EXPECT_EQ(steep.nanoseconds(0), 1u);
}

}  // namespace
}  // namespace memopt::planner
