#include <fmt/format.h>

#include <optional>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/config/config_file.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

namespace memopt::tools {
namespace {

using Position = toml::source_position;

class Reader {
 public:
  Reader(const std::filesystem::path& path, ConfigScope scope) : path_(path), scope_(scope) {}

  std::vector<FileSetting> read(std::string_view text) const {
    const toml::parse_result parsed = toml::parse(text);
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
