#include "tools/memoptctl/status/status_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/status/status_member.h"

namespace memopt::tools {
namespace {

std::string amount(const std::optional<std::uint64_t>& bytes) {
  return bytes ? bytes_text(static_cast<double>(*bytes)) : "-";
}

void read_plan(const nlohmann::json& status, StatusRow& row) {
  row.iteration = count_member(status, {"plan", "iterations"});
  if (const auto live = count_member(status, {"plan", "iteration_at_live"}); row.iteration && live) {
    *row.iteration += *live;
  }
  row.footprint = count_member(status, {"plan", "footprint"});
  row.peak_load = count_member(status, {"plan", "peak_load"});
  row.deviations = count_member(status, {"plan", "deviations"});
  const nlohmann::json* ratio = member(status, {"plan", "ratio"});
  if (ratio != nullptr && ratio->is_number()) row.ratio = printable(fmt::format("{:.3f}", ratio->get<double>()), 12);
  for (const char* reason : {"note", "planner_reason"}) {
    std::string text = text_member(status, {"plan", reason});
    const bool said = std::find(row.why_not.begin(), row.why_not.end(), text) != row.why_not.end();
    if (!text.empty() && !said) row.why_not.push_back(std::move(text));
  }
  if (const auto dropped = count_member(status, {"plan", "dropped_events"}); dropped && *dropped != 0) {
    row.why_not.push_back(
        fmt::format("{} events were dropped (MEMOPT_RING is too small, or the planner too slow): what they belong to "
                    "is not planned",
                    *dropped));
  }
}

void read_swaps(const nlohmann::json& status, StatusRow& row) {
  const auto bytes = [&](const char* name) { return count_member(status, {"swaps", name}); };
  const auto limit = bytes("limit");
  if (!limit) return;
  const nlohmann::json full = status.at("swaps").value("device_full", nlohmann::json());
  std::string line = fmt::format("{} {}: {} held, {} away; {} out, {} in", full == true ? "device full at" : "limit",
                                 *limit == 0 ? "none" : precise_amount(limit), precise_amount(bytes("held")),
                                 precise_amount(bytes("away")), precise_amount(bytes("copied_out")),
                                 precise_amount(bytes("copied_in")));
  if (const auto pinned = bytes("pinned"); pinned && *pinned != 0) {
    line += fmt::format("; {} block{} ({}) may not leave", *pinned, *pinned == 1 ? "" : "s",
                        precise_amount(bytes("pinned_bytes")));
    if (const std::string why = text_member(status, {"swaps", "pinned_why"}); !why.empty()) line += ": " + why;
  }
  row.swaps.push_back(std::move(line));
  const auto planned = [&](const char* name) { return count_member(status, {"swaps", "planned", name}).value_or(0); };
  if (const std::uint64_t count = planned("swaps"); count != 0) {
    constexpr double kMillisecond = 1e6;
    std::string plan = fmt::format("{} planned swaps an iteration, expected to add {:.3f} ms to {:.3f}", count,
                                   static_cast<double>(planned("added_ns")) / kMillisecond,
                                   static_cast<double>(planned("period_ns")) / kMillisecond);
    if (const std::uint64_t measured = planned("measured_ns"); measured != 0) {
      plan += fmt::format("; it takes {:.3f}", static_cast<double>(measured) / kMillisecond);
    }
    const std::uint64_t otherwise = planned("left_out") + planned("late") + planned("unplanned");
    if (otherwise != 0) plan += fmt::format("; {} times not as planned", otherwise);
    row.swaps.push_back(std::move(plan));
  }
  if (const auto beyond = bytes("beyond"); beyond && *beyond != 0) {
    const std::string why = text_member(status, {"swaps", "beyond_why"});
    row.swaps.push_back(
        fmt::format("the limit was passed by {} at most{}{}", precise_amount(beyond), why.empty() ? "" : ": ", why));
  }
  if (const std::string note = text_member(status, {"swaps", "note"}); !note.empty()) {
    row.swaps.push_back("nothing leaves: " + note);
  }
  if (const std::string why = text_member(status, {"swaps", "unscanned"}); !why.empty()) {
    row.swaps.push_back("addresses that kernels store in device memory are not looked for: " + why);
  }
}

StatusRow row_of(const Agent& agent) {
  StatusRow row;
  row.pid = agent.pid;
  row.command = command_of(agent.pid);
  if (!agent.error.empty()) {
    row.state = "?";
    row.problems.push_back("no status: " + agent.error);
    return row;
  }
  const nlohmann::json& status = agent.status;
  row.raw = status;
  row.state = text_member(status, {"state"});
  row.why = text_member(status, {"reason"});
  row.calls = count_member(status, {"calls", "total"});
  row.bytes_live = count_member(status, {"memory", "live_bytes"});
  row.bytes_live_peak = count_member(status, {"memory", "peak_bytes"});
  row.stack_walker = text_member(status, {"stack_walker", "kind"});
  read_plan(status, row);
  read_swaps(status, row);
  if (const nlohmann::json* loaded = member(status, {"frameworks"}); loaded != nullptr && loaded->is_array()) {
    for (const nlohmann::json& framework : *loaded) {
      const std::string text = text_member(framework, {"name"}) + ": " + text_member(framework, {"text"});
      const nlohmann::json* visible = member(framework, {"visible"});
      if (visible != nullptr && visible->is_boolean() && !visible->get<bool>()) {
        row.problems.push_back(text + "; its allocations are not seen one by one (docs/frameworks.md)");
      } else {
        row.frameworks.push_back(text);
      }
      const std::string route = text_member(framework, {"route"});
      const auto reserved = count_member(framework, {"reserved"});
      if (reserved && row.footprint && !route.empty()) {
        row.frameworks.push_back(fmt::format("{} ({}): its caching allocator would have reserved {}; memopt holds {}",
                                             text_member(framework, {"name"}), printable(route, 16), amount(reserved),
                                             amount(row.footprint)));
      }
    }
  }
  if (row.command == "?") row.command = text_member(status, {"executable"});
  if (row.calls == std::uint64_t{0}) row.problems.emplace_back("attached, but no call seen");
  if (const nlohmann::json* problems = member(status, {"problems"}); problems != nullptr && problems->is_array()) {
    for (const nlohmann::json& problem : *problems) {
      std::string text = text_member(problem, {"text"});
      row.problems.push_back(text.empty() ? text_member(problem, {"code"}) : std::move(text));
    }
  }
  return row;
}

// A process with memopt and a driver mapped, of which no agent is known.
StatusRow row_of(const Process& process, bool parent_is_served) {
  StatusRow row;
  row.pid = process.pid;
  row.command = process.command;
  if (process.disabled) {
    row.state = "disabled";
    row.why = "started with MEMOPT_DISABLE";
  } else if (process.other_network_namespace) {
    row.state = "?";
    row.problems.emplace_back(
        "its status can't be seen from here: it runs in another network namespace (a container?); run memoptctl there");
  } else if (parent_is_served) {
    row.state = "idle";
    row.why = fmt::format("forked from {}, has not called CUDA itself", process.parent);
  } else {
    row.state = "no call";
    row.problems.emplace_back(
        "attached, but no call seen: either it has loaded the CUDA driver and not called it yet, or its calls go past "
        "memopt "
        "(a library opened with RTLD_DEEPBIND or dlmopen, or one that looks up the driver by ELF tables of its own)");
  }
  return row;
}

nlohmann::json to_json(const StatusRow& row) {
  nlohmann::json json = {{"pid", row.pid},  {"command", row.command},   {"state", row.state},
                         {"why", row.why},  {"problems", row.problems}, {"stack_walker", row.stack_walker},
                         {"agent", row.raw}};
  json["why_not"] = row.why_not;
  json["iteration"] = row.iteration ? nlohmann::json(*row.iteration) : nlohmann::json();
  json["footprint"] = row.footprint ? nlohmann::json(*row.footprint) : nlohmann::json();
  json["calls"] = row.calls ? nlohmann::json(*row.calls) : nlohmann::json();
  json["live_bytes"] = row.bytes_live ? nlohmann::json(*row.bytes_live) : nlohmann::json();
  json["peak_bytes"] = row.bytes_live_peak ? nlohmann::json(*row.bytes_live_peak) : nlohmann::json();
  return json;
}

void say_none(const StatusOptions& options, std::size_t unreadable) {
  if (options.pid) {
    say_not_seen(*options.pid);
  } else {
    fmt::print(stderr,
               "memoptctl: no process under memopt has loaded the CUDA driver\n{}"
               "start one by: memoptctl run -- COMMAND\n",
               note_on_others(unreadable));
  }
}

}  // namespace

void say_not_seen(pid_t pid) {
  const std::string why = why_out_of_reach(pid, ::geteuid());
  if (why.empty()) {
    fmt::print(stderr, "memoptctl: process {} does not run under memopt, or has not loaded the CUDA driver\n", pid);
  } else {
    fmt::print(stderr, "memoptctl: process {}: {}\n", pid, why);
  }
}

std::string precise_amount(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return "-";
  auto number = static_cast<double>(*bytes);
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; number >= 1024 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  const int decimals = unit == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", number, decimals, kUnits[unit]);
}

std::vector<StatusRow> join(const std::vector<Agent>& agents, const Scan& scan) {
  std::vector<StatusRow> rows;
  const auto served = [&](pid_t pid) {
    return std::any_of(agents.begin(), agents.end(), [&](const Agent& agent) { return agent.pid == pid; });
  };
  for (const Agent& agent : agents) rows.push_back(row_of(agent));
  for (const Process& process : scan.processes) {
    if (process.driver && !served(process.pid)) rows.push_back(row_of(process, served(process.parent)));
  }
  std::sort(rows.begin(), rows.end(), [](const StatusRow& a, const StatusRow& b) { return a.pid < b.pid; });
  return rows;
}

std::string table(const std::vector<StatusRow>& rows) {
  constexpr std::size_t kColumns = 11;
  using Line = std::array<std::string, kColumns>;
  std::vector<Line> lines = {{"PID", "COMMAND", "STATE", "ITERATION", "CALLS", "LIVE", "PEAK LOAD", "FOOTPRINT",
                              "RATIO", "DEVIATIONS", "STACK WALKER"}};
  const auto number = [](const std::optional<std::uint64_t>& value) { return value ? fmt::to_string(*value) : "-"; };
  for (const StatusRow& row : rows) {
    lines.push_back({fmt::to_string(row.pid), printable(row.command, 48),
                     row.state.empty() ? "-" : printable(row.state, 16), number(row.iteration), number(row.calls),
                     amount(row.bytes_live), amount(row.peak_load ? row.peak_load : row.bytes_live_peak),
                     amount(row.footprint), row.ratio.empty() ? "-" : row.ratio, number(row.deviations),
                     row.stack_walker.empty() ? "-" : printable(row.stack_walker, 24)});
  }
  std::array<std::size_t, kColumns> widths{};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  const auto right = [](std::size_t column) { return column == 0 || (column >= 3 && column <= 9); };
  std::string text;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string gap(widths[i] - width(lines[n][i]), ' ');
      line += right(i) ? gap + lines[n][i] : lines[n][i] + gap;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (n == 0) continue;
    const StatusRow& row = rows[n - 1];
    const std::string indent(widths[0] + 2, ' ');
    if (!row.why.empty()) text += indent + row.why + "\n";
    for (const std::string& framework : row.frameworks) text += indent + framework + "\n";
    for (const std::string& kept : row.swaps) text += indent + kept + "\n";
    for (const std::string& why : row.why_not) text += indent + "why: " + why + "\n";
    for (const std::string& problem : row.problems) text += indent + "problem: " + problem + "\n";
  }
  return text;
}

Snapshot take_snapshot(const std::optional<pid_t>& only, std::chrono::milliseconds patience) {
  std::vector<Agent> agents = find_agents();
  // Other users' agents do not answer us: not worth a connection.
  if (::geteuid() != 0) std::erase_if(agents, [](const Agent& agent) { return agent.uid != ::geteuid(); });
  query(agents, patience);
  // Processes that ended while they were asked are no news.
  std::erase_if(agents, [](const Agent& agent) { return agent.error == kGone; });
  const Scan scan = scan_processes();
  Snapshot taken{join(agents, scan), scan.unreadable};
  if (only) std::erase_if(taken.rows, [&](const StatusRow& row) { return row.pid != *only; });
  return taken;
}

nlohmann::json to_json(const Snapshot& snapshot) {
  nlohmann::json processes = nlohmann::json::array();
  for (const StatusRow& row : snapshot.rows) processes.push_back(to_json(row));
  return {{"format", 1}, {"processes", processes}, {"unreadable_processes", snapshot.unreadable}};
}

std::string note_on_others(std::size_t unreadable) {
  return unreadable == 0 ? "" : fmt::format("processes of other users that could not be looked at: {}\n", unreadable);
}

int status(const StatusOptions& options) {
  const Snapshot found = take_snapshot(options.pid);
  if (options.json) {
    fmt::print("{}\n", to_json(found).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!found.rows.empty()) {
    fmt::print("{}{}", table(found.rows), note_on_others(found.unreadable));
  }
  if (found.rows.empty()) {
    if (!options.json) say_none(options, found.unreadable);
    return kExitNone;
  }
  const bool problem =
      std::any_of(found.rows.begin(), found.rows.end(), [](const StatusRow& row) { return !row.problems.empty(); });
  return problem ? kExitProblem : 0;
}

}  // namespace memopt::tools
