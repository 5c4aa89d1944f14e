#include "recording.h"

#include <fstream>
#include <sstream>

#include "planner/recording/format.h"
#include "planner/recording/reader.h"
#include "planner/recording/summary.h"
#include "planner/recording/trace.h"
#include "trace.h"

namespace replay {

using memopt::planner::RecordingReader;

bool is_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t magic = 0;
  file.read(reinterpret_cast<char*>(&magic), sizeof(magic));
  return file && magic == memopt::planner::recording::kFileMagic;
}

RecordingText text_of_recording(const std::string& path) try {
  RecordingReader first = RecordingReader::open(path);
  const memopt::planner::Summary summary = memopt::planner::summarise(first);
  if (summary.missing != 0) {
    throw TraceError(path + ": " + std::to_string(summary.missing) +
                     " operations were lost while recording: what is left is no trace to replay");
  }
  RecordingReader second = RecordingReader::open(path);
  std::ostringstream text;
  const memopt::planner::TraceCounts counts = memopt::planner::write_trace(second, summary.clock, text);
  if (counts.lines == 0) throw TraceError(path + ": a recording without operations on blocks");
  return {text.str(), first.damage() ? memopt::planner::to_string(*first.damage()) : std::string()};
} catch (const memopt::planner::RecordingError& error) {
  throw TraceError(path + ": " + error.what());
}

}  // namespace replay
