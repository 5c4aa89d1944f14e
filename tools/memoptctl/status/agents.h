// Asks every agent on this machine for its status, or one of them for something else.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "planner/json/tree.h"

namespace memopt::tools {

// What `error` says of a process that ended before it could be asked.
inline constexpr const char* kGone = "it has gone";

struct Agent {
  pid_t pid = 0;          // from the socket's name; the kernel's word for it once connected
  uid_t uid = 0;          // from the name
  std::string socket;     // abstract name, without the leading NUL byte
  nlohmann::json status;  // the agent's own words (docs/formats/status.md); null when there was no usable answer
  std::string error;      // why there was none; empty otherwise
};

// Sockets in a /proc/net/unix listing that are named as agents' are, by process.
std::vector<Agent> find_agents(const std::string& listing = "/proc/net/unix");

// Asks all at once, and fills in `status` or `error` of each within `timeout`. An answer is believed only if the kernel
// says that it comes from the user in the socket's name, and is one JSON object of the known format, of bounded size
// and depth.
void query(std::vector<Agent>& agents, std::chrono::milliseconds timeout);

// Asks only the process with that pid, by the kernel's word for it: nothing is sent to the others, which are taken out
// of the list.
void query_one(std::vector<Agent>& agents, pid_t pid, std::string_view request, std::chrono::milliseconds timeout);

}  // namespace memopt::tools
