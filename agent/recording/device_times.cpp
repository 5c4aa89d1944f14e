#include "agent/recording/device_times.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "agent/order/captures.h"
#include "agent/process/driver.h"
#include "agent/process/spin_lock.h"
#include "agent/recording/recorder.h"
#include "shm/channel.h"

namespace memopt::agent {
namespace device_times_detail {
constinit thread_local Open open = Open::kNo;
constinit thread_local Due mark_due = Due::kNone;
}  // namespace device_times_detail
namespace {

using device_times_detail::Open;

// Measured operations of a thread that the device has not got to yet. With one of sixteen measured, as many operations
// as a stream takes before the host waits.
constexpr std::uint32_t kMostWaiting = 64;
constexpr std::size_t kMostAtOnce = 8;

struct Sample {
  CUevent former = nullptr;  // behind the operation before it on its stream
  CUevent begin = nullptr;
  CUevent end = nullptr;
  bool has_former = false;
  std::uint64_t sequence = 0;
};

// Of the lane's operations. The thread's own.
struct LaneCount {
  std::uint64_t operations = 0;
  std::uint64_t run = 0;       // `every` operations each; of which one is measured:
  std::uint64_t measured = 0;  // this one
  std::uint32_t every = 0;     // what `measured` was chosen for
  bool missed_one = false;     // behind the one that left `former`, an operation was queued that is not counted
};

// Of one lane. Under the lock; `waiting` is read without it.
struct LaneTimes {
  std::uint32_t waiting = 0;  // samples
  std::uint64_t first = 0;    // of these; their places are their numbers modulo kMostWaiting
  std::uint64_t next = 0;     // sample that is begun next
  std::uint64_t former_stream = 0;
  bool former_there = false;   // the next sample has its event `former`, recorded on that stream
  bool measures = false;       // the operation that is open is a sample
  bool next_measures = false;  // the one behind it is
  CUstream stream = nullptr;   // of the operation that is open
  std::uint64_t stream_number = 0;
  std::array<Sample, kMostWaiting> samples;
};

struct Measured {
  std::uint32_t idle = 0;
  shm::KernelTimeBody body;
};

constinit std::uint32_t g_every = 0;
constinit int g_lock = 0;
constinit LaneTimes g_lanes[shm::kMaxLanes] = {};
constinit LaneCount g_counts[shm::kMaxLanes] = {};
// The end of an operation that was measured, and when the device's clock stood there: events tell differences only.
constinit CUevent g_reference = nullptr;
constinit double g_reference_time = 0;

// Between two operations of one thread.
struct Mark {
  CUevent event = nullptr;
  bool recorded = false;
};
constinit Mark g_marks[2] = {};

// What the legacy default stream is ordered with, as far as operations were recorded.
constinit std::uint64_t g_one_stream = ~std::uint64_t{0};
constinit bool g_several_streams = false;
constinit std::uint64_t g_not_blocking[64] = {};  // streams that it is not ordered with, as the driver said
constinit std::uint32_t g_one_lane = kNoLane;
constinit bool g_several_lanes = false;

bool is_on() noexcept { return __atomic_load_n(&g_every, __ATOMIC_RELAXED) != 0; }
void switch_off() noexcept { __atomic_store_n(&g_every, 0, __ATOMIC_RELAXED); }

template <typename Value>
void note(Value& one, bool& several, Value none, Value seen) noexcept {
  const Value known = __atomic_load_n(&one, __ATOMIC_RELAXED);
  if (known == seen) [[likely]]
    return;
  if (known == none) {
    __atomic_store_n(&one, seen, __ATOMIC_RELAXED);
  } else if (!__atomic_load_n(&several, __ATOMIC_RELAXED)) {
    __atomic_store_n(&several, true, __ATOMIC_RELAXED);
  }
}

std::uint64_t& place_of(std::uint64_t stream) noexcept { return g_not_blocking[(stream * 0x9e3779b97f4a7c15u) >> 58]; }

// A stream that operations are recorded on.
void note_stream(StreamName stream, std::uint64_t number) noexcept {
  if (__atomic_load_n(&g_one_stream, __ATOMIC_RELAXED) == number ||
      __atomic_load_n(&g_several_streams, __ATOMIC_RELAXED)) [[likely]] {
    return;
  }
  const bool made =
      stream.handle != nullptr && stream.handle != CU_STREAM_LEGACY && stream.handle != CU_STREAM_PER_THREAD;
  if (made) {
    std::uint64_t& known = place_of(number);
    if (__atomic_load_n(&known, __ATOMIC_RELAXED) == number) return;
    unsigned int flags = 0;
    if (!captures_are_open() && driver().stream_flags(stream.handle, &flags) == CUDA_SUCCESS &&
        (flags & CU_STREAM_NON_BLOCKING) != 0) {
      __atomic_store_n(&known, number, __ATOMIC_RELAXED);
      return;
    }
  }
  note(g_one_stream, g_several_streams, ~std::uint64_t{0}, number);
}

bool adds_order(std::uint64_t stream) noexcept {
  return stream == 0 && __atomic_load_n(&g_several_streams, __ATOMIC_RELAXED) &&
         __atomic_load_n(&g_several_lanes, __ATOMIC_RELAXED);
}

// Which one of a lane's `every` operations from number run * every on is measured: by chance, but always the same. So
// each operation of an iteration gets its turn, whatever the iteration's length; counting alone would measure the same
// ones for ever where `every` divides it. The mixing is that of splitmix64 (Steele, Lea and Flood 2014).
std::uint64_t chosen(std::uint64_t run, std::uint32_t lane, std::uint32_t every) noexcept {
  std::uint64_t x = (run << 6 | lane) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return run * every + (x ^ (x >> 31)) % every;
}

CUstream handle_of(StreamName stream) noexcept {
  if (stream.handle != nullptr) return stream.handle;
  return stream.per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

// With the lock. False: the driver refused, and nothing is measured any more.
bool record(CUevent& event, CUstream stream) noexcept {
  if (event == nullptr && driver().event_create(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    event = nullptr;
    switch_off();
    return false;
  }
  const CUresult result = driver().event_record(event, stream);
  // A stream that is not there, or another context's: the program's own call fails on it, and others do not.
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_INVALID_CONTEXT) {
    switch_off();
  }
  return result == CUDA_SUCCESS;
}

bool nanoseconds_between(CUevent from, CUevent to, double* nanoseconds) noexcept {
  float milliseconds = 0;
  if (driver().event_elapsed(&milliseconds, from, to) != CUDA_SUCCESS) {
    switch_off();
    return false;
  }
  *nanoseconds = static_cast<double>(milliseconds) * 1e6;
  return true;
}

std::uint64_t whole(double nanoseconds) noexcept {
  return nanoseconds > 0 ? static_cast<std::uint64_t>(nanoseconds + 0.5) : 0;
}

// The oldest sample of the lane, if the device is behind it. With the lock.
bool take(LaneTimes& lane, Measured* measured) noexcept {
  if (lane.waiting == 0) return false;
  Sample& sample = lane.samples[lane.first % kMostWaiting];
  const CUresult there = driver().event_query(sample.end);
  if (there == CUDA_ERROR_NOT_READY) return false;
  if (there != CUDA_SUCCESS) {
    switch_off();
    return false;
  }
  double took = 0, idle = 0, since = 0;
  if (!nanoseconds_between(sample.begin, sample.end, &took)) return false;
  if (sample.has_former && !nanoseconds_between(sample.former, sample.begin, &idle)) return false;
  if (g_reference == nullptr) {
    since = took + 1;  // 0 would be no time
  } else if (!nanoseconds_between(g_reference, sample.end, &since)) {
    return false;
  }
  g_reference_time += since;
  measured->body = {sample.sequence, whole(took), whole(g_reference_time)};
  measured->idle = shm::kIdleUnknown;
  if (sample.has_former) {
    measured->idle = static_cast<std::uint32_t>(std::min<std::uint64_t>(whole(idle), shm::kIdleUnknown - 1));
  }
  // The place gets the event that was the reference, or makes a new one.
  std::swap(g_reference, sample.end);
  ++lane.first;
  __atomic_store_n(&lane.waiting, lane.waiting - 1, __ATOMIC_RELAXED);
  return true;
}

// Without the lock, since recording may wait for the planner.
void write_down(const Measured* measured, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) record_kernel_time(measured[i].body, measured[i].idle);
}

bool may_measure(std::uint64_t stream) noexcept { return is_on() && !captures_are_open() && !adds_order(stream); }

// With the lock. False: the operation is not measured.
bool begin(LaneTimes& lane, std::uint64_t sequence, bool missed_one) noexcept {
  const bool former = lane.former_there && !missed_one && lane.former_stream == lane.stream_number;
  lane.former_there = false;
  if (!may_measure(lane.stream_number) || lane.waiting == kMostWaiting) return false;
  Sample& sample = lane.samples[lane.next % kMostWaiting];
  sample.sequence = sequence;
  sample.has_former = former;
  return record(sample.begin, lane.stream);
}

[[gnu::cold, gnu::noinline]] void open(std::uint32_t number, StreamName stream, std::uint64_t stream_number,
                                       std::uint64_t sequence, bool measures, bool next) noexcept {
  const int kept = errno;
  const LockGuard guard(g_lock);
  LaneTimes& lane = g_lanes[number];
  lane.measures = measures;
  lane.next_measures = next;
  lane.stream = handle_of(stream);
  lane.stream_number = stream_number;
  if (measures) lane.measures = begin(lane, sequence, std::exchange(g_counts[number].missed_one, false));
  if (next) g_counts[number].missed_one = false;
  if (lane.measures || next) device_times_detail::open = Open::kYes;
  errno = kept;
}

}  // namespace

void start_device_times(std::uint32_t every) noexcept { __atomic_store_n(&g_every, every, __ATOMIC_RELAXED); }

void time_operation(StreamName stream, std::uint64_t sequence) noexcept {
  const std::uint32_t every = __atomic_load_n(&g_every, __ATOMIC_RELAXED);
  const std::uint32_t number = current_lane();
  if (every == 0 || number >= shm::kMaxLanes) return;
  LaneCount& lane = g_counts[number];
  if (sequence == 0) {
    lane.missed_one = true;
    return;
  }
  const std::uint64_t its_stream = stream_number(stream);
  note_stream(stream, its_stream);
  note(g_one_lane, g_several_lanes, kNoLane, number);
  const std::uint64_t here = lane.operations++;
  if (lane.every != every) [[unlikely]] {
    lane.every = every;
    lane.run = here == 0 ? 0 : here / every + 1;
    lane.measured = chosen(lane.run, number, every);
  }
  const bool measures = here == lane.measured;
  if (measures) lane.measured = chosen(++lane.run, number, every);
  // How long the device idles before the next operation is of use to whoever reads a file only; beside a planner, there
  // would be our own waits in it.
  const bool next = here + 1 == lane.measured && recording_fully();
  if ((measures || next) && device_times_detail::open == Open::kNo) {
    open(number, stream, its_stream, sequence, measures, next);
  }
}

void device_times_detail::leave_mark(StreamName stream) noexcept {
  const int kept = errno;
  const std::uint64_t number = stream_number(stream);
  {
    const LockGuard guard(g_lock);
    Mark& mark = g_marks[std::exchange(mark_due, Due::kNone) == Due::kFirst ? 0 : 1];
    mark.recorded = may_measure(number) && record(mark.event, handle_of(stream));
  }
  errno = kept;
}

void device_times_detail::end() noexcept {
  const bool failed = open == Open::kFailed;
  open = Open::kNo;
  const std::uint32_t number = current_lane();
  if (failed || number >= shm::kMaxLanes) return;
  const int kept = errno;
  std::array<Measured, kMostAtOnce> measured;
  std::size_t count = 0;
  {
    const LockGuard guard(g_lock);
    LaneTimes& lane = g_lanes[number];
    if (!may_measure(lane.stream_number)) {
      errno = kept;
      return;
    }
    if (lane.measures && record(lane.samples[lane.next % kMostWaiting].end, lane.stream)) {
      ++lane.next;
      __atomic_store_n(&lane.waiting, lane.waiting + 1, __ATOMIC_RELAXED);
    }
    // What the host does before the next event may be what the device waits for: so nothing, if there is room still.
    if (!lane.next_measures || lane.waiting >= kMostWaiting / 2) {
      while (count < kMostAtOnce && take(lane, &measured[count])) ++count;
    }
    if (lane.next_measures) {
      lane.former_there =
          lane.waiting < kMostWaiting && record(lane.samples[lane.next % kMostWaiting].former, lane.stream);
      lane.former_stream = lane.stream_number;
    }
  }
  write_down(measured.data(), count);
  errno = kept;
}

void look_for_device_times() noexcept {
  const std::uint32_t number = current_lane();
  if (!is_on() || !recording() || number >= shm::kMaxLanes || device_times_detail::open != Open::kNo) return;
  LaneTimes& lane = g_lanes[number];
  if (__atomic_load_n(&lane.waiting, __ATOMIC_RELAXED) == 0) return;
  const int kept = errno;
  std::array<Measured, kMostAtOnce> measured;
  std::size_t count = 0;
  do {
    count = 0;
    {
      const LockGuard guard(g_lock);
      if (captures_are_open()) break;
      while (count < kMostAtOnce && take(lane, &measured[count])) ++count;
    }
    write_down(measured.data(), count);
  } while (count == kMostAtOnce);
  errno = kept;
}

void mark_operation(bool first) noexcept {
  const LockGuard guard(g_lock);
  g_marks[first ? 0 : 1].recorded = false;
  device_times_detail::mark_due = first ? device_times_detail::Due::kFirst : device_times_detail::Due::kSecond;
}

bool time_between_marks(std::uint64_t* nanoseconds) noexcept {
  const int kept = errno;
  const LockGuard guard(g_lock);
  const bool both = g_marks[0].recorded && g_marks[1].recorded && is_on() && !captures_are_open();
  const CUresult there = both ? driver().event_query(g_marks[1].event) : CUDA_SUCCESS;
  double between = 0;
  if (both && there == CUDA_SUCCESS) nanoseconds_between(g_marks[0].event, g_marks[1].event, &between);
  *nanoseconds = whole(between);
  errno = kept;
  return there != CUDA_ERROR_NOT_READY;
}

DeviceTimesPause::DeviceTimesPause() noexcept : guard_(g_lock) {}

void forget_stream(CUstream stream) noexcept {
  const auto number = reinterpret_cast<std::uint64_t>(stream);
  std::uint64_t& known = place_of(number);
  if (__atomic_load_n(&known, __ATOMIC_RELAXED) == number) __atomic_store_n(&known, 0, __ATOMIC_RELAXED);
}

// Events of the context are gone with it.
void forget_device_times() noexcept {
  const LockGuard guard(g_lock);
  for (LaneTimes& lane : g_lanes) {
    lane.samples = {};
    lane.first = lane.next;
    lane.former_there = lane.measures = lane.next_measures = false;
    __atomic_store_n(&lane.waiting, 0, __ATOMIC_RELAXED);
  }
  g_reference = nullptr;
  g_reference_time = 0;
  for (Mark& mark : g_marks) mark = {};
}

void forget_device_times_after_fork() noexcept {
  g_lock = 0;
  device_times_detail::open = Open::kNo;
  device_times_detail::mark_due = device_times_detail::Due::kNone;
  forget_device_times();
  switch_off();
  g_one_stream = ~std::uint64_t{0};
  g_one_lane = kNoLane;
  g_several_streams = g_several_lanes = false;
  for (std::uint64_t& stream : g_not_blocking) stream = 0;
  for (LaneCount& lane : g_counts) lane = LaneCount();
}

}  // namespace memopt::agent
