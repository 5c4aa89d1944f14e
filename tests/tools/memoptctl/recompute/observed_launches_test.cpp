#include "tools/memoptctl/recompute/observed_launches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/recording/recorded_file.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::tools {
namespace {

using planner::test::Record;
using planner::test::RecordedFile;
using planner::test::ScratchFile;

// A program of equal iterations, recorded.
class Recording {
 public:
  // `iteration` is called for each, with the number of its first block, for what comes before it frees the last one.
  explicit Recording(const std::function<void(Recording&, std::uint64_t)>& iteration) {
    add(Record::name(shm::RecordKind::kFunction, 1, "fill"));
    add(Record::name(shm::RecordKind::kFunction, 2, "a::plus<float>"));
    add(Record::malloc(kWeight, 1 << 20, 0x10000, 99));
    for (std::uint64_t block = 10; block <= 200; block += 10) iteration(*this, block);
    EXPECT_TRUE(file_.writer.finish());
  }

  void add(Record record) { file_.add(std::move(record)); }
  void malloc(std::uint64_t block) { add(Record::malloc(block, 4096, 0x100000 + 4096 * block, block % 10 + 1)); }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    add(Record::make(shm::RecordKind::kCopy, shm::CopyBody{0, to, from, bytes}, {}, from == 0 ? 1 : 3));
  }
  void memset(std::uint64_t block, std::uint64_t bytes) {
    add(Record::make(shm::RecordKind::kMemset, shm::MemsetBody{0, block, bytes}));
  }

  struct Known {
    std::string text;
    SwapProblem input;
  };
  Known know(const SwapPlanOptions& options) const {
    input::File file(file_.path());
    auto input = read_problem(options, file);
    if (!input) throw std::runtime_error("no iteration was found");
    std::string text = know_launches(options, file, *input);
    return {std::move(text), std::move(*input)};
  }

  static constexpr std::uint64_t kWeight = 1;

 private:
  RecordedFile file_;
};

const Recording& plain() {
  static const Recording recording([](Recording& it, std::uint64_t block) {
    it.malloc(block);
    it.add(Record::launch(1, {block}));
    it.malloc(block + 1);
    it.add(Record::launch(2, {block + 1, block, Recording::kWeight}));
    it.malloc(block + 2);
    it.add(Record::launch(7, {block + 2, block + 1}));  // of a kernel without a name
    for (const std::uint64_t freed : {block, block + 1, block + 2}) it.add(Record::free(freed));
  });
  return recording;
}

TEST(ObservedLaunches, WhatIsAssumedIsSaid) {
  const auto cautious = plain().know({});
  EXPECT_TRUE(cautious.input.launches);
  EXPECT_NE(
      cautious.text.find("assumed          launches may have changed all blocks that they name and did not make\n"),
      std::string::npos)
      << cautious.text;
  EXPECT_NE(cautious.text.find("replayable       0 of 3 launches"), std::string::npos) << cautious.text;
  EXPECT_NE(cautious.text.find("made again       0.00 MiB of 0.01 MiB, 0 of 3 blocks"), std::string::npos);
  EXPECT_NE(cautious.text.find(": a::plus<float>\n"), std::string::npos) << cautious.text;

  SwapPlanOptions options;
  options.assume = "reads";
  const auto assumed = plain().know(options);
  EXPECT_NE(assumed.text.find("that is not known"), std::string::npos) << assumed.text;
  EXPECT_NE(assumed.text.find("replayable       3 of 3 launches"), std::string::npos) << assumed.text;
  EXPECT_EQ(assumed.input.file.problem.blocks.size(), 4u);
}

TEST(ObservedLaunches, ALineOfTheListIsForKernelsByTheirNames) {
  const ScratchFile list;
  const std::string text = "# a list\n*: reads\na::plus*: w r r\ngemm: reads\nfill: never\n";
  ASSERT_EQ(::pwrite(list.fd(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  SwapPlanOptions options;
  options.kernels = list.path();
  const auto known = plain().know(options);
  EXPECT_NE(known.text.find("list             1 of its 4 patterns say nothing of a launch of the iteration: line 4\n"),
            std::string::npos)
      << known.text;
  EXPECT_NE(known.text.find("not made again   0.00 MiB in 1 blocks: the list says never\n"), std::string::npos)
      << known.text;
  // Also the one that has no name.
  EXPECT_NE(known.text.find("replayable       2 of 3 launches"), std::string::npos) << known.text;
  EXPECT_EQ(known.input.file.problem.blocks.back().name, "what is not seen");
  EXPECT_EQ(known.input.liveness.peak, (1u << 20) + 3 * 4096 + 1);
}

TEST(ObservedLaunches, RecordsSayWhatIsNotSeen) {
  const Recording recording([](Recording& it, std::uint64_t block) {
    it.malloc(block);
    it.copy(block, 0, 4096);  // from the host
    it.malloc(block + 1);
    it.copy(block + 1, block, 4096);
    it.malloc(block + 2);
    it.memset(block + 2, 4096);
    it.memset(block + 2, 100);  // a part of it
    it.malloc(block + 6);
    it.memset(block + 6, 4096);
    it.malloc(block + 3);
    it.add(Record::launch(2, {block + 3, 5}));  // block 5 was there before the recording
    it.add(Record::free(block + 3));
    it.add(Record::free(block + 2));
    it.add(Record::launch(1, {block + 1}).flags(shm::kBlindLaunch));
    it.add(Record::free(block));
    it.add(Record::free(block + 1));
    it.add(Record::free(block + 6));
    it.add(Record::malloc(block + 4, 8192, 0x800000 + 8192 * block, 9).flags(shm::kStays));
    it.malloc(block + 5);
    it.add(Record::launch(2, {block + 5, block + 4}));
    it.add(Record::free(block + 4));
    it.add(Record::free(block + 5));
  });
  SwapPlanOptions options;
  options.assume = "reads";
  const auto known = recording.know(options);
  for (const std::string line :
       {"replayable       2 of 8 launches",
        "blind launches   1: what they touch is not known; 4 blocks that live while they run stay\n",
        "escaped          1 blocks may not leave", ": copied from the host\n",
        ": a launch touches memory that is no block of the iteration\n",
        ": a launch touches a block whose address is stored where uses are not seen\n", ": may not leave\n"}) {
    EXPECT_NE(known.text.find(line), std::string::npos) << line << known.text;
  }
  std::size_t pinned = 0;
  for (const swap::Block& block : known.input.file.problem.blocks) pinned += block.pinned ? 1 : 0;
  EXPECT_EQ(pinned, 6u);  // four that live while the blind launch runs, one that may not leave, and what is not seen
}

TEST(ObservedLaunches, WhatTheFileHasNoKernelsForIsRefused) {
  const SwapProblem iteration;
  SwapProblem trace, recording;
  trace.observed = {false, {}, {}};
  recording.observed = {true, {}, {}};
  SwapPlanOptions kernels, reads, writes;
  kernels.kernels = "list";
  reads.assume = "reads";
  writes.assume = "writes";
  for (const SwapPlanOptions& options : {kernels, reads, writes}) {
    EXPECT_THROW(refuse_for_known(options, iteration), std::invalid_argument);
  }
  EXPECT_THROW(refuse_for_known(kernels, trace), std::invalid_argument);
  EXPECT_THROW(refuse_for_known(reads, trace), std::invalid_argument);
  EXPECT_THROW(refuse_for_known(writes, recording), std::invalid_argument);
  EXPECT_NO_THROW(refuse_for_known(writes, trace));
  EXPECT_NO_THROW(refuse_for_known(reads, recording));
  EXPECT_NO_THROW(refuse_for_known(kernels, recording));
  EXPECT_NO_THROW(refuse_for_known({}, iteration));
}

}  // namespace
}  // namespace memopt::tools
