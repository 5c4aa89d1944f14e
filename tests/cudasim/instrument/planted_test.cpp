// The simulator as an instrument: a program with a missing edge fails in the checker, with both operations named, *and*
// gets wrong contents under some adversarial seed; its twin with the edge is silent and right under all of them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

constexpr int kSeeds = 8;

struct Outcome {
  int exit_code;
  std::string output;  // stdout and stderr
  bool right() const { return output.find("contents right") != std::string::npos; }
  bool wrong() const { return output.find("contents wrong") != std::string::npos; }
};

Outcome run(const std::string& environment, const std::string& name, const char* variant) {
  const std::string command = environment +
                              " LD_LIBRARY_PATH=" CUDASIM_LIBRARY_PATH
                              " CUDASIM_DEVICE=gtx1080ti CUDASIM_KERNELS=" PLANTED_KERNELS " " PLANTED_PROGRAM " " +
                              name + " " + variant + " " PLANTED_MODULE " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  Outcome outcome{};
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
  return outcome;
}

struct Planted {
  const char* name;
  const char* first;  // parts of the names of the two operations
  const char* second;
  bool harms = true;  // this time: some seed gives wrong contents
};

class PlantedTest : public testing::TestWithParam<Planted> {};

TEST_P(PlantedTest, CheckerNamesBothOperations) {
  const Outcome outcome = run("", GetParam().name, "wrong");
  EXPECT_EQ(outcome.exit_code, 86) << outcome.output;
  EXPECT_NE(outcome.output.find(GetParam().first), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(GetParam().second), std::string::npos) << outcome.output;
}

TEST_P(PlantedTest, CheckerFindsItInEveryOrder) {
  for (int seed = 1; seed <= 4; ++seed) {
    const Outcome outcome = run("CUDASIM_SEED=" + std::to_string(seed), GetParam().name, "wrong");
    EXPECT_EQ(outcome.exit_code, 86) << "seed " << seed << ": " << outcome.output;
  }
}

TEST_P(PlantedTest, SomeSeedGivesWrongContents) {
  if (!GetParam().harms) GTEST_SKIP() << "a mistake without a consequence that could be seen here";
  int wrong = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = run("CUDASIM_CHECK=off CUDASIM_SEED=" + std::to_string(seed), GetParam().name, "wrong");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    wrong += outcome.wrong();
  }
  EXPECT_GT(wrong, 0);
}

TEST_P(PlantedTest, TwinWithTheEdgeIsSilentAndRight) {
  for (int seed = 0; seed <= kSeeds; ++seed) {  // 0: nominal order
    const Outcome outcome = run(seed == 0 ? "" : "CUDASIM_SEED=" + std::to_string(seed), GetParam().name, "right");
    EXPECT_EQ(outcome.exit_code, 0) << "seed " << seed << ": " << outcome.output;
    EXPECT_TRUE(outcome.right()) << "seed " << seed << ": " << outcome.output;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedTest,
    testing::Values(Planted{"compute_then_copy", "fill", "cuMemcpyDtoHAsync"},
                    Planted{"copy_then_compute", "cuMemcpyHtoDAsync", "add"},
                    Planted{"compute_then_overwrite", "add", "cuMemcpyHtoDAsync"},
                    Planted{"copy_then_copy", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"},
                    Planted{"across_aliases", "fill", "cuMemcpyDtoHAsync"},
                    Planted{"host_reads_early", "cuMemcpyDtoHAsync", "host"},
                    Planted{"host_writes_early", "cuMemcpyHtoDAsync", "host"},
                    Planted{"wait_before_record", "fill", "cuMemcpyDtoHAsync"},
                    Planted{"pool_used_before_allocated", "cuMemAllocAsync", "fill"},
                    Planted{"pool_freed_before_used", "cuMemFreeAsync", "cuMemcpyDtoHAsync"},
                    Planted{"block_freed_before_used", "cuMemFreeAsync", "cuMemcpyDtoHAsync"},
                    Planted{"pool_used_after_freed", "used after it was freed: 'cuMemFreeAsync", "add"},
                    Planted{"pool_freed_at_once", "cuMemFree_v2", "fill"},
                    Planted{"pool_freed_before_allocated", "cuMemAllocAsync", "cuMemFree_v2", false},
                    Planted{"pool_overrun", "not allocated: 'a memory pool'", "fill", false},
                    Planted{"pool_reuse_is_no_edge", "fill", "cuMemcpyDtoHAsync", false}),
    [](const auto& planted) { return std::string(planted.param.name); });

}  // namespace
