#include "agent/status/status_json.h"

#include <fmt/format.h>

#include <iterator>

namespace memopt::agent {
namespace {

// Length of the valid UTF-8 sequence that begins at text[at], or 0 (RFC 3629: no overlong forms, no surrogates, up to
// U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                    ? 1
                             : lead >= 0xC2 && lead <= 0xDF ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF0 && byte(1) < 0x90) ||
      (lead == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char first = text[at];
    if (length == 0) {
      out += "\\ufffd";
      ++at;
      continue;
    }
    if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(first));
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out += '"';
}

// Footprint over peak load in thousandths, rounded; null while there is no load.
std::string ratio(const shm::PlanStatus& plan) {
  const std::uint64_t load = plan.peak_load.value();
  if (load == 0) return "null";
  // Wide, so that no pair of sizes overflows.
  const auto thousandths =
      static_cast<std::uint64_t>((static_cast<unsigned __int128>(plan.footprint.value()) * 1000 + load / 2) / load);
  return fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
}

std::string plan_json(const shm::PlanStatus& plan) {
  std::string out;
  const auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  add(R"({{"iterations": {}, "iteration_at_live": {}, "peak_load": {}, "footprint": {}, "footprint_peak": {}, )",
      plan.iterations, plan.iteration_at_live, plan.peak_load.value(), plan.footprint.value(),
      plan.footprint_peak.value());
  add(R"("footprint_before": {}, "ratio": {}, "slab": {}, "persistent": {}, "overshoot": {}, "generation": {}, )",
      plan.footprint_before.value(), ratio(plan), plan.slab.value(), plan.persistent.value(), plan.overshoot.value(),
      plan.generation);
  add(R"("deviations": {}, "displaced": {}, "dropped_events": {}, "waits": {}, "host_synchronizations": {}, )",
      plan.deviations, plan.displaced, plan.dropped_events, plan.waits, plan.host_synchronizations);
  add(R"("vmm_calls": {}, "own_ns_per_call": {:.1f}, "planner": {}, "planner_reason": {}, "note": {}}})",
      plan.vmm_calls, plan.own_ns_per_call, plan.planner > 0 ? fmt::to_string(plan.planner) : "null",
      quoted(plan.planner_reason), quoted(plan.note));
  return out;
}

std::string swaps_json(const shm::SwapStatus& swaps) {
  std::string out;
  const auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  add(R"({{"limit": {}, "device_full": {}, "held": {}, "held_peak": {}, "beyond": {}, "beyond_why": {}, "away": {}, "host": {}, )",
      swaps.limit.value(), swaps.device_full, swaps.held.value(), swaps.held_peak.value(), swaps.beyond.value(),
      quoted(swaps.beyond_why), swaps.away.value(), swaps.host.value());
  add(R"("copied_out": {}, "copied_in": {}, "swapped_out": {}, "swapped_in": {}, "pinned": {}, "pinned_bytes": {}, )"
      R"("pinned_why": {}, "unscanned": {}, )",
      swaps.copied_out.value(), swaps.copied_in.value(), swaps.swapped_out, swaps.swapped_in, swaps.pinned,
      swaps.pinned_bytes.value(), quoted(swaps.pinned_why), quoted(swaps.unscanned));
  add(R"("note": {}, "planned": {{"swaps": {}, "period_ns": {}, "added_ns": {}, "measured_ns": {}, "out": {}, "in": {}, )",
      quoted(swaps.note), swaps.planned, swaps.planned_period.value(), swaps.planned_added.value(),
      swaps.planned_measured.value(), swaps.planned_out, swaps.planned_in);
  add(R"("bytes_out": {}, "bytes_in": {}, "left_out": {}, "late": {}, "unplanned": {}}}}})",
      swaps.planned_bytes_out.value(), swaps.planned_bytes_in.value(), swaps.left_out, swaps.late, swaps.unplanned);
  return out;
}

}  // namespace

std::string to_json(const shm::Status& status) {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  std::string out;
  const auto add = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  add(R"({{"format": {}, "version": {}, "pid": {}, "uid": {}, "executable": {}, )", shm::kStatusFormat,
      quoted(status.version), status.pid, status.uid, quoted(status.executable));
  add(R"("state": {}, "reason": {}, "attached_seconds": {}.{:09}, )", quoted(shm::to_string(status.state)),
      quoted(status.reason), status.attached_for.value() / kNanosecondsPerSecond,
      status.attached_for.value() % kNanosecondsPerSecond);
  add(R"("calls": {{"total": {}, "entry_points": {{)", status.calls.value());
  const char* separator = "";
  for (const shm::EntryPointCalls& entry : status.entry_points) {
    add("{}{}: {}", separator, quoted(entry.symbol), entry.calls.value());
    separator = ", ";
  }
  add(R"(}}}}, "memory": {{"live_bytes": {}, "peak_bytes": {}, "live_blocks": {}, "untracked": {}}}, )",
      status.memory.live.value(), status.memory.peak.value(), status.memory.blocks.value(), status.memory.untracked);
  if (status.plan) add(R"("plan": {}, )", plan_json(*status.plan));
  if (status.swaps) add(R"("swaps": {}, )", swaps_json(*status.swaps));
  add(R"("stack_walker": {{"kind": {}, "detail": {}}}, "driver": {}, "frameworks": [)",
      quoted(status.stack_walker.kind), quoted(status.stack_walker.detail), quoted(status.driver));
  separator = "";
  for (const shm::FrameworkStatus& framework : status.frameworks) {
    add(R"({}{{"name": {}, "setting": {}, "set_by": {}, "visible": {}, "text": {}, )", separator,
        quoted(framework.name), quoted(framework.setting), quoted(framework.set_by),
        !framework.visible   ? "null"
        : *framework.visible ? "true"
                             : "false",
        quoted(framework.text));
    add(R"("route": {}, "reserved": {}}})", framework.route.empty() ? "null" : quoted(framework.route),
        framework.reserved ? fmt::to_string(framework.reserved->value()) : "null");
    separator = ", ";
  }
  out += R"(], "problems": [)";
  separator = "";
  for (const shm::Problem& problem : status.problems) {
    add(R"({}{{"code": {}, "text": {}}})", separator, quoted(problem.code), quoted(problem.text));
    separator = ", ";
  }
  out += "]}\n";
  return out;
}

std::string error_json(std::string_view message) {
  return fmt::format("{{\"format\": {}, \"error\": {}}}\n", shm::kStatusFormat, quoted(message));
}

}  // namespace memopt::agent
