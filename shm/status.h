// What an agent says about itself. The agent fills a Status and answers it as JSON (docs/formats/status.md) on an
// abstract unix socket; memoptctl finds the sockets by their name and reads the answers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/units.h"

namespace memopt::shm {

// Version of the JSON answer. It grows when the meaning of an existing member changes; members may be added without.
inline constexpr int kStatusFormat = 1;

// The socket's abstract name (after the leading NUL byte): memopt-<uid>-<pid>-<16 hex digits>. The digits are random,
// so that nobody can take the name in advance; readers find it in /proc/net/unix and must check the peer's credentials
// (SO_PEERCRED: uid and pid as named).
inline constexpr std::string_view kStatusSocketPrefix = "memopt-";

// The whole request: one line. The answer is one JSON object and a newline, then the agent closes.
inline constexpr std::string_view kStatusRequest = "status 1\n";

// Upper bounds a reader may rely on.
inline constexpr std::size_t kStatusAnswerLimit = 1 << 20;

// What the agent does with the program's memory. More states come with planning.
enum class AgentState {
  kPassthrough,  // counts and forwards, changes nothing
  kDisabled,     // MEMOPT_DISABLE=1: does not even count; such a process has no status socket
};

constexpr std::string_view to_string(AgentState state) {
  switch (state) {
    case AgentState::kPassthrough:
      return "passthrough";
    case AgentState::kDisabled:
      return "disabled";
  }
  return "unknown";
}

struct EntryPointCalls {
  std::string_view symbol;  // exported name, such as cuMemAlloc_v2
  CallCount calls;
};

struct MemoryStatus {
  Bytes live;                   // device bytes that the program has allocated and not freed
  Bytes peak;                   // the largest value that live has had
  BlockCount blocks;            // live blocks
  std::uint64_t untracked = 0;  // allocations that could not be noted (the process was out of memory)
};

// A way of walking call stacks, and why this one.
struct StackWalkerStatus {
  std::string kind;    // "libunwind" or "frame-pointers"
  std::string detail;  // path of the library, or why there is none
};

// Something that a person should know about: code for programs, text for people.
struct Problem {
  std::string code;
  std::string text;
};

struct Status {
  pid_t pid = 0;
  uid_t uid = 0;
  std::string version;  // of memopt
  std::string executable;
  AgentState state = AgentState::kPassthrough;
  std::string reason;
  Nanoseconds attached_for;  // since the first call seen
  CallCount calls;
  std::vector<EntryPointCalls> entry_points;  // only those called, by symbol
  MemoryStatus memory;
  StackWalkerStatus stack_walker;
  std::string driver;  // path of the libcuda in use, empty if not known yet
  std::vector<Problem> problems;
};

}  // namespace memopt::shm
