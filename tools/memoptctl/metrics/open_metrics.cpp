#include "tools/memoptctl/metrics/open_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "tools/memoptctl/status/status_member.h"

namespace memopt::tools {
namespace {

enum class Kind : std::uint8_t { kGauge, kCounter };

// One sample of a process: where its answer has the number, and what tells it from others of the family.
struct Source {
  const char* group;  // of the answer; empty: a member of the answer itself
  const char* member;
  const char* label = "";  // further labels, as text
};

struct Family {
  const char* name;  // without _total
  Kind kind;
  const char* unit;  // empty: none; else the end of the name
  const char* help;
  std::array<Source, 2> sources;
  double divisor = 1;
};

constexpr std::array kFamilies = std::to_array<Family>({
    {"memopt_attached_seconds",
     Kind::kGauge,
     "seconds",
     "Time since the first CUDA call that was seen.",
     {{{"", "attached_seconds"}}}},
    {"memopt_calls", Kind::kCounter, "", "CUDA calls seen.", {{{"calls", "total"}}}},
    {"memopt_live_bytes",
     Kind::kGauge,
     "bytes",
     "Device memory that the program has allocated and not freed.",
     {{{"memory", "live_bytes"}}}},
    {"memopt_live_peak_bytes", Kind::kGauge, "bytes", "The most that was live so far.", {{{"memory", "peak_bytes"}}}},
    {"memopt_footprint_bytes", Kind::kGauge, "bytes", "Device memory held for the process.", {{{"plan", "footprint"}}}},
    {"memopt_footprint_peak_bytes",
     Kind::kGauge,
     "bytes",
     "The most that was held so far.",
     {{{"plan", "footprint_peak"}}}},
    {"memopt_peak_load_bytes",
     Kind::kGauge,
     "bytes",
     "The largest sum of live blocks in an iteration.",
     {{{"plan", "peak_load"}}}},
    {"memopt_iterations", Kind::kCounter, "", "Iterations since the first plan went live.", {{{"plan", "iterations"}}}},
    {"memopt_deviations", Kind::kCounter, "", "Times that the program left its plan.", {{{"plan", "deviations"}}}},
    {"memopt_displaced",
     Kind::kCounter,
     "",
     "Allocations served beside the plan while there was one.",
     {{{"plan", "displaced"}}}},
    {"memopt_dropped_events",
     Kind::kCounter,
     "",
     "Records that found no room on their way to the planner.",
     {{{"plan", "dropped_events"}}}},
    {"memopt_waits",
     Kind::kCounter,
     "",
     "Waits of streams that were issued because bytes changed their owner.",
     {{{"plan", "waits"}}}},
    {"memopt_own_seconds_per_call",
     Kind::kGauge,
     "",
     "Processor time of memopt's own code in a call that it serves or watches; 0: not known yet.",
     {{{"plan", "own_ns_per_call"}}},
     1e9},
    {"memopt_limit_bytes",
     Kind::kGauge,
     "bytes",
     "Device memory that is to be held at most; absent without a limit, 0 when it was taken away.",
     {{{"swaps", "limit"}}}},
    {"memopt_held_bytes", Kind::kGauge, "bytes", "Device memory held of the limit.", {{{"swaps", "held"}}}},
    {"memopt_beyond_limit_bytes",
     Kind::kGauge,
     "bytes",
     "By how much the limit was passed at most.",
     {{{"swaps", "beyond"}}}},
    {"memopt_away_bytes", Kind::kGauge, "bytes", "Bytes of blocks that are in host memory now.", {{{"swaps", "away"}}}},
    {"memopt_host_bytes", Kind::kGauge, "bytes", "Page-locked host memory held for them.", {{{"swaps", "host"}}}},
    {"memopt_copied_bytes",
     Kind::kCounter,
     "bytes",
     "Bytes copied between the device and the host.",
     {{{"swaps", "copied_out", "direction=\"out\""}, {"swaps", "copied_in", "direction=\"in\""}}}},
    {"memopt_swapped_pages",
     Kind::kCounter,
     "",
     "The same in pages.",
     {{{"swaps", "swapped_out", "direction=\"out\""}, {"swaps", "swapped_in", "direction=\"in\""}}}},
    {"memopt_pinned_bytes",
     Kind::kGauge,
     "bytes",
     "Bytes of live blocks that may not leave the device.",
     {{{"swaps", "pinned_bytes"}}}},
});

// As the format has it within quotes. Text of a process is printable UTF-8 by then (common/printable.h).
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out + '"';
}

// The program's name without its folder: the whole line would be another series for every argument.
std::string program_of(const StatusRow& row) {
  const std::string first = row.command.substr(0, row.command.find(' '));
  const std::size_t slash = first.rfind('/');
  return slash == std::string::npos || slash + 1 == first.size() ? first : first.substr(slash + 1);
}

std::string labels_of(const StatusRow& row) {
  return fmt::format("pid=\"{}\",program={}", row.pid, in_quotes(program_of(row)));
}

std::string head(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
  std::string text = fmt::format("# TYPE {} {}\n", name, type);
  if (!unit.empty()) text += fmt::format("# UNIT {} {}\n", name, unit);
  return text + fmt::format("# HELP {} {}\n", name, help);
}

std::optional<std::string> value_of(const StatusRow& row, const Family& family, const Source& source) {
  const auto get = [&](auto read) {
    return *source.group == '\0' ? read(row.raw, {source.member}) : read(row.raw, {source.group, source.member});
  };
  // Whole where it is: a double has not all bytes of a large counter.
  if (family.divisor == 1) {
    if (const auto count = get([](const nlohmann::json& raw, MemberPath path) { return count_member(raw, path); })) {
      return fmt::to_string(*count);
    }
  }
  const auto number = get([](const nlohmann::json& raw, MemberPath path) { return number_member(raw, path); });
  if (!number || *number < 0) return std::nullopt;
  return fmt::format("{}", *number / family.divisor);
}

// States that docs/formats/status.md and `status` name. More may come: then all of these are 0.
constexpr std::array kStates = {"passthrough", "bootstrap", "recording", "planned", "deviating", "disabled", "idle"};

constexpr const char* kProcesses = "Processes that run under memopt and have loaded the CUDA driver.";
constexpr const char* kState = "1 for the state that the process is in.";
constexpr const char* kProblems = "Problems that memoptctl status shows.";

}  // namespace

std::string open_metrics(const Snapshot& snapshot) {
  std::string text = head("memopt_processes", "gauge", "", kProcesses);
  text += fmt::format("memopt_processes {}\n", snapshot.rows.size());
  text += head("memopt_state", "stateset", "", kState);
  for (const StatusRow& row : snapshot.rows) {
    for (const char* const state : kStates) {
      text +=
          fmt::format("memopt_state{{{},memopt_state=\"{}\"}} {}\n", labels_of(row), state, row.state == state ? 1 : 0);
    }
  }
  text += head("memopt_problems", "gauge", "", kProblems);
  for (const StatusRow& row : snapshot.rows) {
    text += fmt::format("memopt_problems{{{}}} {}\n", labels_of(row), row.problems.size());
  }
  for (const Family& family : kFamilies) {
    const bool counter = family.kind == Kind::kCounter;
    text += head(family.name, counter ? "counter" : "gauge", family.unit, family.help);
    for (const StatusRow& row : snapshot.rows) {
      for (const Source& source : family.sources) {
        if (source.member == nullptr) continue;
        const auto value = value_of(row, family, source);
        if (!value) continue;
        text += fmt::format("{}{}{{{}{}{}}} {}\n", family.name, counter ? "_total" : "", labels_of(row),
                            *source.label == '\0' ? "" : ",", source.label, *value);
      }
    }
  }
  return text + "# EOF\n";
}

std::string metrics_markdown() {
  std::string text = "| metric | type | meaning |\n|---|---|---|\n";
  const auto line = [&](std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("| `{}` | {} | {} |\n", name, type, help);
  };
  line("memopt_processes", "gauge", kProcesses);
  line("memopt_state", "state set", kState);
  line("memopt_problems", "gauge", kProblems);
  for (const Family& family : kFamilies) {
    const bool counter = family.kind == Kind::kCounter;
    std::string name = family.name + std::string(counter ? "_total" : "");
    if (family.sources[1].member != nullptr) name += "{direction}";
    line(name, counter ? "counter" : "gauge", family.help);
  }
  return text;
}

}  // namespace memopt::tools
