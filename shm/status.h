// What an agent says about itself. The agent fills a Status and answers it as JSON (docs/formats/status.md) on an
// abstract unix socket; memoptctl finds the sockets by their name and reads the answers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
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

// The whole request: one line. The answer to each is one JSON object and a newline, then the agent closes.
inline constexpr std::string_view kStatusRequest = "status 1\n";

// The other request: this, a limit (shm/sizes.h: is_new_limit), and a newline.
inline constexpr std::string_view kLimitRequest = "limit 1 ";
// Letters of the longest request, with its newline.
inline constexpr std::size_t kRequestLimit = 64;

// Upper bounds a reader may rely on.
inline constexpr std::size_t kStatusAnswerLimit = 1 << 20;

// What the agent does with the program's memory.
enum class AgentState {
  kPassthrough,  // counts and forwards, changes nothing
  kDisabled,     // MEMOPT_DISABLE=1: does not even count; such a process has no status socket
  kBootstrap,    // serves allocations from memory it holds; nothing is recorded (not yet, or no more)
  kRecording,    // serves allocations and tells the planner what the program does
  kPlanned,      // follows a plan
  kDeviating,    // has a plan that the program does not keep to just now: served dynamically
};

constexpr std::string_view to_string(AgentState state) {
  switch (state) {
    case AgentState::kPassthrough:
      return "passthrough";
    case AgentState::kDisabled:
      return "disabled";
    case AgentState::kBootstrap:
      return "bootstrap";
    case AgentState::kRecording:
      return "recording";
    case AgentState::kPlanned:
      return "planned";
    case AgentState::kDeviating:
      return "deviating";
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

// How planning goes. Counts are since the process began unless said otherwise.
struct PlanStatus {
  std::uint64_t iterations = 0;             // boundaries passed since the first plan went live
  std::uint64_t iteration_at_live = 0;      // whole iterations seen before that; 0: no plan yet
  Bytes peak_load;                          // largest sum of live bytes: of the plan's iteration, before it so far
  Bytes footprint;                          // device bytes held for the program now
  Bytes footprint_peak;                     // the largest value of it
  Bytes footprint_before;                   // the largest value of it before the first plan went live
  Bytes slab;                               // planned places together; 0: no plan
  Bytes persistent;                         // blocks that live through all iterations, not placed
  Bytes overshoot;                          // old chunks of blocks that crossed the switch, not freed yet
  std::uint64_t generation = 0;             // of the plan in use; 0: none
  std::uint64_t deviations = 0;             // times that the program left the plan
  std::uint64_t displaced = 0;              // allocations served dynamically while a plan was in use
  std::uint64_t dropped_events = 0;         // records that did not fit into a ring
  std::uint64_t waits = 0;                  // waits of a stream for an event that the plan needed
  std::uint64_t host_synchronizations = 0;  // of ours, since the plan went live
  std::uint64_t vmm_calls = 0;              // of ours, since the plan went live
  double own_ns_per_call = 0;  // processor time of our code in a call that we serve or watch, sampled; 0: unknown
  pid_t planner = 0;           // process that is connected; 0: none
  std::string planner_reason;  // why none is
  std::string note;            // what is awaited, or why planning did not help; empty: all well
};

// How a limit is kept (MEMOPT_LIMIT, `memoptctl limit`). Sums are since the process began.
struct SwapStatus {
  Bytes limit;                    // device bytes that memopt is to hold at most; 0: there is no limit any more
  bool device_full = false;       // nobody set it: the device was full, and blocks leave for that reason
  Bytes held;                     // now
  Bytes held_peak;                // at most
  Bytes beyond;                   // by how much the limit was passed at most; 0: never
  std::string beyond_why;         // the last time; empty: it was not
  Bytes away;                     // of pages whose bytes are in host memory now
  Bytes host;                     // page-locked host memory held for them
  Bytes copied_out;               // to the host
  Bytes copied_in;                // back
  std::uint64_t swapped_out = 0;  // pages
  std::uint64_t swapped_in = 0;
  std::uint64_t pinned = 0;  // live blocks that may not leave: their addresses are stored, or a graph names them
  Bytes pinned_bytes;
  std::string pinned_why;  // how many of them for which reason
  std::string unscanned;  // why addresses that kernels store are not looked for; empty: they are, once something leaves
  std::string note;       // why nothing leaves; empty: it can
  // As the plan says: swaps an iteration; how long one takes without them, and how much longer with them. 0: none are
  // planned. And how long one took on the device, the last time that some were measured; 0: that is not known yet.
  std::uint64_t planned = 0;
  Nanoseconds planned_period;
  Nanoseconds planned_added;
  Nanoseconds planned_measured;
  // What has become of planned swaps.
  std::uint64_t planned_out = 0;
  std::uint64_t planned_in = 0;
  Bytes planned_bytes_out;
  Bytes planned_bytes_in;
  std::uint64_t left_out = 0;   // the block had to stay
  std::uint64_t late = 0;       // its place was another block's when it was to come back
  std::uint64_t unplanned = 0;  // it was touched while away
};

// A framework with a pool of its own that is loaded in the process.
struct FrameworkStatus {
  std::string name;
  std::string setting;            // in force for it: "NAME=value", empty: none
  std::string set_by;             // "memopt", "user" or "nobody"
  std::optional<bool> visible;    // its allocations reach the driver one by one; absent: can't be known
  std::string text;               // for people
  std::string route;              // by which they do: "async" or "plain"; empty: they don't, or that can't be known
  std::optional<Bytes> reserved;  // by its own allocator, had it not been switched off; absent: not known
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
  std::optional<PlanStatus> plan;   // absent where nothing is planned (passthrough)
  std::optional<SwapStatus> swaps;  // absent where there never was a limit
  StackWalkerStatus stack_walker;
  std::string driver;  // path of the libcuda in use, empty if not known yet
  std::vector<FrameworkStatus> frameworks;
  std::vector<Problem> problems;
};

}  // namespace memopt::shm
