#include "tools/memoptctl/description/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace memopt::tools {
namespace {

constexpr const char* kShellNames = "bash zsh fish";

// The first sentence or clause of a help text: a shell shows a line.
std::string brief(std::string_view help) {
  std::string text(help.substr(0, help.find_first_of(";:(\n")));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// Between single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out + "'";
}

std::vector<std::string> names_of(const std::vector<OptionEntry>& options) {
  std::vector<std::string> names;
  for (const OptionEntry& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

// --- bash

// The case of a value: what compgen is asked.
std::string bash_action(ValueKind kind, const std::vector<std::string>& devices) {
  switch (kind) {
    case ValueKind::kFile:
      return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case ValueKind::kFolder:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
    case ValueKind::kDevice:
      return fmt::format("compopt -o filenames; COMPREPLY=($(compgen -W '{}' -- \"$cur\") $(compgen -f -- \"$cur\"))",
                         joined(devices));
    case ValueKind::kShell:
      return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", kShellNames);
    case ValueKind::kText:
    case ValueKind::kNone:
      break;
  }
  return "COMPREPLY=()";
}

std::string bash(const CommandTree& tree, const std::vector<std::string>& devices) {
  std::string text = fmt::format(
      "# bash completion of {0}, written by: {0} completion bash\n"
      "_{0}() {{\n"
      "  local IFS=$' \\t\\n' cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${{COMP_WORDS[i]}} == -- ]]; then\n"
      "      declare -F _command_offset >/dev/null && _command_offset $((i + 1))\n"
      "      return\n"
      "    fi\n"
      "    [[ -n $command || ${{COMP_WORDS[i]}} == -* ]] || command=${{COMP_WORDS[i]}}\n"
      "  done\n"
      "  if [[ -z $command ]]; then\n"
      "    COMPREPLY=($(compgen -W '{1} {2}' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n",
      tree.name, "@COMMANDS@", joined(names_of(tree.options)));
  std::vector<std::string> commands;
  for (const CommandEntry& command : tree.commands) {
    commands.push_back(command.name);
    text += fmt::format("    {})\n      case $prev in\n", command.name);
    for (const OptionEntry& option : command.options) {
      if (option.value.empty() || option.value_may_be_missing) continue;
      text += fmt::format("        {}) {}; return ;;\n", joined(option.names, "|"), bash_action(option.kind, devices));
    }
    text += fmt::format(
        "      esac\n"
        "      if [[ $cur == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W '{}{}' -- \"$cur\"))\n",
        joined(names_of(command.options)), command.starts_a_program ? " --" : "");
    if (command.starts_a_program) {
      text += "      else\n        COMPREPLY=($(compgen -W '--' -- \"$cur\") $(compgen -c -- \"$cur\"))\n";
    } else if (!command.positionals.empty()) {
      text += fmt::format("      else\n        {}\n", bash_action(command.positionals.front().kind, devices));
    }
    text += "      fi ;;\n";
  }
  text += fmt::format("  esac\n}}\ncomplete -F _{0} {0}\n", tree.name);
  text.replace(text.find("@COMMANDS@"), 10, joined(commands));
  return text;
}

// --- zsh

// Within [...] of a specification of _arguments, in single quotes.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') out += '\\';
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string zsh_action(ValueKind kind, const std::vector<std::string>& devices) {
  switch (kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kDevice:
      return fmt::format("({})", joined(devices));
    case ValueKind::kShell:
      return fmt::format("({})", kShellNames);
    case ValueKind::kText:
    case ValueKind::kNone:
      break;
  }
  return " ";
}

std::string zsh_option(const OptionEntry& option, const std::vector<std::string>& devices) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    text += fmt::format(" '*{}{}[{}]", name,
                        option.value.empty() || option.value_may_be_missing ? ""
                        : is_long                                           ? "="
                                                                            : "+",
                        zsh_text(brief(option.help)));
    if (!option.value.empty() && !option.value_may_be_missing) {
      text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option.kind, devices));
    }
    text += "'";
  }
  return text;
}

std::string zsh(const CommandTree& tree, const std::vector<std::string>& devices) {
  std::string text = fmt::format(
      "#compdef {0}\n# zsh completion of {0}, written by: {0} completion zsh\n"
      "_{0}() {{\n"
      "  local curcontext=$curcontext state line\n"
      "  local -a commands=(\n",
      tree.name);
  for (const CommandEntry& command : tree.commands) {
    text += fmt::format("    {}\n", in_quotes(command.name + ":" + brief(command.help)));
  }
  text += "  )\n  _arguments -C";
  for (const OptionEntry& option : tree.options) text += zsh_option(option, devices);
  text +=
      " '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n"
      "    command) _describe command commands ;;\n"
      "    argument)\n"
      "      case $words[1] in\n";
  for (const CommandEntry& command : tree.commands) {
    text += fmt::format("        {}) _arguments", command.name);
    for (const OptionEntry& option : command.options) text += zsh_option(option, devices);
    if (command.starts_a_program) {
      text += " '*::program:_normal'";
    } else {
      for (const OptionEntry& positional : command.positionals) {
        text += fmt::format(" ':{}:{}'", zsh_text(positional.value), zsh_action(positional.kind, devices));
      }
    }
    text += " ;;\n";
  }
  // Sourced, it registers itself; as a file of fpath it is the function.
  text += fmt::format(
      "      esac ;;\n  esac\n}}\n"
      "if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n",
      tree.name);
  return text;
}

// --- fish

std::string fish_option(const std::string& program, const std::string& condition, const OptionEntry& option,
                        const std::vector<std::string>& devices) {
  std::string text = fmt::format("complete -c {} -n {}", program, in_quotes(condition));
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty() && !option.value_may_be_missing) {
    switch (option.kind) {
      case ValueKind::kFile:
        text += " -r -F";
        break;
      case ValueKind::kFolder:
        text += " -x -a '(__fish_complete_directories)'";
        break;
      case ValueKind::kDevice:
        text += " -r -F -a " + in_quotes(joined(devices));
        break;
      case ValueKind::kShell:
        text += fmt::format(" -x -a '{}'", kShellNames);
        break;
      case ValueKind::kText:
      case ValueKind::kNone:
        text += " -x";
    }
  }
  return text + " -d " + in_quotes(brief(option.help)) + "\n";
}

std::string fish(const CommandTree& tree, const std::vector<std::string>& devices) {
  std::string text =
      fmt::format("# fish completion of {0}, written by: {0} completion fish\ncomplete -c {0} -f\n", tree.name);
  const std::string none = "__fish_use_subcommand";
  for (const OptionEntry& option : tree.options) text += fish_option(tree.name, none, option, devices);
  for (const CommandEntry& command : tree.commands) {
    text += fmt::format("complete -c {} -n {} -a {} -d {}\n", tree.name, none, command.name,
                        in_quotes(brief(command.help)));
  }
  for (const CommandEntry& command : tree.commands) {
    const std::string here = "__fish_seen_subcommand_from " + command.name;
    for (const OptionEntry& option : command.options) text += fish_option(tree.name, here, option, devices);
    if (command.starts_a_program) {
      text += fmt::format("complete -c {} -n {} -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n", tree.name,
                          in_quotes(here));
    } else if (!command.positionals.empty()) {
      const ValueKind kind = command.positionals.front().kind;
      if (kind == ValueKind::kFile) text += fmt::format("complete -c {} -n {} -F\n", tree.name, in_quotes(here));
      if (kind == ValueKind::kShell) {
        text += fmt::format("complete -c {} -n {} -a '{}'\n", tree.name, in_quotes(here), kShellNames);
      }
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> completion(const CommandTree& tree, std::string_view shell,
                                      const std::vector<std::string>& devices) {
  if (shell == "bash") return bash(tree, devices);
  if (shell == "zsh") return zsh(tree, devices);
  if (shell == "fish") return fish(tree, devices);
  return std::nullopt;
}

}  // namespace memopt::tools
