// Captures of streams into graphs: how many are open anywhere, and whether a stream is part of one.
//
// Any thread; no lock of ours.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "agent/order/streams.h"

namespace memopt::agent {

bool captures_are_open() noexcept;
// Asks the driver while captures are open: a stream may have been drawn into one by an event.
bool is_captured(StreamName stream) noexcept;

// Counted before the driver begins a capture, and after it has ended one.
void capture_opened() noexcept;
void capture_closed() noexcept;

void forget_captures_after_fork() noexcept;

}  // namespace memopt::agent
