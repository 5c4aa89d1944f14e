// Where the recordings' library is not built.
#include "recording.h"
#include "trace.h"

namespace replay {

bool is_recording(const std::string&) { return false; }

RecordingText text_of_recording(const std::string& path) {
  throw TraceError(
      path + ": this replay was built without the reader of recordings; memoptctl show --trace makes text of them");
}

}  // namespace replay
