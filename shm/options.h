// The one table of environment variables. Everything that names them derives from here: the agent's reading and
// checking, memoptctl's
// --help and doctor, and the documentation. A variable that begins with MEMOPT_ and is not here is a mistake that the
// agent reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/durations.h"
#include "shm/pin_terms.h"
#include "shm/sizes.h"
#include "shm/wait.h"

namespace memopt::shm {

inline constexpr std::string_view kOptionPrefix = "MEMOPT_";

// Where an option may be set beside the environment: memoptctl, which reads files, hands it on by the environment.
enum class InFiles : std::uint8_t {
  kAll,    // a project's memopt.toml, and the user's
  kUsers,  // names what is started or written: a project that was downloaded must not set it
  kNone,   // set by commands
};

struct Option {
  std::string_view name;           // of the environment variable
  std::string_view default_value;  // what holds if it is unset or unusable
  std::string_view values;         // what is accepted, for people
  std::string_view help;           // one sentence
  bool (*accepts)(std::string_view value);
  std::string_view flag = {};  // of memoptctl run that sets it; empty: none
  InFiles files = InFiles::kAll;

  bool is_path() const { return files == InFiles::kUsers; }
};

namespace option_check {

constexpr bool is_switch(std::string_view value) { return value == "0" || value == "1"; }
constexpr bool is_log_level(std::string_view value) {
  return value == "off" || value == "error" || value == "warn" || value == "info" || value == "debug";
}
constexpr bool is_framework_env(std::string_view value) {
  return value == "auto" || value == "async" || value == "plain" || value == "off";
}
constexpr bool is_path(std::string_view value) { return !value.empty(); }
constexpr bool is_instance_name(std::string_view value) {
  if (value.empty() || value.size() > 40) return false;
  for (const char letter : value) {
    const bool fine = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
    if (!fine) return false;
  }
  return true;
}
constexpr bool is_ring_size(std::string_view value) {
  const std::uint64_t bytes = size_bytes(value);
  return bytes >= (std::uint64_t{128} << 10) && bytes <= (std::uint64_t{1} << 30) && (bytes & (bytes - 1)) == 0;
}

// What digits alone say, no more of them than `most` has; nothing if it is something else, or more.
constexpr std::optional<std::uint32_t> number(std::string_view value, std::uint32_t most) {
  std::uint64_t number = 0;
  std::uint64_t scale = 1;
  for (const char letter : value) {
    if (letter < '0' || letter > '9' || scale > most) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(letter - '0');
    scale *= 10;
  }
  if (value.empty() || number > most) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}
inline constexpr std::uint32_t kMostWait = 3600, kMostSampling = 65536;
// Whole seconds; a duration with a unit counts the seconds that it begins.
constexpr std::optional<std::uint32_t> wait(std::string_view value) {
  if (const auto plain = number(value, kMostWait)) return plain;
  const std::optional<std::uint64_t> nanoseconds = parse_duration(value, 0);
  if (!nanoseconds || *nanoseconds > kMostWait * kOneSecond) return std::nullopt;
  return static_cast<std::uint32_t>((*nanoseconds + kOneSecond - 1) / kOneSecond);
}
constexpr bool is_wait(std::string_view value) { return wait(value).has_value(); }
constexpr bool is_sampling(std::string_view value) { return number(value, kMostSampling).has_value(); }

}  // namespace option_check

// Position in kOptions.
enum class OptionId : std::size_t {
  kDisable,
  kLog,
  kLogFile,
  kPlan,
  kSyncPlan,
  kPlanner,
  kPlannerName,
  kRing,
  kRecord,
  kDeviceTimes,
  kFrameworkEnv,
  kLimit,
  kSwap,
  kHostLimit,
  kPin,
  kCount
};

inline constexpr std::array<Option, static_cast<std::size_t>(OptionId::kCount)> kOptions{{
    {"MEMOPT_DISABLE", "0", "0 or 1", "1: forward every call and do nothing else: no counts, no thread, no socket.",
     option_check::is_switch, "--disable"},
    {"MEMOPT_LOG", "warn", "off, error, warn, info or debug", "The least severe message that is logged.",
     option_check::is_log_level},
    {"MEMOPT_LOG_FILE", "", "a path", "File to which messages are appended, instead of standard error.",
     option_check::is_path, "", InFiles::kUsers},
    {"MEMOPT_PLAN", "1", "0 or 1", "0: leave allocation to the driver; count and forward only.",
     option_check::is_switch},
    {"MEMOPT_SYNC_PLAN", "0", "0 to 3600, or a duration (60s, 5min)",
     "1: wait for the planner at fixed points of the program, ten seconds at most, so that runs repeat exactly. More: "
     "so many seconds at most. Slow; for tests.",
     option_check::is_wait},
    {"MEMOPT_PLANNER", "", "a path", "The planner's program, instead of the memoptd that belongs to this library.",
     option_check::is_path, "", InFiles::kUsers},
    {"MEMOPT_PLANNER_NAME", "", "letters, digits, - and _, at most 40",
     "Talk to the planner of that name instead of the user's own; it is started if there is none.",
     option_check::is_instance_name},
    {"MEMOPT_RING", "16M", "a size that is a power of two from 128KiB to 1GiB",
     "Shared memory per thread in which events wait for the planner.", option_check::is_ring_size},
    {"MEMOPT_RECORD", "0", "0 or 1",
     "1: record everything, launch parameters too, and plan nothing; set by memoptctl record.", option_check::is_switch,
     "", InFiles::kNone},
    {"MEMOPT_DEVICE_TIMES", "16", "0 to 65536",
     "While recording, of one launch, copy or memset in so many it is measured how long the device takes; 0: of none.",
     option_check::is_sampling},
    {"MEMOPT_FRAMEWORK_ENV", "auto", "auto, async, plain or off",
     "How frameworks are told to allocate one by one (docs/frameworks.md): auto: as memopt serves best; off: the "
     "environment is left alone.",
     option_check::is_framework_env},
    {"MEMOPT_LIMIT", "", kLimitValues,
     "Hold at most so much of the device for the program: what is used least leaves for host memory meanwhile.",
     is_limit, "--limit"},
    {"MEMOPT_SWAP", "1", "0 or 1",
     "0: where the device is full, and no limit is set, the program is told so; nothing leaves for host memory.",
     option_check::is_switch},
    {"MEMOPT_HOST_LIMIT", "", kSizeValues,
     "Hold at most so much page-locked host memory for what has left the device; else as much as the host allows.",
     is_size, "--host-limit"},
    {"MEMOPT_PIN", "", kPinValues,
     "Blocks of at least that size, or allocated by a function that matches as FILE:FUNCTION, stay on the device.",
     is_pin},
}};

constexpr std::uint64_t ring_bytes(std::string_view value) { return size_bytes(value); }

// How long a program waits for its planner at most, in seconds; 0: it does not, nor where the text is none that
// is_wait() accepts.
constexpr std::uint32_t wait_seconds(std::string_view value) {
  return value == "1" ? kUsualWait : option_check::wait(value).value_or(0);
}

// Of text that is_sampling() accepts; else 0.
constexpr std::uint32_t sampling(std::string_view value) {
  return option_check::number(value, option_check::kMostSampling).value_or(0);
}

constexpr const Option& option(OptionId id) { return kOptions[static_cast<std::size_t>(id)]; }

// The entry of that name, or nullptr.
constexpr const Option* find_option(std::string_view name) {
  for (const Option& candidate : kOptions) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

// The key in memopt.toml: MEMOPT_HOST_LIMIT is host_limit there.
inline std::string config_key(const Option& option) {
  std::string key(option.name.substr(kOptionPrefix.size()));
  for (char& letter : key) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return key;
}

// What is wrong with a variable whose name begins with the prefix; empty: nothing.
inline std::string option_fault(std::string_view name, std::string_view value) {
  const Option* const option = find_option(name);
  if (option == nullptr) return std::string(name) + " is not an option of memopt; it is ignored";
  if (option->accepts(value)) return "";
  return std::string(name) + "=" + std::string(value) + ": expected " + std::string(option->values) + "; " +
         (option->default_value.empty() ? "it is ignored" : "using " + std::string(option->default_value));
}

}  // namespace memopt::shm
