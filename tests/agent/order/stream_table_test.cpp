#include "agent/order/stream_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace memopt::agent {
namespace {

// A driver of streams and events only: keeps, for each stream, what is queued, and knows what each wait implies.
struct FakeDriver {
  struct Recorded {
    CUstream stream;
    std::uint64_t position;  // operations queued on the stream before it
  };
  std::map<CUstream, std::uint64_t> queued;                      // operations on each stream
  std::map<CUstream, std::map<CUstream, std::uint64_t>> behind;  // who waits for how much of whom
  std::map<CUevent, Recorded> events;
  std::map<CUstream, std::uint64_t> finished;
  std::set<CUstream> gone;
  std::uint64_t made = 0;
  int host_waits = 0;
  int waits = 0;
  int records = 0;
  bool refuse_records = false;
};
FakeDriver* g_fake = nullptr;

CUresult event_create(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(0x1000 + 16 * ++g_fake->made);
  return CUDA_SUCCESS;
}
CUresult event_record(CUevent event, CUstream stream) {
  if (g_fake->refuse_records || g_fake->gone.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
  ++g_fake->records;
  g_fake->events[event] = {stream, g_fake->queued[stream]};
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent event) {
  const auto& recorded = g_fake->events.at(event);
  return g_fake->finished[recorded.stream] >= recorded.position ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
void finish(CUstream stream, std::uint64_t position) {
  g_fake->finished[stream] = std::max(g_fake->finished[stream], position);
}
CUresult event_synchronize(CUevent event) {
  ++g_fake->host_waits;
  finish(g_fake->events.at(event).stream, g_fake->events.at(event).position);
  return CUDA_SUCCESS;
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned int) {
  ++g_fake->waits;
  const auto& recorded = g_fake->events.at(event);
  auto& position = g_fake->behind[stream][recorded.stream];
  position = std::max(position, recorded.position);
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  ++g_fake->host_waits;
  finish(stream, g_fake->queued[stream]);
  return CUDA_SUCCESS;
}
CUresult synchronize_context() {
  ++g_fake->host_waits;
  for (const auto& [stream, count] : g_fake->queued) finish(stream, count);
  return CUDA_SUCCESS;
}
CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

class StreamTableTest : public testing::Test {
 protected:
  void SetUp() override {
    g_fake = &fake_;
    driver_.event_create = event_create;
    driver_.event_record = event_record;
    driver_.event_query = event_query;
    driver_.event_synchronize = event_synchronize;
    driver_.stream_wait_event = stream_wait_event;
    driver_.stream_synchronize = stream_synchronize;
    driver_.synchronize_context = synchronize_context;
    driver_.stream_is_capturing = is_capturing;
  }
  static CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(0x100 * number); }
  StreamUse work(CUstream on) {
    const StreamUse use = table_.begin({on, false});
    ++fake_.queued[on];
    return use;
  }
  static Release release_of(StreamUse use) {
    Release release;
    release.add(use);
    return release;
  }
  // Is what is queued on `later` from now on behind the first `position` operations of `earlier`?
  bool is_behind(CUstream later, CUstream earlier, std::uint64_t position) {
    return later == earlier || fake_.finished[earlier] >= position || fake_.behind[later][earlier] >= position;
  }

  FakeDriver fake_;
  Driver driver_;
  StreamTable table_{driver_};
};

TEST_F(StreamTableTest, OneStreamNeedsNothing) {
  for (int i = 0; i < 10; ++i) {
    const StreamUse use = work(stream(1));
    Release release = release_of(use);
    table_.record_events(release);
    table_.wait(use.slot, release);
  }
  EXPECT_EQ(fake_.records, 0);
  EXPECT_EQ(fake_.waits, 0);
  EXPECT_EQ(fake_.host_waits, 0);
}

TEST_F(StreamTableTest, UsesFromBeforeTheSecondStreamAreWaitedForToo) {
  const StreamUse early = work(stream(1));
  Release release = release_of(early);
  table_.record_events(release);
  const StreamUse other = work(stream(2));
  table_.wait(other.slot, release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
  EXPECT_EQ(fake_.host_waits, 0);
}

TEST_F(StreamTableTest, WaitsOnlyForWhatWasQueuedAtTheFree) {
  work(stream(2));
  const StreamUse use = work(stream(1));
  Release release = release_of(use);
  table_.record_events(release);
  work(stream(1));
  const StreamUse other = work(stream(2));
  table_.wait(other.slot, release);
  EXPECT_EQ(fake_.behind[stream(2)][stream(1)], 1u) << "the second operation was queued after the free";
}

TEST_F(StreamTableTest, WaitsOnceForWhatItIsBehindAlready) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.record_events(release);
  for (int i = 0; i < 3; ++i) table_.wait(table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.waits, 1);
}

TEST_F(StreamTableTest, WhatTheHostHasSeenCompleteNeedsNoEvent) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  const HostWait wait = table_.begin_wait_for_stream({stream(1), false});
  finish(stream(1), 1);
  table_.completed(wait);
  const int before = fake_.records;
  table_.record_events(release);
  table_.wait(table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.records, before);
  EXPECT_EQ(fake_.waits, 0);
  EXPECT_TRUE(table_.is_over(release, false));
}

TEST_F(StreamTableTest, AStreamThatEndsLeavesAnEvent) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.destroyed(stream(1));
  fake_.gone.insert(stream(1));
  table_.wait(table_.slot_of({stream(2), false}), release);
  EXPECT_TRUE(is_behind(stream(2), stream(1), 1));
}

TEST_F(StreamTableTest, TheNextStreamIsNotTakenForOneThatEnded) {
  work(stream(2));
  const Release release = release_of(work(stream(1)));
  table_.destroyed(stream(1));
  fake_.gone.insert(stream(1));
  const StreamUse fresh = work(stream(3));
  const HostWait wait = table_.begin_wait_for_stream({stream(3), false});
  finish(stream(3), 1);
  table_.completed(wait);
  EXPECT_FALSE(table_.is_over(release, true)) << "stream 3 is through, stream 1 is not";
  table_.wait(fresh.slot, release);
  EXPECT_TRUE(is_behind(stream(3), stream(1), 1));
}

TEST_F(StreamTableTest, WithoutAnEventTheHostWaits) {
  work(stream(2));
  Release release = release_of(work(stream(1)));
  fake_.refuse_records = true;
  table_.record_events(release);
  EXPECT_TRUE(release.unordered);
  table_.wait(table_.slot_of({stream(2), false}), release);
  EXPECT_GE(fake_.finished[stream(1)], 1u);
}

TEST_F(StreamTableTest, HostVisibleWorkIsWaitedForAtAFree) {
  const StreamUse use = work(stream(1));
  table_.host_visible(use);
  table_.finish_host_visible();
  EXPECT_EQ(fake_.finished[stream(1)], 1u);
  const int before = fake_.host_waits;
  table_.finish_host_visible();
  EXPECT_EQ(fake_.host_waits, before) << "once is enough";
}

TEST_F(StreamTableTest, WaitsOfTheProgramCountToo) {
  const CUevent event = reinterpret_cast<CUevent>(0x42);
  work(stream(2));
  Release release = release_of(work(stream(1)));
  table_.event_recorded(event, {stream(1), false});
  table_.event_waited({stream(2), false}, event);
  table_.wait(table_.slot_of({stream(2), false}), release);
  EXPECT_EQ(fake_.waits, 0);
}

// Any program on any streams: whoever takes bytes is behind everybody who used them.
class StreamTableModel : public StreamTableTest, public testing::WithParamInterface<unsigned> {};

TEST_P(StreamTableModel, TakersAreBehindFormerUsers) {
  std::mt19937 random(GetParam());
  struct Bytes {
    Release release;
    struct User {
      CUstream on;
      std::uint64_t position;  // by the driver's count; a slot's goes on from one stream to the next
      StreamUse use;
    };
    std::vector<User> users;  // since they were taken
    std::vector<User> former;
    bool taken = false;
  };
  std::vector<Bytes> all(12);
  std::uintptr_t next_stream = 6;
  std::vector<CUstream> streams{stream(1), stream(2), stream(3), stream(4), stream(5)};
  for (int step = 0; step < 4000; ++step) {
    Bytes& bytes = all[random() % all.size()];
    switch (random() % 12) {
      default: {  // taken, used, or freed
        if (bytes.taken && random() % 3 == 0) {
          Release release;
          for (const auto& user : bytes.users) release.add(user.use);
          if (bytes.users.empty()) release = bytes.release;
          table_.record_events(release);
          bytes.release = release;
          if (!bytes.users.empty()) bytes.former = bytes.users;
          bytes.users.clear();
          bytes.taken = false;
          break;
        }
        bytes.taken = true;
        const CUstream on = streams[random() % streams.size()];
        table_.wait(table_.slot_of({on, false}), bytes.release);
        for (const auto& former : bytes.former) {
          ASSERT_TRUE(is_behind(on, former.on, former.position)) << "step " << step;
        }
        const StreamUse use = work(on);
        bytes.users.push_back({on, fake_.queued[on], use});
        break;
      }
      case 0: {  // the device gets on
        const CUstream on = streams[random() % streams.size()];
        finish(on, fake_.finished[on] + random() % (fake_.queued[on] - fake_.finished[on] + 1));
        break;
      }
      case 1: {  // the host waits
        const CUstream on = streams[random() % streams.size()];
        const HostWait wait = table_.begin_wait_for_stream({on, false});
        finish(on, fake_.queued[on]);
        table_.completed(wait);
        break;
      }
      case 2: {  // a stream ends, another begins; bytes in use on it are left alone
        CUstream& old = streams[random() % streams.size()];
        bool used = false;
        for (const Bytes& other : all) {
          for (const auto& user : other.users) used = used || (other.taken && user.on == old);
        }
        if (used || next_stream > 40) break;
        table_.destroyed(old);
        fake_.gone.insert(old);
        old = stream(next_stream++);
        break;
      }
    }
  }
  EXPECT_GT(fake_.waits, 50);
}
INSTANTIATE_TEST_SUITE_P(Seeds, StreamTableModel, testing::Range(1u, 13u));

}  // namespace
}  // namespace memopt::agent
