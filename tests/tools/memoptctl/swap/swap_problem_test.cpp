#include "tools/memoptctl/swap/swap_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::tools {
namespace {

using planner::RecordingWriter;
using planner::test::Record;
using planner::test::ScratchFile;

// A launch of two blocks is several operations of the problem, and holds both until it is over.
TEST(SwapProblem, NoBlockOfALaunchIsMissingWhileItRuns) {
  const ScratchFile file;
  RecordingWriter writer(file.fd(), {}, {});
  std::uint64_t sequence = 0;
  const auto add = [&](Record record) {
    ++sequence;
    writer.add(0, record.at(sequence, 1000 * sequence).view());
  };
  for (std::uint64_t block = 1; block <= 20; block += 2) {
    add(Record::malloc(block, 4096, 0x10000, 7));
    add(Record::malloc(block + 1, 8192, 0x20000, 8));
    add(Record::launch(1, {block, block + 1}));
    add(Record::free(block));
    add(Record::free(block + 1));
  }
  EXPECT_TRUE(writer.finish());
  input::File written(file.path());
  const auto input = read_problem({}, written);
  ASSERT_TRUE(input.has_value());
  const swap::Problem& problem = input->file.problem;
  std::size_t running = 0;  // the access that has the time of the launch
  for (std::size_t i = 0; i + 1 < problem.operations.size(); ++i) {
    const swap::Operation& operation = problem.operations[i];
    const bool access = operation.kind == swap::Kind::kRead || operation.kind == swap::Kind::kWrite;
    if (access && problem.operations[i + 1].time > operation.time) running = i;
  }
  ASSERT_EQ(problem.blocks.size(), 2u);
  for (std::uint32_t block = 0; block < 2; ++block) {
    const auto accesses = input->liveness.accesses_of(block);
    EXPECT_TRUE(std::any_of(accesses.begin(), accesses.end(), [&](const swap::Access& one) {
      return one.position % problem.operations.size() == running;
    })) << block;
  }
}

}  // namespace
}  // namespace memopt::tools
