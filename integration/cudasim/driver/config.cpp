#include "config.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "entry_table.h"
#include "ptx/loader/compiler.h"

namespace cudasim {
namespace {

constexpr std::array<Option, 19> kOptions{{
    {"CUDASIM_DEVICE", "`gtx1080ti`, `a100-40g`, `h200`, or the path of a JSON file", "`a100-40g`",
     "The device to be. One that can't be read fails `cuInit` with `CUDA_ERROR_INVALID_DEVICE` and says why."},
    {"CUDASIM_CAPACITY", "bytes, suffix `K`, `M` or `G`", "the device's", "Device memory; rounded down to 2 MiB."},
    {"CUDASIM_KERNELS", "colon list of plug-in files or folders", "`../kernels` beside this library's folder",
     "Where host versions of kernels are found; `../kernels-instrumented` is the default with `CUDASIM_INSTRUMENT=1`."},
    {"CUDASIM_PTX", "`off`, `interpret`, `jit`", "`jit`",
     "Kernels that no plug-in has are executed from the PTX of their module, in native code where `libcudasim_jit.so` "
     "is "
     "there (else, and where every byte is reported, interpreted); `off`: they change no bytes."},
    {"CUDASIM_PTX_CACHE", "path of a folder, `off`", "`$XDG_CACHE_HOME/memopt/ptx`, else `~/.cache/memopt/ptx`",
     "Where native code of kernels is kept for the next process; at most 256 MiB."},
    {"CUDASIM_LIBRARY_BYTES", "`all`, `some`, `none`", "`all`",
     "How much of their operands the stand-ins for NVIDIA's libraries read and write: whole, 64 bytes of each 4 KiB, "
     "or "
     "nothing."},
    {"CUDASIM_INSTRUMENT", "`0`, `1`", "`0`",
     "Use plug-ins compiled with load/store callbacks: every byte that a kernel touches is checked."},
    {"CUDASIM_SEED", "unset, or a number below 2^64", "unset",
     "Unset: bytes change at the virtual end of each piece of work. A number: a repeatable adversary runs each piece "
     "as early or as late as the "
     "declared edges allow."},
    {"CUDASIM_CHECK", "`on`, `off`", "`on`", "Happens-before checker; a process with a race exits with code 86."},
    {"CUDASIM_PACE", "wall ns per virtual ns", "`0`",
     "Slow wall time down to virtual time, `1` is real time; `0` never waits."},
    {"CUDASIM_SERIALIZE", "`0`, `1`", "`0`", "Order the program's threads deterministically at driver calls."},
    {"CUDASIM_SCHEDULE", "unset, or a number below 2^64", "unset",
     "A number: one thread of the program runs at a time, and the seed decides at each driver call and wherever a "
     "thread waits which one; the seeds below 8 preempt so many times. Wants `libcudasim_schedule.so` preloaded, "
     "in front."},
    {"CUDASIM_SCHEDULE_AT", "symbol of a driver call", "unset",
     "Threads are preempted at this call's entries and returns alone, at half of them, drawn by CUDASIM_SCHEDULE."},
    {"CUDASIM_SCHEDULE_TRACE", "a path (`%p`: process id)", "unset", "Each step of the schedule: thread and call."},
    {"CUDASIM_POISON", "`on`, `off`", "`on`", "Overwrite freed device memory."},
    {"CUDASIM_REPORT", "`off`, `stderr`, or a path (`%p`: process id)", "`off`",
     "Report at exit: short text, or JSON in a file."},
    {"CUDASIM_TIMELINE", "a path (`%p`: process id)", "unset",
     "What the device does when, as trace events for Perfetto (ui.perfetto.dev)."},
    {"CUDASIM_INJECT", "`SYMBOL:ERROR@CALL`, comma list", "unset",
     "The CALL-th call of an exported entry point returns ERROR (a CUresult number) instead of running; without "
     "`@CALL` every call does."},
    {"CUDASIM_HELP", "`1`", "unset", "Print this table to stderr when the driver is made."},
}};

constexpr std::string_view kDefaultDevice = "a100-40g";

void warn(std::string_view name, std::string_view value, std::string_view expected, std::string_view used) {
  std::fprintf(stderr, "cudasim: %.*s=%.*s: expected %.*s; using %.*s\n", int(name.size()), name.data(),
               int(value.size()), value.data(), int(expected.size()), expected.data(), int(used.size()), used.data());
}

const Option& option(std::string_view name) {
  const auto* found = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; });
  if (found == kOptions.end()) throw std::logic_error("option missing from the table: " + std::string(name));
  return *found;
}

std::optional<std::string> get(std::string_view name) {
  const char* value = std::getenv(std::string(option(name).name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool get_switch(std::string_view name, std::string_view off, std::string_view on, bool fallback) {
  const auto value = get(name);
  if (!value || *value == (fallback ? on : off)) return fallback;
  if (*value == (fallback ? off : on)) return !fallback;
  warn(name, *value, option(name).values, fallback ? on : off);
  return fallback;
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<Injection> parse_injection(std::string_view text) {
  Injection injection;
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  injection.symbol = text.substr(0, colon);
  auto error_text = text.substr(colon + 1);
  if (const auto at = error_text.find('@'); at != std::string_view::npos) {
    const auto call = parse_number<std::uint64_t>(error_text.substr(at + 1));
    if (!call || *call == 0) return std::nullopt;
    injection.call = *call;
    error_text = error_text.substr(0, at);
  }
  const auto error = parse_number<int>(error_text);
  if (!error || *error <= 0) return std::nullopt;
  injection.error = *error;
  return injection;
}

std::vector<std::string> plug_in_paths(bool instrument) {
  if (const auto value = get("CUDASIM_KERNELS")) return split(*value, ':');
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&options), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code ignored;
  auto library = std::filesystem::canonical(here.dli_fname, ignored);
  if (ignored) library = here.dli_fname;
  const auto folder = library.parent_path().parent_path() / (instrument ? "kernels-instrumented" : "kernels");
  // The default folder is a convenience: a simulator without plug-ins is complete, its kernels are then modelled
  // no-ops.
  return std::filesystem::is_directory(folder, ignored) ? std::vector<std::string>{folder.string()}
                                                        : std::vector<std::string>{};
}

void name_unknown_variables() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with("CUDASIM_")) continue;
    const auto name = variable.substr(0, variable.find('='));
    if (std::none_of(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; })) {
      std::fprintf(stderr, "cudasim: %.*s is not an option (CUDASIM_HELP=1 lists them); ignored\n", int(name.size()),
                   name.data());
    }
  }
}

void print_help() {
  for (const Option& o : kOptions) {
    std::fprintf(stderr, "%-20.*s %.*s (default: %.*s)\n%20s %.*s\n", int(o.name.size()), o.name.data(),
                 int(o.values.size()), o.values.data(), int(o.fallback.size()), o.fallback.data(), "",
                 int(o.help.size()), o.help.data());
  }
}

}  // namespace

std::span<const Option> options() { return kOptions; }

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k':
        unit = 1u << 10;
        break;
      case 'M':
      case 'm':
        unit = 1u << 20;
        break;
      case 'G':
      case 'g':
        unit = 1u << 30;
        break;
      default:
        break;
    }
    if (unit != 1) text.remove_suffix(1);
  }
  const auto number = parse_number<std::uint64_t>(text);
  std::uint64_t bytes = 0;
  if (!number || __builtin_mul_overflow(*number, unit, &bytes)) return std::nullopt;
  return bytes;
}

std::string with_process_id(std::string path) {
  for (auto at = path.find("%p"); at != std::string::npos; at = path.find("%p", at))
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

Config Config::from_environment() {
  Config config;
  name_unknown_variables();
  if (get("CUDASIM_HELP")) print_help();

  const auto device = get("CUDASIM_DEVICE").value_or(std::string(kDefaultDevice));
  try {
    config.device = DeviceModel::preset_or_file(device);
  } catch (const std::exception& problem) {
    config.device_problem = problem.what();
    std::fprintf(stderr, "cudasim: CUDASIM_DEVICE: %s; cuInit will fail\n", problem.what());
    config.device = DeviceModel::preset_or_file(std::string(kDefaultDevice));
  }
  if (const auto value = get("CUDASIM_CAPACITY")) {
    const auto bytes = parse_bytes(*value);
    if (bytes && *bytes >= kGranule && *bytes <= (std::uint64_t{1} << 46)) {
      config.device.capacity = *bytes / kGranule * kGranule;
    } else {
      warn("CUDASIM_CAPACITY", *value, "bytes from 2M to 65536G, suffix K, M or G",
           std::to_string(config.device.capacity));
    }
  }
  config.instrument = get_switch("CUDASIM_INSTRUMENT", "0", "1", false);
  if (const auto value = get("CUDASIM_PTX")) {
    config.ptx = *value != "off";
    config.native_ptx = *value != "off" && *value != "interpret";
    if (config.native_ptx && *value != "jit") warn("CUDASIM_PTX", *value, option("CUDASIM_PTX").values, "jit");
  }
  config.ptx_cache = get("CUDASIM_PTX_CACHE").value_or(ptx::default_cache_folder());
  if (config.ptx_cache == "off") config.ptx_cache.clear();
  config.kernel_paths = plug_in_paths(config.instrument);
  if (const auto value = get("CUDASIM_SEED")) {
    config.seed = parse_number<std::uint64_t>(*value);
    if (!config.seed) warn("CUDASIM_SEED", *value, "a number from 0 to 2^64 - 1", "no seed (nominal order)");
  }
  config.check = get_switch("CUDASIM_CHECK", "off", "on", true);
  if (const auto value = get("CUDASIM_PACE")) {
    const auto pace = parse_number<double>(*value);
    if (pace && *pace >= 0 && *pace <= 1e6) {
      config.pace = *pace;
    } else {
      warn("CUDASIM_PACE", *value, "a number from 0 to 1e6", "0");
    }
  }
  config.serialize = get_switch("CUDASIM_SERIALIZE", "0", "1", false);
  if (const auto value = get("CUDASIM_SCHEDULE")) {
    config.schedule = parse_number<std::uint64_t>(*value);
    if (!config.schedule) warn("CUDASIM_SCHEDULE", *value, "a number from 0 to 2^64 - 1", "no schedule");
  }
  if (config.schedule && config.serialize) {
    warn("CUDASIM_SERIALIZE", "1", "nothing beside CUDASIM_SCHEDULE, which orders the threads", "0");
    config.serialize = false;
  }
  config.schedule_at = get("CUDASIM_SCHEDULE_AT").value_or("");
  if (!config.schedule_at.empty() && !config.schedule)
    warn("CUDASIM_SCHEDULE_AT", config.schedule_at, "CUDASIM_SCHEDULE beside it", "nothing");
  const auto is_named = [&](const EntryPoint& entry) { return config.schedule_at == entry.symbol; };
  if (config.schedule && !config.schedule_at.empty() && std::ranges::none_of(entry_points(), is_named)) {
    warn("CUDASIM_SCHEDULE_AT", config.schedule_at, "the symbol of a driver call, for example cuEventRecord",
         "all calls");
    config.schedule_at.clear();
  }
  config.schedule_trace = with_process_id(get("CUDASIM_SCHEDULE_TRACE").value_or(""));
  if (!config.schedule_trace.empty() && !config.schedule)
    warn("CUDASIM_SCHEDULE_TRACE", config.schedule_trace, "CUDASIM_SCHEDULE beside it", "no trace");
  config.poison = get_switch("CUDASIM_POISON", "off", "on", true);
  config.report = get("CUDASIM_REPORT").value_or("off");
  config.timeline = with_process_id(get("CUDASIM_TIMELINE").value_or(""));
  if (const auto value = get("CUDASIM_INJECT")) {
    for (const auto& part : split(*value, ',')) {
      if (const auto injection = parse_injection(part)) {
        config.injections.push_back(*injection);
      } else {
        warn("CUDASIM_INJECT", part, "SYMBOL:ERROR@CALL, for example cuMemAlloc_v2:2@5", "no such injection");
      }
    }
  }
  return config;
}

}  // namespace cudasim
