// Random programs: the interpreter against thread by thread evaluation.
#include <cstdlib>

#include "harness.h"
#include "random_program.h"

namespace ptx_test {
namespace {

// Native code is compiled for each, which takes most of the time. PTX_TEST_PROGRAMS: more of them.
std::uint32_t programs() {
  if (const char* const given = std::getenv("PTX_TEST_PROGRAMS"))
    return static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
#ifdef PTX_TEST_NATIVE
  return 30;
#else
  return 300;
#endif
}

TEST(RandomPrograms, AreEvaluatedAlike) {
  constexpr std::uint32_t kThreads = 48, kBlocks = 2;  // the second warp of a block is half empty
  for (std::uint32_t seed = 1; seed <= programs(); ++seed) {
    const RandomProgram program(seed);
    Module module(program.text());
    ASSERT_EQ(module.make("k"), "") << program.text();
    std::vector<RandomProgram::Registers> out(kThreads * kBlocks);
    const ptx::Outcome outcome = module.run({{kBlocks, 1, 1}, {kThreads, 1, 1}}, {}, out.data());
    ASSERT_EQ(outcome.stop, ptx::Stop::kDone) << outcome.text;
    for (std::uint32_t t = 0; t < out.size(); ++t) {
      const RandomProgram::Registers want = program.evaluated(t);
      ASSERT_EQ(out[t], want) << "seed " << seed << ", thread " << t << "\n" << program.text();
    }
  }
}

}  // namespace
}  // namespace ptx_test
