// With a seed bytes change at any moment that the declared edges allow, and at no other; times do not care.
#include <algorithm>

#include "random_program.h"
#include "simulation.h"

namespace cudasim::test {
namespace {

constexpr std::uint64_t kPrograms = 60, kSeeds = 12;

TEST(Adversary, NominalOrderRespectsEveryDeclaredEdge) {
  for (std::uint64_t program = 0; program < kPrograms; ++program) {
    RandomProgram run(program, std::nullopt, {});
    run.run();
    ASSERT_TRUE(run.violations().empty()) << "program " << program << ": " << run.violations().front();
    ASSERT_GT(run.steps().size(), 20u);
  }
}

TEST(Adversary, NoSeedViolatesADeclaredEdge) {
  for (std::uint64_t program = 0; program < kPrograms; ++program) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      RandomProgram run(program, seed, {});
      run.run();
      ASSERT_TRUE(run.violations().empty())
          << "program " << program << ", seed " << seed << ": " << run.violations().front();
    }
  }
}

TEST(Adversary, TimesAreTheSameInEveryRunAndForEverySeed) {
  for (std::uint64_t program = 0; program < kPrograms; ++program) {
    RandomProgram nominal(program, std::nullopt, {});
    nominal.run();
    for (const std::optional<std::uint64_t> seed :
         {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(program),
          std::optional<std::uint64_t>(program + 1000)}) {
      RandomProgram again(program, seed, {});
      again.run();
      ASSERT_EQ(nominal.times(), again.times()) << "program " << program;
    }
  }
}

TEST(Adversary, ARunIsRepeatedExactly) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomProgram first(3, seed, {}), second(3, seed, {});
    first.run();
    second.run();
    for (std::size_t i = 0; i < first.steps().size(); ++i)
      ASSERT_EQ(first.steps()[i].first_run, second.steps()[i].first_run);
  }
}

TEST(Adversary, UnorderedWorkIsSeenInBothOrders) {
  bool a_first = false, b_first = false, interleaved = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Simulation sim(small_config(seed));
    std::string order;
    sim.pieces(sim.stream(), 3, [&](std::uint32_t, AccessLog&) { order += 'a'; });
    sim.pieces(sim.stream(), 3, [&](std::uint32_t, AccessLog&) { order += 'b'; });
    ASSERT_EQ(sim.engine.wait_context(kContext), CUDA_SUCCESS);
    ASSERT_EQ(order.size(), 6u);
    if (order == "aaabbb") {
      a_first = true;
    } else if (order == "bbbaaa") {
      b_first = true;
    } else {
      interleaved = true;
    }
  }
  EXPECT_TRUE(a_first);
  EXPECT_TRUE(b_first);
  EXPECT_TRUE(interleaved);
}

TEST(Adversary, WorkIsSeenDoneAtOnceHalfDoneAndNotDoneWhenTheCallReturns) {
  bool done = false, half = false, untouched = false, by_later_call = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Simulation sim(small_config(seed));
    int pieces = 0;
    sim.pieces(sim.stream(), 4, [&](std::uint32_t, AccessLog&) { ++pieces; });
    const int at_return = pieces;
    done |= at_return == 4;
    half |= at_return > 0 && at_return < 4;
    untouched |= at_return == 0;
    for (int call = 0; call < 10; ++call) sim.engine.charge(Duration(0));
    by_later_call |= at_return == 0 && pieces == 4;
  }
  EXPECT_TRUE(done);
  EXPECT_TRUE(half);
  EXPECT_TRUE(untouched);
  EXPECT_TRUE(by_later_call);
}

TEST(Adversary, AWaitForOneStreamLeavesLazyWorkOfOthersAlone) {
  bool left_alone = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Simulation sim(small_config(seed));
    bool other = false;
    Stream &a = sim.stream(), &b = sim.stream();
    sim.pieces(a, 1, [&](std::uint32_t, AccessLog&) { other = true; });
    sim.pieces(b, 1, [](std::uint32_t, AccessLog&) {});
    sim.engine.charge(Duration(1'000'000));  // by virtual time all is over
    ASSERT_EQ(sim.engine.wait(b), CUDA_SUCCESS);
    left_alone |= !other;
  }
  EXPECT_TRUE(left_alone);
}

TEST(Adversary, DrainRunsWhatIsLeft) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Simulation sim(small_config(seed));
    int ran = 0;
    Stream &a = sim.stream(), &b = sim.stream();
    for (Stream* stream : {&a, &b, &a}) sim.pieces(*stream, 2, [&](std::uint32_t, AccessLog&) { ++ran; });
    sim.engine.drain();
    ASSERT_EQ(ran, 6);
  }
}

}  // namespace
}  // namespace cudasim::test
