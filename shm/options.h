// The one table of environment variables. Everything that names them derives from here: the agent's reading and
// checking, memoptctl's
// --help and doctor, and the documentation. A variable that begins with MEMOPT_ and is not here is a mistake that the
// agent reports.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace memopt::shm {

inline constexpr std::string_view kOptionPrefix = "MEMOPT_";

struct Option {
  std::string_view name;           // of the environment variable
  std::string_view default_value;  // what holds if it is unset or unusable
  std::string_view values;         // what is accepted, for people
  std::string_view help;           // one sentence
  bool (*accepts)(std::string_view value);
};

namespace option_check {

constexpr bool is_switch(std::string_view value) { return value == "0" || value == "1"; }
constexpr bool is_log_level(std::string_view value) {
  return value == "off" || value == "error" || value == "warn" || value == "info" || value == "debug";
}
constexpr bool is_path(std::string_view value) { return !value.empty(); }

}  // namespace option_check

// Position in kOptions.
enum class OptionId : std::size_t { kDisable, kLog, kLogFile, kCount };

inline constexpr std::array<Option, static_cast<std::size_t>(OptionId::kCount)> kOptions{{
    {"MEMOPT_DISABLE", "0", "0 or 1", "1: forward every call and do nothing else: no counts, no thread, no socket.",
     option_check::is_switch},
    {"MEMOPT_LOG", "warn", "off, error, warn, info or debug", "The least severe message that is logged.",
     option_check::is_log_level},
    {"MEMOPT_LOG_FILE", "", "a path", "File to which messages are appended, instead of standard error.",
     option_check::is_path},
}};

constexpr const Option& option(OptionId id) { return kOptions[static_cast<std::size_t>(id)]; }

// The entry of that name, or nullptr.
constexpr const Option* find_option(std::string_view name) {
  for (const Option& candidate : kOptions) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

}  // namespace memopt::shm
