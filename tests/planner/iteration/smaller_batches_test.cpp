// Iterations that are the planned one with smaller blocks, of two threads: the second one allocates more, as
// autograd's.
#include "planner/iteration/smaller_batches.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/iteration/detection.h"
#include "tests/planner/iteration/stream.h"

namespace memopt::planner {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct TwoThreads {
  Stream stream;

  // `forward` and `backward`: bytes of each thread's blocks.
  void step(std::uint64_t forward, std::uint64_t backward, int more = 0) {
    std::vector<std::uint64_t> kept;
    stream.lane = 0;
    for (std::uint32_t layer = 0; layer < 20; ++layer) {
      kept.push_back(stream.malloc(forward + layer % 3));
      stream.launch(layer, {kept.back()});
    }
    stream.lane = 1;
    for (std::uint32_t layer = 20; layer-- != 0;) {
      const std::uint64_t first = stream.malloc(backward), second = stream.malloc(backward + 512);
      stream.launch(100 + layer, {first, second, kept[layer]});
      stream.free(first);
      stream.free(second);
    }
    for (int i = 0; i < more; ++i) stream.free(stream.malloc(kMiB));
    stream.lane = 0;
    for (const std::uint64_t block : kept) stream.free(block);
  }
  void steps(std::uint64_t forward, std::uint64_t backward, int more = 0) {
    for (int i = 0; i < 6; ++i) step(forward, backward, more);
  }
  // Of what was made last.
  std::optional<bool> is_smaller(const IterationLifetimes& planned) {
    const Detection detection = detect(stream.planner.store(), {});
    if (!detection.iteration) return std::nullopt;
    return is_of_smaller_batches(stream.planner.store(), *detection.iteration, planned);
  }
};

TEST(SmallerBatches, AreToldByAllThreads) {
  TwoThreads program;
  program.steps(4 * kMiB, 8 * kMiB);
  ASSERT_EQ(program.stream.plans.size(), 1u) << program.stream.planner.note();
  const IterationLifetimes planned = program.stream.plans[0].plan.lifetimes;
  ASSERT_EQ(planned.lanes.size(), 2u);
  ASSERT_EQ(planned.lanes[0].lane, 1u) << "the main one comes first";
  EXPECT_EQ(program.is_smaller(planned), false) << "the same";
  program.steps(2 * kMiB, 4 * kMiB);
  EXPECT_EQ(program.is_smaller(planned), true);
  program.steps(4 * kMiB, 4 * kMiB);
  EXPECT_EQ(program.is_smaller(planned), true) << "one thread's are as large as planned";
  for (int i = 0; i < 3; ++i) {
    program.step(2 * kMiB, 4 * kMiB);
    program.step(kMiB, 8 * kMiB);
  }
  EXPECT_EQ(program.is_smaller(planned), true) << "two sizes in turn";
  program.steps(4 * kMiB + 512, 4 * kMiB);
  EXPECT_EQ(program.is_smaller(planned), false) << "one thread's are larger";
  program.steps(2 * kMiB, 4 * kMiB, 1);
  EXPECT_EQ(program.is_smaller(planned), false) << "another malloc";
}

}  // namespace
}  // namespace memopt::planner
