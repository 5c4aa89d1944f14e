// `memoptctl status`: what the agents say, beside what /proc says.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/json/tree.h"
#include "tools/memoptctl/status/agents.h"
#include "tools/memoptctl/status/processes.h"

namespace memopt::tools {

inline constexpr int kExitNone = 3;
inline constexpr int kExitProblem = 4;
inline constexpr std::chrono::milliseconds kStatusPatience{2000};

struct StatusOptions {
  bool json = false;
  std::optional<pid_t> pid;
  std::optional<double> watch;  // seconds between two looks (watch_command.h); none: one look
};

// Three digits, so that what is held can be told from its limit; "-" for none.
std::string precise_amount(const std::optional<std::uint64_t>& bytes);

// One line of the table.
struct StatusRow {
  pid_t pid = 0;
  std::string command;
  std::string state;                    // as the agent says; "disabled", "idle" or "?" where it says nothing
  std::string why;                      // may be empty
  std::vector<std::string> why_not;     // why planning did not help, or not yet; empty: it does, or none was tried
  std::vector<std::string> frameworks;  // loaded, and what was set for them
  std::vector<std::string> swaps;       // how a limit is kept; empty: there is none, or the agent is older than limits
  std::vector<std::string> problems;    // empty: all well
  std::optional<std::uint64_t> calls, bytes_live, bytes_live_peak;
  // Of the plan; empty where the agent does not plan.
  std::optional<std::uint64_t> iteration, footprint, peak_load, deviations;
  std::string ratio;  // footprint / peak load, ready to be shown
  std::string stack_walker;
  nlohmann::json raw;  // the agent's answer, or null
};

// Joins both views by process. Processes with memopt but without a driver, an agent or a problem (every shell of a
// script that was started under memopt) are left out. Agents of other users that did not let us ask are left out too.
std::vector<StatusRow> join(const std::vector<Agent>& agents, const Scan& scan);

// The table, with a line for each problem under it.
std::string table(const std::vector<StatusRow>& rows);

// What is known of all processes at one moment.
struct Snapshot {
  std::vector<StatusRow> rows;  // by pid
  std::size_t unreadable = 0;   // processes of other users, which may not be looked at
};

// Asks all agents of this user, or of all where root asks; only that process if one is given. Takes `patience` at most,
// where one does not answer.
Snapshot take_snapshot(const std::optional<pid_t>& only, std::chrono::milliseconds patience = kStatusPatience);

// As `status --json` prints it.
nlohmann::json to_json(const Snapshot& snapshot);

// A line, or nothing.
std::string note_on_others(std::size_t unreadable);

// Says on standard error why nothing is known of a process.
void say_not_seen(pid_t pid);

int status(const StatusOptions& options);

}  // namespace memopt::tools
