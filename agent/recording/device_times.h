// How long the device takes for the program's launches, copies and memsets, and how long it idles before them: while
// operations are recorded, one in so many of each thread is put between two timing events on its own stream, and what
// they say follows in a record (kKernelTime) once the device is there.
//
// Nobody ever waits: events are asked for when the thread has measured another operation, or has waited for the device
// itself. An event has its place in the order of its stream and holds nobody else up; on the legacy default stream,
// which blocking streams are ordered with, an event is a place of its own in that order, so there nothing is measured
// as soon as several threads and such streams are seen. Nothing is measured while any stream is being captured, and
// never again after the driver has refused something. What does not fit is left out.
//
// Any thread, without the arena's lock but for marks; errno is kept. Two loads for an operation that is not recorded.
#pragma once

#include <cstdint>

#include "agent/order/streams.h"
#include "agent/process/spin_lock.h"

namespace memopt::agent {

// One operation of `every` is measured; 0: none. From the first recording on; it may change at any time.
void start_device_times(std::uint32_t every) noexcept;

// The calling thread's operation, which has been recorded as `sequence`, is about to be queued on the stream: between
// our own waits and the driver's call. operation_queued() follows. 0: one that is not recorded, or not to be measured.
void time_operation(StreamName stream, std::uint64_t sequence) noexcept;

namespace device_times_detail {
enum class Open : std::uint32_t { kNo, kYes, kFailed };
extern constinit thread_local Open open __attribute__((tls_model("initial-exec")));
void end() noexcept;
}  // namespace device_times_detail

// At the end of each hook that queues something.
inline void operation_queued() noexcept {
  if (device_times_detail::open != device_times_detail::Open::kNo) [[unlikely]]
    device_times_detail::end();
}
// Before that: the operation is not to be measured, as the driver has refused it, or as it is one of several in a call.
inline void forget_operation() noexcept {
  if (device_times_detail::open != device_times_detail::Open::kNo) [[unlikely]]
    device_times_detail::open = device_times_detail::Open::kFailed;
}

// The host has waited for the device: what has been measured may be there.
void look_for_device_times() noexcept;

// Between two operations of the program, recorded or not, which one thread begins one after the other. One pair at a
// time.
// The calling thread's next operation is the first of the two, or the second.
void mark_operation(bool first) noexcept;
namespace device_times_detail {
enum class Due : std::uint8_t { kNone, kFirst, kSecond };
extern constinit thread_local Due mark_due __attribute__((tls_model("initial-exec")));
void leave_mark(StreamName stream) noexcept;
}  // namespace device_times_detail
// The calling thread's operation is about to be queued, as for time_operation().
inline void leave_mark_if_due(StreamName stream) noexcept {
  if (device_times_detail::mark_due != device_times_detail::Due::kNone) [[unlikely]]
    device_times_detail::leave_mark(stream);
}
// How long it took the device from the beginning of the first one to that of the second, in `*nanoseconds`; 0: that is
// not known. False: the device is not there yet.
bool time_between_marks(std::uint64_t* nanoseconds) noexcept;

// While one lives, no events of ours are recorded or asked for: for a change of what is being captured.
class DeviceTimesPause {
 public:
  DeviceTimesPause() noexcept;

 private:
  LockGuard guard_;
};

// The stream is about to be destroyed: its handle may come to mean another.
void forget_stream(CUstream stream) noexcept;

// The context, and all events with it, is gone; or the process was forked.
void forget_device_times() noexcept;
void forget_device_times_after_fork() noexcept;

}  // namespace memopt::agent
