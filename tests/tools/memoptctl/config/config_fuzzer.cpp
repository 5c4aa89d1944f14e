// Bytes from anywhere as a memopt.toml: settings that their options accept, or a fault that is fit for a terminal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/memoptctl/config/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const tools::ConfigScope scope : {tools::ConfigScope::kProject, tools::ConfigScope::kUser}) {
    try {
      for (const tools::FileSetting& setting : tools::parse_config(text, "/project/memopt.toml", scope)) {
        const shm::Option& option = shm::option(setting.id);
        if (!option.accepts(setting.value) || option.files == shm::InFiles::kNone) std::abort();
        if (scope == tools::ConfigScope::kProject && option.files == shm::InFiles::kUsers) std::abort();
      }
    } catch (const tools::ConfigError& fault) {
      for (const char byte : std::string_view(fault.what())) {
        if (byte >= 0 && byte < ' ') std::abort();
      }
    }
  }
  return 0;
}
