#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/config/config_file.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_UNRELEASED_FEATURES 0
// Its assertions are about what is read ("[*" fails one), and what it goes on to is an error of its own. The same in
// all builds, and in the fuzzer.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

namespace memopt::tools {
namespace {

using Position = toml::source_position;

struct Fault {
  Position at;
  const char* why;
};

// The text in ASCII, or what keeps it from that. toml++ 3.3 runs into undefined behaviour where some characters beyond
// ASCII stand in keys or behind a sign (its tables of letters end in "unreachable"), and takes a NUL for the end: it
// gets none of these. No name here has any; in remarks they become '?', and between double quotes TOML's own escapes.
// Strings of several lines are not followed: a file that has one must do without.
class InAscii {
 public:
  explicit InAscii(std::string_view text)
      : several_lines_(text.find("\"\"\"") != std::string_view::npos || text.find("'''") != std::string_view::npos) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of Unicode, at the beginning
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    while (!text.empty() && !fault_) {
      const auto letter = static_cast<unsigned char>(text[0]);
      text.remove_prefix(letter < 0x80 ? plain(text) : beyond(text));
    }
  }
  const std::string& text() const { return text_; }
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  // Both return how many bytes they took.
  std::size_t plain(std::string_view rest) {
    const char letter = rest[0];
    if ((letter < ' ' && letter != '\t' && letter != '\r' && letter != '\n') || letter == 0x7F) {
      fault_ = {at_, "a control character: expected text"};
      return 1;
    }
    const bool escapes = quote_ == '"' && letter == '\\' && rest.size() > 1 && (rest[1] == '"' || rest[1] == '\\');
    text_.append(rest.substr(0, escapes ? 2 : 1));
    at_.column += escapes ? 2 : 1;
    if (escapes) return 2;
    if (letter == '\n') {
      quote_ = 0;
      comment_ = false;
      at_ = {at_.line + 1, 1};
    } else if (quote_ != 0) {
      if (letter == quote_) quote_ = 0;
    } else if (letter == '#') {
      comment_ = true;
    } else if (!comment_ && (letter == '"' || letter == '\'')) {
      quote_ = letter;
    }
    return 1;
  }

  std::size_t beyond(std::string_view rest) {
    const auto first = static_cast<unsigned char>(rest[0]);
    const std::size_t length = std::min<std::size_t>(rest.size(), first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4);
    const std::string_view character = rest.substr(0, length);
    if (comment_ && !several_lines_) {
      text_ += '?';
    } else if (quote_ != '"' || several_lines_) {
      fault_ = {at_, "a character beyond ASCII that is not between double quotes: expected NAME = VALUE"};
    } else if (printable(character) != character) {
      fault_ = {at_, "a character that can't be printed: expected text in UTF-8"};
    } else {
      std::uint32_t code = first & (0xFFu >> (length + 1));
      for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(character[i]) & 0x3Fu);
      text_ += fmt::format("\\U{:08X}", code);
    }
    ++at_.column;
    return length;
  }

  bool several_lines_;
  char quote_ = 0;
  bool comment_ = false;
  Position at_{1, 1};
  std::string text_;
  std::optional<Fault> fault_;
};

class Reader {
 public:
  Reader(const std::filesystem::path& path, ConfigScope scope) : path_(path), scope_(scope) {}

  std::vector<FileSetting> read(std::string_view text) const {
    const InAscii ascii(text);
    if (ascii.fault()) throw fail(ascii.fault()->at, ascii.fault()->why);
    const toml::parse_result parsed = toml::parse(ascii.text());
    if (!parsed) {
      throw fail(parsed.error().source().begin, printable(parsed.error().description()));
    }
    std::vector<FileSetting> settings;
    for (const auto& [key, node] : parsed.table()) settings.push_back(setting(key, node));
    return settings;
  }

 private:
  ConfigError fail(const Position& at, const std::string& why) const {
    return ConfigError(fmt::format("{}:{}:{}: {}", printable(path_.string()), at.line, at.column, why));
  }

  FileSetting setting(const toml::key& key, const toml::node& node) const {
    const Position& at = key.source().begin;
    const std::string name(key.str());
    const shm::Option* const option = find(name);
    if (option == nullptr) {
      const std::string meant = nearest(name, names());
      throw fail(at, fmt::format("there is no setting {}{}; memoptctl config lists them", printable(name, 60),
                                 meant.empty() ? "" : fmt::format(", did you mean {}?", meant)));
    }
    if (option->files == shm::InFiles::kUsers && scope_ == ConfigScope::kProject) {
      throw fail(
          at, fmt::format("{} names what is started or written: it is for the environment and the user's own file, not "
                          "for a project's",
                          name));
    }
    const std::optional<std::string> value = text_of(*option, node);
    if (!value || !option->accepts(*value)) {
      throw fail(
          node.source().begin,
          fmt::format("{}: {}: expected {}", name,
                      value ? fmt::format("'{}'", printable(*value)) : std::string(kind_of(node)), option->values));
    }
    const auto id = static_cast<shm::OptionId>(option - shm::kOptions.data());
    return {id, option->is_path() ? beside(*value) : *value, at.line};
  }

  // A name without '/' is one in the folder of the file, too: what TOML holds is no command.
  std::string beside(const std::string& value) const {
    return (path_.parent_path() / value).lexically_normal().string();
  }

  static const shm::Option* find(std::string_view name) {
    for (const shm::Option& option : shm::kOptions) {
      if (option.files != shm::InFiles::kNone && shm::config_key(option) == name) return &option;
    }
    return nullptr;
  }

  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const shm::Option& option : shm::kOptions) {
      if (option.files != shm::InFiles::kNone) all.push_back(shm::config_key(option));
    }
    return all;
  }

  // What the environment would have: `plan = false` is MEMOPT_PLAN=0.
  static std::optional<std::string> text_of(const shm::Option& option, const toml::node& node) {
    if (const auto* const text = node.as_string()) return text->get();
    if (const auto* const flag = node.as_boolean()) {
      // Of a size, `true` would be a byte.
      if (!option.accepts("0") || !option.accepts("1")) return std::nullopt;
      return flag->get() ? "1" : "0";
    }
    if (const auto* const number = node.as_integer()) return fmt::to_string(number->get());
    return std::nullopt;
  }

  static std::string_view kind_of(const toml::node& node) {
    return node.is_table()            ? "a table"
           : node.is_array()          ? "a list"
           : node.is_boolean()        ? "true or false"
           : node.is_floating_point() ? "a number with a point (write it between quotes)"
                                      : "a date or a time";
  }

  const std::filesystem::path& path_;
  ConfigScope scope_;
};

}  // namespace

std::vector<FileSetting> parse_config(std::string_view text, const std::filesystem::path& path, ConfigScope scope) {
  return Reader(path, scope).read(text);
}

}  // namespace memopt::tools
