// The commands and options of a program as plain data, taken from what reads its line, so that man pages and
// completions say what is accepted and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace memopt::tools {

enum class ValueKind : std::uint8_t { kNone, kText, kFile, kFolder, kDevice, kShell };

struct OptionEntry {
  std::vector<std::string> names;  // with their dashes, the shortest first; empty: a positional
  std::string value;               // as help shows it: FILE, N; empty for a flag
  ValueKind kind = ValueKind::kNone;
  bool value_may_be_missing = false;
  bool required = false;
  std::string help;
  std::string group;
};

struct CommandEntry {
  std::string name, help, footer;
  std::vector<OptionEntry> options;  // in the order of --help
  std::vector<OptionEntry> positionals;
  bool starts_a_program = false;  // what follows is a program and its arguments
};

struct CommandTree {
  std::string name, help, version;
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> commands;  // hidden ones are left out
};

CommandTree tree_of(const CLI::App& app, const std::string& version);

}  // namespace memopt::tools
