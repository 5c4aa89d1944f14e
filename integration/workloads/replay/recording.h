// Recordings of `memoptctl record`, as the text that parse_trace() reads.
#pragma once
#include <string>

namespace replay {

// By how the file begins. False for what can't be opened.
bool is_recording(const std::string& path);

struct RecordingText {
  std::string text;
  std::string cut;  // why it ends early (the program was killed); what is there is whole. Empty: it does not
};

// Throws TraceError: operations were lost, or it has another version, or this build can't read any.
RecordingText text_of_recording(const std::string& path);

}  // namespace replay
