#include "tools/memoptctl/description/command_tree.h"

#include <CLI/CLI.hpp>
#include <array>
#include <string_view>
#include <utility>

namespace memopt::tools {
namespace {

// By the names that help has for values.
ValueKind kind_of(const std::string& value) {
  constexpr std::array<std::pair<std::string_view, ValueKind>, 5> kKinds = {{
      {"FILE", ValueKind::kFile},
      {"OUT", ValueKind::kFile},
      {"FOLDER", ValueKind::kFolder},
      {"PRESET", ValueKind::kDevice},
      {"SHELL", ValueKind::kShell},
  }};
  for (const auto& [name, kind] : kKinds) {
    if (value == name) return kind;
  }
  return value.empty() ? ValueKind::kNone : ValueKind::kText;
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    entry.value = option.get_type_name();
    entry.value_may_be_missing = option.get_items_expected_min() == 0;
    if (entry.value.empty()) entry.value = "VALUE";
  }
  entry.kind = kind_of(entry.value);
  entry.required = option.get_required();
  entry.help = option.get_description();
  entry.group = option.get_group();
  return entry;
}

void read_options(const CLI::App& app, std::vector<OptionEntry>& options, std::vector<OptionEntry>& positionals) {
  for (const CLI::Option* const option : app.get_options()) {
    if (option->get_group().empty()) continue;
    OptionEntry entry = entry_of(*option);
    if (entry.names.empty()) {
      entry.value = option->get_type_name().empty() ? option->get_name() : option->get_type_name();
      positionals.push_back(std::move(entry));
    } else {
      options.push_back(std::move(entry));
    }
  }
}

}  // namespace

CommandTree tree_of(const CLI::App& app, const std::string& version) {
  CommandTree tree{app.get_name(), app.get_description(), version, {}, {}};
  std::vector<OptionEntry> none;
  read_options(app, tree.options, none);
  for (const CLI::App* const command : app.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    CommandEntry entry{command->get_name(), command->get_description(), command->get_footer(), {}, {}, false};
    read_options(*command, entry.options, entry.positionals);
    entry.starts_a_program = command->get_prefix_command();
    tree.commands.push_back(std::move(entry));
  }
  return tree;
}

}  // namespace memopt::tools
