// A memopt.toml: settings by the names of the table of options (shm/options.h), read and checked. The file comes from a
// person or from a project that was downloaded; it is bounded, and nothing in it is believed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "shm/options.h"

namespace memopt::tools {

// What it says: "FILE:LINE:COLUMN: what is wrong, and what was expected".
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ConfigScope : std::uint8_t {
  kProject,  // found beside the work: may set nothing that starts another program
  kUser,
};

struct FileSetting {
  shm::OptionId id{};
  std::string value;  // as the environment would have it
  std::size_t line = 0;
};

// `text` is of the file `path`, beside which relative paths in it are meant. Throws ConfigError for the first fault.
std::vector<FileSetting> parse_config(std::string_view text, const std::filesystem::path& path, ConfigScope scope);

// The same of a file that is there. Throws ConfigError where it is no plain file, too large, or can't be read.
std::vector<FileSetting> read_config(const std::filesystem::path& path, ConfigScope scope);

}  // namespace memopt::tools
