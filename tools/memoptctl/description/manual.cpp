#include "tools/memoptctl/description/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "shm/options.h"

namespace memopt::tools {
namespace {

// Text that means itself: no line begins a request, no backslash an escape, and a hyphen can be copied.
std::string plain(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char letter : text) {
    if (line_begins && (letter == '.' || letter == '\'')) out += "\\&";
    line_begins = letter == '\n';
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::string label(const OptionEntry& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) text += (text.empty() ? "" : " ") + italic(option.value);
  return text;
}

std::string options_text(const std::vector<OptionEntry>& options) {
  std::string text;
  for (const OptionEntry& option : options) {
    text += ".TP\n" + label(option) + "\n" + plain(option.help) + (option.required ? " (required)" : "") + "\n";
  }
  return text;
}

std::string command_text(const std::string& program, const CommandEntry& command) {
  std::string form = bold(program + " " + command.name);
  if (!command.options.empty()) form += " [" + italic("OPTION") + "...]";
  for (const OptionEntry& positional : command.positionals) {
    form += positional.required ? " " + italic(positional.value) : " [" + italic(positional.value) + "]";
  }
  if (command.starts_a_program) form += " " + bold("--") + " " + italic("COMMAND") + " [" + italic("ARGUMENT") + "...]";
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n{}\n", plain(command.name), plain(command.help), form);
  text += options_text(command.positionals) + options_text(command.options);
  std::string_view rest = command.footer;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    text += ".PP\n" + plain(rest.substr(0, end)) + "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

}  // namespace

std::string manual(const CommandTree& tree) {
  std::string text =
      fmt::format(".TH {} 1 \"\" \"memopt {}\" \"User Commands\"\n", upper(tree.name), plain(tree.version));
  // Names of options are looked for, and not to be hyphenated.
  text += ".nh\n";
  text += fmt::format(".SH NAME\n{} \\- unmodified CUDA programs, less GPU memory\n", tree.name);
  text += fmt::format(".SH SYNOPSIS\n{} {} [{}...]\n", bold(tree.name), italic("COMMAND"), italic("ARGUMENT"));
  text += fmt::format(".SH DESCRIPTION\n{}\n", plain(tree.help));
  text += ".SH OPTIONS\n" + options_text(tree.options);
  text += ".SH COMMANDS\n";
  for (const CommandEntry& command : tree.commands) text += command_text(tree.name, command);
  text += ".SH ENVIRONMENT\n";
  for (const shm::Option& option : shm::kOptions) {
    text += fmt::format(".TP\n{}\n{} Expected: {}; default: {}.\n", bold(option.name), plain(option.help),
                        plain(option.values), option.default_value.empty() ? "none" : plain(option.default_value));
  }
  text += ".SH SEE ALSO\n" + bold("memoptd") + "(1)\n";
  return text;
}

}  // namespace memopt::tools
