// Captures of streams into graphs: how many are open anywhere, and whether a stream is part of one.
//
// Any thread; no lock of ours.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "agent/order/streams.h"
#include "agent/process/driver.h"

namespace memopt::agent {

bool captures_are_open() noexcept;
// Asks the driver while captures are open: a stream may have been drawn into one by an event.
bool is_captured(StreamName stream) noexcept;

// Counted before the driver begins a capture, and after it has ended one.
void capture_opened() noexcept;
void capture_closed() noexcept;

void forget_captures_after_fork() noexcept;

// While one lives, the driver lets the thread make calls that a capture on another thread would forbid.
class BesideCaptures {
 public:
  explicit BesideCaptures(const Driver& driver) noexcept : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~BesideCaptures() { driver_.exchange_capture_mode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace memopt::agent
