#include "planner/recompute/model/graph.h"

#include <gtest/gtest.h>

#include "tests/planner/recompute/programs.h"

namespace memopt::recompute {
namespace {

using testing::Program;

Graph graph_of(const swap::Problem& problem) { return make_graph(problem, swap::find_liveness(problem)); }

TEST(RecomputeGraph, ALaunchReadsAndWritesTheBlocksOfItsOperations) {
  Program program;
  const auto w = program.persistent(50);
  const auto x = program.make(100, 5, {});
  const auto y = program.make(30, 7, {x, w});
  program.release(x);
  program.release(y);
  const Graph graph = graph_of(program.problem());
  ASSERT_EQ(graph.launches.size(), 2u);
  EXPECT_EQ(graph.launches[1].ns, 7);
  EXPECT_EQ(graph.launches[1].reads, (std::vector<Use>{{x, 1}, {w, 0}}));
  EXPECT_EQ(graph.launches[1].writes, (std::vector<Use>{{y, 1}}));
  EXPECT_EQ(graph.makers[y], std::vector<std::uint32_t>{1});
  EXPECT_FALSE(graph.can_be_made(w));
  EXPECT_EQ(graph.launch_at[0], kNone);
  EXPECT_EQ(graph.launch_at[graph.launches[1].end - 1], 1u);
}

TEST(RecomputeGraph, WhatIsChangedInPlaceHasSeveralMakers) {
  Program program;
  const auto x = program.make(100, 5, {});
  program.launch(6, {x}, {x});
  const auto y = program.make(100, 5, {x});
  program.release(x);
  program.release(y);
  const Graph graph = graph_of(program.problem());
  EXPECT_EQ(graph.makers[x], (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(graph.launches[1].reads[0].version, 1u);
  EXPECT_EQ(graph.launches[2].reads[0].version, 2u);
}

TEST(RecomputeGraph, WhatCanNotBeMadeAgain) {
  Program program;
  const auto weight = program.persistent(50);
  const auto unwritten = program.allocate(10);
  program.launch(1, {unwritten}, {});
  const auto read_first = program.allocate(10);
  program.launch(1, {read_first}, {read_first});
  const auto early = program.make(10, 1, {});          // freed soon
  const auto of_early = program.make(10, 1, {early});  // which can be made again, too
  const auto late = program.make(10, 1, {weight});     // of what is changed before it is used last
  program.release(early);
  const auto state = program.allocate(10);
  program.launch(1, {weight}, {weight, state});  // changes what is there for good
  program.launch(1, {late, of_early, state}, {});
  for (const auto b : {unwritten, read_first, of_early, late, state}) program.release(b);
  const Graph graph = graph_of(program.problem());
  for (const auto b : {weight, unwritten, read_first}) EXPECT_FALSE(graph.can_be_made(b)) << b;
  for (const auto b : {early, of_early})
    EXPECT_TRUE(graph.can_be_made(b) && graph.made_until[b] == program.operations());
  // Up to the change of what they are made of: dropped behind their last use only.
  const std::uint64_t change = graph.launches[5].first + 1;
  EXPECT_EQ(graph.made_until[late], change);
  EXPECT_EQ(graph.made_until[state], 0u);
  for (const auto b : {late, state}) {
    EXPECT_FALSE(graph.may_be_dropped(b, graph.last_use[b])) << b;
    EXPECT_EQ(graph.last_need[b], graph.last_use[b]) << b;
    EXPECT_TRUE(graph.may_be_dropped(b, graph.last_use[b] + 1)) << b;
  }
  EXPECT_TRUE(graph.may_be_dropped(early, change));
  EXPECT_EQ(graph.last_need[early], graph.last_use[of_early]);
}

// Whose arguments, if each were looked for among all others, would be looked for all day: as optimizers launch, over
// all that there is, in place.
TEST(RecomputeGraph, ALaunchMayHaveVeryManyArguments) {
  constexpr std::uint32_t kArguments = 200'000;
  Program program;
  std::vector<std::uint32_t> states;
  for (std::uint32_t i = 0; i < kArguments; ++i) states.push_back(program.allocate(1));
  program.launch(1, {}, states);
  const auto one = program.make(1, 1, {states.front()});
  program.launch(1, states, {states.front(), states.back()});
  program.launch(1, states, states);
  program.release(one);
  for (const auto b : states) program.release(b);
  const Graph graph = graph_of(program.problem());
  ASSERT_EQ(graph.launches.size(), 4u);
  EXPECT_EQ(graph.launches[3].reads.size(), kArguments);
  EXPECT_EQ(graph.launches[3].writes.size(), kArguments);
  EXPECT_EQ(graph.launches[3].reads[0].version, 2u);
  EXPECT_EQ(graph.launches[3].reads[1].version, 1u);
  EXPECT_EQ(graph.makers[states.front()], (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(graph.makers[states[1]], (std::vector<std::uint32_t>{0, 3}));
  // Another one is changed by each replay.
  EXPECT_EQ(graph.made_until[states.front()], 0u);
  EXPECT_EQ(graph.made_until[states[1]], 0u);
  EXPECT_TRUE(graph.can_be_made(one));
}

// A convolution's workspace: there all the time, and written anew by each of them. What it holds at the end of the last
// one is not lost by a replay, which writes to bytes of its own.
TEST(RecomputeGraph, ALaunchThatWritesAPersistentBlockAnewMayBeReplayed) {
  Program program;
  const auto workspace = program.persistent(70);
  const auto x = program.allocate(100);
  program.launch(5, {}, {workspace, x});
  const auto y = program.allocate(20);
  program.launch(7, {x}, {workspace, y});
  program.launch(1, {y}, {});
  program.release(y);
  program.launch(1, {x}, {});
  program.release(x);
  const swap::Problem& problem = program.problem();
  const swap::Liveness liveness = swap::find_liveness(problem);
  const Graph graph = make_graph(problem, liveness);
  EXPECT_FALSE(graph.can_be_made(workspace));
  EXPECT_EQ(graph.launches[0].valid_until, program.operations());
  EXPECT_TRUE(graph.may_be_dropped(x, graph.last_use[x]));
  // Behind y's release: the workspace is in its second version, so the replay needs 70 bytes besides.
  const std::uint32_t before = graph.launches[3].first;
  const Steps steps = {{graph.launches[2].first, Step::Kind::kDrop, x}, {before, Step::Kind::kReplay, 0}};
  const Cost cost = find_cost(problem, liveness, graph, steps);
  EXPECT_EQ(cost.fault, std::nullopt);
  EXPECT_EQ(cost.added_ns, 5);
  EXPECT_EQ(cost.peak, 240u);
}

// What it wrote there is read until the next launch writes it: then its reader is not replayed any more.
TEST(RecomputeGraph, WhatIsWrittenAnewIsReadUpToThat) {
  Program program;
  const auto saved = program.persistent(10);
  const auto x = program.allocate(100);
  program.launch(5, {}, {saved, x});
  const auto y = program.make(100, 5, {saved});
  const auto z = program.allocate(100);
  program.launch(5, {x}, {saved, z});
  program.launch(1, {x, y, z}, {});
  for (const auto b : {x, y, z}) program.release(b);
  const Graph graph = graph_of(program.problem());
  EXPECT_EQ(graph.made_until[x], program.operations());
  EXPECT_EQ(graph.made_until[y], graph.launches[2].first + 1);
  EXPECT_FALSE(graph.may_be_dropped(y, graph.last_use[y]));
}

TEST(RecomputeGraph, InstancesOfOtherIterationsStay) {
  Program program;
  const auto x = program.make(100, 5, {});
  program.launch(1, {x}, {});
  program.release(x);
  swap::Problem& problem = program.problem();
  EXPECT_TRUE(graph_of(problem).can_be_made(x));
  // The same, but freed in the iteration behind.
  std::rotate(problem.operations.begin(), problem.operations.end() - 1, problem.operations.end());
  problem.operations[0].age = 1;
  problem.operations[0].time = 0;
  EXPECT_FALSE(graph_of(problem).can_be_made(x));
}

}  // namespace
}  // namespace memopt::recompute
