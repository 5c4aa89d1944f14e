// What a recording says about itself: the JSON at its beginning.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memopt::planner {

struct RecordingInfo {
  std::string program;                 // executable, as its agent says
  std::vector<std::string> arguments;  // of the command that was started, itself first
  std::string version;                 // of the memopt that wrote the file
  std::string agent_version;           // of the library in the program
  std::string device;                  // if known, else empty
  pid_t pid = 0;                       // as the recorder saw it
  std::uint64_t started = 0;           // when recording began: nanoseconds since 1970, UTC
};

// Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const RecordingInfo& info);

// Tolerant: members that are missing or of another type stay empty. False where `text` is no JSON object at all, or is
// nested deeply.
bool from_json(std::string_view text, RecordingInfo& info);

}  // namespace memopt::planner
