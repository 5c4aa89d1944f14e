#include "tools/memoptctl/recording/show_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <initializer_list>
#include <utility>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/recording/record_text.h"

namespace memopt::tools {
namespace {

using planner::BlockGroup;
using planner::KernelSummary;
using planner::Summary;
using shm::RecordKind;

constexpr std::size_t kShownKernels = 10;
constexpr std::size_t kShownFrames = 8;
constexpr std::size_t kFrameWidth = 160;
constexpr int kBarWidth = 40;

std::string amount(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string duration(std::uint64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) / 1e9;
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} µs", seconds * 1e6);
}

std::string date(std::uint64_t nanoseconds) {
  const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm parts{};
  if (nanoseconds == 0 || ::gmtime_r(&seconds, &parts) == nullptr) return "unknown";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts);
}

std::uint64_t count(const Summary& summary, RecordKind kind) { return summary.counts[static_cast<std::size_t>(kind)]; }

std::string command(const planner::RecordingInfo& info) {
  std::string all;
  for (const std::string& argument : info.arguments) all += (all.empty() ? "" : " ") + argument;
  return printable(all);
}

std::string name_of(const KernelSummary& kernel) {
  return kernel.name.empty() ? std::string("(not named)") : printable(kernel.name, 80);
}

// The frames of a group's stack, innermost first; only the return address where the stack is not in the recording.
std::vector<std::string> frames(const Shown& shown, const BlockGroup& group) {
  const Summary& summary = shown.summary;
  std::vector<std::string> names;
  const auto stack = summary.stacks.find(group.stack);
  if (stack == summary.stacks.end()) {
    if (group.return_address != 0) names.push_back(shown.symbols->of_call(group.return_address));
    return names;
  }
  for (const std::uint64_t address : stack->second) names.push_back(shown.symbols->of_call(address));
  return names;
}

std::string stack_text(const std::vector<std::string>& names, const char* what) {
  std::string text;
  for (std::size_t n = 0; n < std::min(names.size(), kShownFrames); ++n)
    text += "      " + printable(names[n], kFrameWidth) + "\n";
  if (names.size() > kShownFrames) text += fmt::format("      and {} more {}\n", names.size() - kShownFrames, what);
  return text;
}

std::string completeness(const Summary& summary) {
  std::string text = summary.missing == 0 ? "no record is missing"
                                          : fmt::format("{} records are missing, in {} places (dropped by full rings)",
                                                        summary.missing, summary.gaps);
  if (summary.disordered != 0) text += fmt::format("; {} are out of order", summary.disordered);
  if (summary.limited) text += "; there are more blocks, stacks or names than are looked at";
  return text +
         (summary.damage ? "; the file is not whole: " + planner::to_string(*summary.damage) : "; the file is whole");
}

std::string live_curve(const Summary& summary) {
  if (summary.peak_load == 0) return "";
  std::string text = "live bytes, largest between these records:\n";
  for (const planner::LivePoint& point : summary.live) {
    const auto bar =
        static_cast<std::size_t>(static_cast<double>(point.peak) / static_cast<double>(summary.peak_load) * kBarWidth);
    text += fmt::format("  {:>10} - {:<10} {:>10}  {}\n", point.first, point.last, amount(point.peak),
                        std::string(bar, '#'));
  }
  return text;
}

std::string largest_blocks(const Shown& shown) {
  const Summary& summary = shown.summary;
  if (summary.groups.empty() || shown.stacks == 0) return "";
  std::string text = "largest blocks:\n";
  for (std::size_t i = 0; i < std::min(shown.stacks, summary.groups.size()); ++i) {
    const BlockGroup& group = summary.groups[i];
    text += fmt::format("  {} × {}\n", amount(group.bytes), group.count);
    text += stack_text(summary.python.names(group.python), "of Python");
    text += stack_text(frames(shown, group), "of native code");
  }
  return text;
}

std::string kernels(const Summary& summary) {
  if (summary.kernels.empty()) return "";
  std::string text = fmt::format("kernels: {}\n", summary.kernels.size());
  for (std::size_t i = 0; i < std::min(kShownKernels, summary.kernels.size()); ++i) {
    const KernelSummary& kernel = summary.kernels[i];
    text += fmt::format("  {:>10}  {}", kernel.launches, name_of(kernel));
    if (kernel.timed != 0) text += fmt::format("  ({} each)", duration(kernel.nanoseconds / kernel.timed));
    text += "\n";
  }
  if (summary.kernels.size() > kShownKernels) {
    text += fmt::format("              and {} more\n", summary.kernels.size() - kShownKernels);
  }
  return text;
}

std::string iteration(const IterationSearch& search) {
  if (!search.found) return "iteration: none found" + (search.note.empty() ? "" : ": " + printable(search.note)) + "\n";
  const ShownIteration& found = *search.found;
  return fmt::format(
      "iteration: {} operations, {} planned mallocs, from record {}, known at record {}\n"
      "           peak load {}, planned places {}, blocks that stay {}\n",
      found.operations, found.mallocs, found.first, found.detected_at, amount(found.peak_load),
      amount(found.slab_bytes), amount(found.persistent_bytes));
}

}  // namespace

std::string to_text(const Shown& shown) {
  const Summary& summary = shown.summary;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<11}{}\n", fmt::format("{}:", name), value);
  };
  line("program", printable(shown.info.program) + fmt::format(" (process {})", shown.info.pid));
  line("command", command(shown.info));
  line("recorded", date(shown.info.started) + ", by memopt " + printable(shown.info.version, 32) +
                       (shown.info.device.empty() ? "" : ", on " + printable(shown.info.device, 64)));
  line("duration", duration(summary.nanoseconds) + (summary.clock.known() ? "" : " (in ticks: no clock was recorded)"));
  line("threads", fmt::format("{}, streams: {}", summary.lanes, summary.streams));
  line("records", fmt::format("{}; {}", summary.records, completeness(summary)));
  for (std::uint8_t kind = 1; kind <= shm::kLastRecordKind; ++kind) {
    if (summary.counts[kind] == 0) continue;
    text += fmt::format("  {:>10}  {}\n", summary.counts[kind], kind_name(static_cast<RecordKind>(kind)));
  }
  line("memory",
       fmt::format("{} mallocs of {} together, {} frees; peak load {} in {} blocks at record {}; at the end {} in {}",
                   count(summary, RecordKind::kMalloc), amount(summary.malloc_bytes), count(summary, RecordKind::kFree),
                   amount(summary.peak_load), summary.peak_blocks, summary.peak_sequence, amount(summary.live_bytes),
                   summary.live_blocks));
  if (summary.unknown_frees != 0) {
    text += fmt::format("  {:>10}  frees of blocks whose malloc is not in the recording\n", summary.unknown_frees);
  }
  text += live_curve(summary);
  text += largest_blocks(shown);
  text += kernels(summary);
  if (summary.blind_launches != 0) {
    text += fmt::format("  {:>10}  launches whose parameters could not be read\n", summary.blind_launches);
  }
  return text + iteration(shown.iteration);
}

nlohmann::json to_json(const Shown& shown) {
  using nlohmann::json;
  const Summary& summary = shown.summary;
  json counts = json::object();
  for (std::uint8_t kind = 1; kind <= shm::kLastRecordKind; ++kind) {
    counts[std::string(kind_name(static_cast<RecordKind>(kind)))] = summary.counts[kind];
  }
  json copies = json::object();
  for (const auto& [name, kind] : {std::pair("to_device", shm::CopyKind::kToDevice),
                                   {"to_host", shm::CopyKind::kToHost},
                                   {"on_device", shm::CopyKind::kOnDevice},
                                   {"unknown", shm::CopyKind::kUnknown}}) {
    const planner::CopySummary& of_kind = summary.copies[static_cast<std::size_t>(kind)];
    copies[name] = {{"count", of_kind.count}, {"bytes", of_kind.bytes}};
  }
  json live = json::array();
  for (const auto& point : summary.live) {
    live.push_back({{"first", point.first}, {"last", point.last}, {"peak", point.peak}});
  }
  json blocks = json::array();
  for (std::size_t i = 0; i < std::min(shown.stacks, summary.groups.size()); ++i) {
    const BlockGroup& group = summary.groups[i];
    blocks.push_back({{"bytes", group.bytes},
                      {"count", group.count},
                      {"stack", frames(shown, group)},
                      {"python", summary.python.names(group.python)}});
  }
  json kernel_list = json::array();
  for (const KernelSummary& kernel : summary.kernels) {
    kernel_list.push_back({{"name", kernel.name},
                           {"launches", kernel.launches},
                           {"timed", kernel.timed},
                           {"nanoseconds", kernel.nanoseconds}});
  }
  json all = {{"format", 1},
              {"program", shown.info.program},
              {"arguments", shown.info.arguments},
              {"memopt", shown.info.version},
              {"device", shown.info.device.empty() ? json() : json(shown.info.device)},
              {"pid", shown.info.pid},
              {"started", shown.info.started},
              {"nanoseconds", summary.nanoseconds},
              {"threads", summary.lanes},
              {"streams", summary.streams},
              {"records", summary.records},
              {"first_sequence", summary.first_sequence},
              {"last_sequence", summary.last_sequence},
              {"missing", summary.missing},
              {"gaps", summary.gaps},
              {"disordered", summary.disordered},
              {"operations", counts},
              {"malloc_bytes", summary.malloc_bytes},
              {"unknown_frees", summary.unknown_frees},
              {"peak_load", summary.peak_load},
              {"peak_sequence", summary.peak_sequence},
              {"live_bytes", summary.live_bytes},
              {"live_blocks", summary.live_blocks},
              {"live", live},
              {"copies", copies},
              {"copied_bytes", summary.copied_bytes},
              {"set_bytes", summary.set_bytes},
              {"accesses", summary.accesses},
              {"known_accesses", summary.known_accesses},
              {"blind_launches", summary.blind_launches},
              {"parameter_bytes", summary.parameter_bytes},
              {"largest_blocks", blocks},
              {"kernels", kernel_list},
              {"limited", summary.limited},
              {"whole", !summary.damage.has_value()}};
  if (summary.damage) {
    all["damage"] = {{"offset", summary.damage->offset},
                     {"bytes", summary.damage->bytes},
                     {"last_sequence", summary.damage->last_sequence},
                     {"reason", summary.damage->reason}};
  }
  all["iteration"] = json();
  all["planner_note"] = shown.iteration.note;
  if (shown.iteration.found) {
    const ShownIteration& found = *shown.iteration.found;
    all["iteration"] = {{"operations", found.operations},
                        {"mallocs", found.mallocs},
                        {"peak_load", found.peak_load},
                        {"slab_bytes", found.slab_bytes},
                        {"persistent_bytes", found.persistent_bytes},
                        {"first", found.first},
                        {"detected_at", found.detected_at}};
  }
  return all;
}

}  // namespace memopt::tools
