// CUDASIM_TIMELINE: what the device does when, as a file of trace events that Perfetto (ui.perfetto.dev) and
// chrome://tracing show: a row for each resource, and with each piece of work its stream and since when nothing but its
// resource held it up.
//
// Chrome's Trace Event Format, JSON Array Format: the closing bracket may be missing, so that the file of a process
// that was killed can be read too. Times are in microseconds of virtual time, three digits behind the point.
#pragma once
#include <string>

#include "device/operation.h"

namespace cudasim {

// Guarded by the driver's lock.
class TimelineFile {
 public:
  // Empty: nothing is written. A path that can't be written is named on stderr, and then nothing is either.
  explicit TimelineFile(const std::string& path);
  ~TimelineFile();
  TimelineFile(const TimelineFile&) = delete;
  TimelineFile& operator=(const TimelineFile&) = delete;

  // Its times are known. What has no resource takes no time and is left out.
  void add(const Operation& operation);
  // Nothing more comes: the array is closed.
  void finish();

 private:
  void flush();

  int file_ = -1;
  std::string text_;  // not written yet; not a FILE's, which a forked child would write again at its end
};

}  // namespace cudasim
