#include "agent/memory/graph_names.h"

#include <gtest/gtest.h>

namespace memopt::agent {
namespace {

// Handles: compared, never followed.
const void* handle(int number) { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number)); }
const void* const kStream = handle(1);
const void* const kOther = handle(2);
const void* const kGraph = handle(10);
const void* const kExec = handle(20);

// A capture that names a block: what that has.
GraphNames::Captures capture(GraphNames& names, const void* graph, const void* stream = kStream) {
  names.begin(stream);
  const GraphNames::Captures named{names.now(), names.now()};
  names.captured(stream, graph);
  names.end(stream);
  return named;
}

TEST(GraphNames, ABlockIsHeldUntilGraphAndExecutableAreGone) {
  GraphNames names;
  const auto named = capture(names, kGraph);
  EXPECT_TRUE(names.hold(named));
  names.made(kGraph, kExec);
  names.forget(kGraph);
  EXPECT_TRUE(names.hold(named));
  names.forget(kExec);
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, WhileItIsCapturedABlockIsHeld) {
  GraphNames names;
  names.begin(kStream);
  const GraphNames::Captures named{names.now(), names.now()};
  EXPECT_TRUE(names.hold(named));
  // Refused, or spoilt: there is no graph.
  names.end(kStream);
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, LaterGraphsDoNotHoldWhatEarlierOnesNamed) {
  GraphNames names;
  const auto first = capture(names, kGraph);
  const auto second = capture(names, handle(11));
  names.forget(kGraph);
  EXPECT_FALSE(names.hold(first));
  EXPECT_TRUE(names.hold(second));
  // One that was named by both is held by the second.
  EXPECT_TRUE(names.hold({first.first, second.last}));
}

TEST(GraphNames, CapturesAtTheSameTimeHoldEachOthersBlocks) {
  GraphNames names;
  names.begin(kStream);
  names.begin(kOther);
  const GraphNames::Captures named{names.now(), names.now()};  // by either
  names.captured(kOther, kGraph);
  names.end(kOther);
  names.captured(kStream, handle(11));
  names.end(kStream);
  names.forget(kGraph);
  EXPECT_TRUE(names.hold(named));
  names.forget(handle(11));
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, ClonesChildrenAndUpdatesCarryNamesOn) {
  GraphNames names;
  const auto named = capture(names, kGraph);
  const void* const clone = handle(11);
  const void* const parent = handle(12);
  names.made(kGraph, clone);
  names.added(clone, parent);
  names.made(parent, kExec);
  names.added(parent, handle(21));  // an executable that was updated
  for (const void* const gone : {kGraph, clone, parent, kExec}) names.forget(gone);
  EXPECT_TRUE(names.hold(named));
  names.forget(handle(21));
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, AGraphThatIsCapturedIntoAgainHoldsBoth) {
  GraphNames names;
  const auto first = capture(names, kGraph);
  const auto second = capture(names, kGraph, kOther);
  EXPECT_TRUE(names.hold(first));
  EXPECT_TRUE(names.hold(second));
  names.forget(kGraph);
  EXPECT_FALSE(names.hold(first));
  EXPECT_FALSE(names.hold(second));
}

TEST(GraphNames, AnAddressThatIsUsedAgainIsAnotherGraph) {
  GraphNames names;
  const auto named = capture(names, kGraph);
  names.made(kGraph, kExec);
  names.forget(kGraph);
  // Made of a graph in which nothing was captured; the end of the former one was not seen.
  names.made(handle(13), kExec);
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, WhatCouldNotBeDestroyedStillHolds) {
  GraphNames names;
  const auto named = capture(names, kGraph);
  const auto captures = names.forget(kGraph);
  EXPECT_FALSE(names.hold(named));
  names.restore(kGraph, captures);
  EXPECT_TRUE(names.hold(named));
  // One that nothing is known of has nothing to be restored.
  names.restore(handle(30), names.forget(handle(30)));
  names.forget(kGraph);
  EXPECT_FALSE(names.hold(named));
}

TEST(GraphNames, ACaptureWhoseBeginningWasNotSeenCountsAsTheFirst) {
  GraphNames names;
  const auto named = capture(names, kGraph);
  names.forget(kGraph);
  names.captured(kOther, handle(11));
  EXPECT_TRUE(names.hold(named));
}

TEST(GraphNames, WhereAPartIsBeyondSightEverythingIsHeld) {
  GraphNames names;
  names.lose_track(nullptr);  // of no capture
  const auto named = capture(names, kGraph);
  names.lose_track(handle(11));
  names.forget(kGraph);
  EXPECT_FALSE(names.hold(named));
  capture(names, kGraph);
  names.lose_track(kGraph);
  names.forget(kGraph);
  EXPECT_TRUE(names.hold(named));
}

}  // namespace
}  // namespace memopt::agent
