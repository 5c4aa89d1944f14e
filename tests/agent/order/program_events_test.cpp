#include <gtest/gtest.h>

#include "agent/order/stream_table.h"
#include "tests/agent/order/fake_streams.h"

namespace memopt::agent {
namespace {

TEST_F(StreamTableTest, WhatAnotherThreadQueuesDuringARecordIsNotCovered) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(2));
  work(stream(1));
  const EventRecord record = table_.begin_event_record(event, {stream(1), false});
  // The driver's call is here, and another thread's operation behind it.
  const StreamUse late = work(stream(1));
  table_.event_recorded(record, true);
  table_.event_waited(table_.begin_event_wait({stream(2), false}, event));
  Release release = release_of(late);
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 2));
}

TEST_F(StreamTableTest, AnEventThatIsRecordedAnewDuringAWaitSaysNothing) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  const StreamUse use = work(stream(1));
  work(stream(2));
  work(stream(3));
  table_.event_recorded(table_.begin_event_record(event, {stream(1), false}), true);
  const EventWait wait = table_.begin_event_wait({stream(2), false}, event);
  table_.event_recorded(table_.begin_event_record(event, {stream(3), false}), true);
  table_.event_waited(wait);
  Release release = release_of(use);
  table_.record_events(lock_, release);
  table_.wait(lock_, table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

TEST_F(StreamTableTest, AnEventThatAGraphRecordsSaysNothing) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(1));
  table_.event_in_graph(event, true);
  table_.event_recorded(table_.begin_event_record(event, {stream(1), false}), true);
  EXPECT_TRUE(table_.begin_wait_for_event(event).uses.empty());
  const CUevent other = reinterpret_cast<CUevent>(0x43);
  table_.event_recorded(table_.begin_event_record(other, {stream(1), false}), true);
  EXPECT_FALSE(table_.begin_wait_for_event(other).uses.empty());
  table_.forget_events();
  EXPECT_TRUE(table_.begin_wait_for_event(other).uses.empty()) << "a graph was launched";
}

}  // namespace
}  // namespace memopt::agent
