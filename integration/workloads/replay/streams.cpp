#include "streams.h"

#include <algorithm>

#include "driver.h"

namespace replay {

Streams::Streams(unsigned count, bool legacy) : lanes_(count) {
  for (Lane& lane : lanes_) {
    if (!legacy) CHECK_DRIVER(cuStreamCreate(&lane.handle, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuEventCreate(&lane.event, CU_EVENT_DISABLE_TIMING));
    lane.seen.resize(count);
  }
}

Streams::~Streams() {
  for (Lane& lane : lanes_) {
    CHECK_DRIVER(cuEventDestroy(lane.event));
    if (lane.handle != nullptr) CHECK_DRIVER(cuStreamDestroy(lane.handle));
  }
}

void Streams::order_after(unsigned stream, Work work) {
  Lane& here = lanes_[stream];
  if (work.stream == stream || here.seen[work.stream] >= work.number) return;
  // Recorded behind all that is in the other stream now: no less than asked for.
  Lane& other = lanes_[work.stream];
  CHECK_DRIVER(cuEventRecord(other.event, other.handle));
  CHECK_DRIVER(cuStreamWaitEvent(here.handle, other.event, 0));
  here.seen[work.stream] = other.issued;
  for (unsigned i = 0; i < count(); ++i) {
    if (i != stream) here.seen[i] = std::max(here.seen[i], other.seen[i]);
  }
}

void Streams::synchronize() {
  for (unsigned i = 1; i < count(); ++i) order_after(0, {i, lanes_[i].issued});
  CHECK_DRIVER(cuStreamSynchronize(lanes_[0].handle));
  for (Lane& lane : lanes_) {
    for (unsigned i = 0; i < count(); ++i) lane.seen[i] = lanes_[i].issued;
  }
}

}  // namespace replay
