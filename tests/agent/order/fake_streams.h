// A driver of streams and events that knows what each wait implies, and the stream table over it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "agent/order/in_flight.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {

// A driver of streams and events only: keeps, for each stream, what is queued, and knows what each wait implies.
struct FakeDriver {
  struct Recorded {
    CUstream stream;
    std::uint64_t position;  // operations queued on the stream before it
    std::map<CUstream, std::uint64_t> behind;
  };
  std::map<CUstream, std::uint64_t> queued;                      // operations on each stream
  std::map<CUstream, std::map<CUstream, std::uint64_t>> behind;  // who waits for how much of whom
  std::map<CUevent, Recorded> events;
  std::map<CUstream, std::uint64_t> finished;
  std::set<CUstream> gone;
  std::uint64_t made = 0;
  int host_waits = 0;
  int context_waits = 0;  // of these
  int waits = 0;
  int records = 0;
  bool refuse_records = false;
  bool refuse_waits = false;
  bool others_lock = false;         // another thread may have it at any time
  std::mutex mutex;                 // threads call the driver at the same time
  std::function<void()> meanwhile;  // in the midst of a driver call: what another thread does

  void run_meanwhile() {
    if (meanwhile) std::exchange(meanwhile, nullptr)();
  }
};
inline FakeDriver* g_fake = nullptr;
inline const CUstream kFold = reinterpret_cast<CUstream>(0x7);

inline CUresult event_create(CUevent* event, unsigned int) {
  const std::lock_guard guard(g_fake->mutex);
  *event = reinterpret_cast<CUevent>(0x1000 + 16 * ++g_fake->made);
  return CUDA_SUCCESS;
}
// With the lock held, another thread could not do anything.
inline void expect_unlocked() {
  if (g_fake->others_lock) return;
  EXPECT_EQ(__atomic_load_n(&arena_lock_word.word, __ATOMIC_RELAXED), 0) << "the driver may wait, and the lock is held";
}
inline CUresult event_record(CUevent event, CUstream stream) {
  expect_unlocked();
  g_fake->run_meanwhile();
  const std::lock_guard guard(g_fake->mutex);
  if (g_fake->refuse_records || g_fake->gone.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
  ++g_fake->records;
  g_fake->events[event] = {stream, g_fake->queued[stream], g_fake->behind[stream]};
  return CUDA_SUCCESS;
}
inline CUresult event_query(CUevent event) {
  const std::lock_guard guard(g_fake->mutex);
  const auto& recorded = g_fake->events.at(event);
  bool over = g_fake->finished[recorded.stream] >= recorded.position;
  for (const auto& [other, position] : recorded.behind) over = over && g_fake->finished[other] >= position;
  return over ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
inline void finish(CUstream stream, std::uint64_t position) {
  g_fake->finished[stream] = std::max(g_fake->finished[stream], position);
}
inline CUresult event_synchronize(CUevent event) {
  expect_unlocked();
  const std::lock_guard guard(g_fake->mutex);
  ++g_fake->host_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  finish(g_fake->events.at(event).stream, g_fake->events.at(event).position);
  return CUDA_SUCCESS;
}
inline CUresult stream_wait_event(CUstream stream, CUevent event, unsigned int) {
  expect_unlocked();
  const std::lock_guard guard(g_fake->mutex);
  ++g_fake->waits;
  const auto& recorded = g_fake->events.at(event);
  auto& position = g_fake->behind[stream][recorded.stream];
  position = std::max(position, recorded.position);
  // Behind what the event's stream had been made to wait for by then, too.
  for (const auto& [other, reached] : recorded.behind) {
    auto& further = g_fake->behind[stream][other];
    further = std::max(further, reached);
  }
  return CUDA_SUCCESS;
}
inline CUresult stream_synchronize(CUstream stream) {
  expect_unlocked();
  const std::lock_guard guard(g_fake->mutex);
  ++g_fake->host_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  finish(stream, g_fake->queued[stream]);
  return CUDA_SUCCESS;
}
inline CUresult synchronize_context() {
  expect_unlocked();
  const std::lock_guard guard(g_fake->mutex);
  ++g_fake->host_waits;
  ++g_fake->context_waits;
  if (g_fake->refuse_waits) return CUDA_ERROR_UNKNOWN;
  for (const auto& [stream, count] : g_fake->queued) finish(stream, count);
  return CUDA_SUCCESS;
}
inline CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

class StreamTableTest : public testing::Test {
 protected:
  void SetUp() override {
    g_fake = &fake_;
    driver_.event_create = event_create;
    driver_.stream_create = [](CUstream* made, unsigned int) {
      *made = kFold;
      return CUDA_SUCCESS;
    };
    driver_.event_destroy = [](CUevent) { return CUDA_SUCCESS; };
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
    queued();
    return use;
  }
  // An operation that another thread has announced, and queues when it is told to.
  class Announced {
   public:
    Announced(StreamTableTest& test, CUstream on) : test_(test), on_(on) {
      std::atomic<bool> announced = false;
      thread_ = std::thread([&] {
        use_ = test_.table_.begin({on_, false});
        announced = true;
        while (!queue_) std::this_thread::yield();
        queued();
        done_ = true;
      });
      while (!announced) std::this_thread::yield();
    }
    ~Announced() {
      queue_ = true;
      thread_.join();
    }
    void queue() {
      ++test_.fake_.queued[on_];
      queue_ = true;
      while (!done_) std::this_thread::yield();
    }
    StreamUse use() const { return use_; }

   private:
    StreamTableTest& test_;
    const CUstream on_;
    StreamUse use_;
    std::atomic<bool> queue_ = false;
    std::atomic<bool> done_ = false;
    std::thread thread_;
  };

  static Release release_of(StreamUse use) {
    Release release;
    release.add(use);
    return release;
  }
  // As the arena does it.
  void free_now() {
    Release uses;
    if (table_.free_at_once(&uses)) return;
    const StreamTable::Free free = table_.begin_free(&uses);
    if (free.needs_wait) {
      table_.finish_all(lock_);
      uses = {};
    } else if (free.needs_fold) {
      table_.fold(lock_, free, &uses);
    } else {
      table_.record_events(lock_, uses);
    }
    table_.end_free(free, uses);
  }
  void order(CUstream on) {
    UseSet needs;
    const StreamUse use = table_.begin({on, false});
    table_.add_barrier_needs(static_cast<StreamSlot>(use.slot), &needs);
    table_.wait(lock_, static_cast<StreamSlot>(use.slot), needs);
    ++fake_.queued[on];
    queued();
  }
  void synchronize() {
    for (const auto& [on, count] : fake_.queued) finish(on, count);
  }
  // Is what is queued on `later` from now on behind the first `position` operations of `earlier`?
  bool is_behind(CUstream later, CUstream earlier, std::uint64_t position) {
    return later == earlier || fake_.finished[earlier] >= position || fake_.behind[later][earlier] >= position;
  }

  FakeDriver fake_;
  Driver driver_;
  StreamTable table_{driver_};
  ArenaLock lock_;
};

}  // namespace memopt::agent
