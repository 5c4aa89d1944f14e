#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "tools/memoptctl/symbols/symbols.h"

namespace memopt::tools {
namespace {

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

std::string in_hexadecimal(const unsigned char* bytes, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// One loaded file.
class File {
 public:
  explicit File(const planner::Modules::File& file) {
    // By build id alone: the other way asks servers, where some are named in the environment.
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_build_id_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = nullptr};
    const std::string path(file.path);
    dwfl_.reset(dwfl_begin(&callbacks));
    if (!dwfl_ || path.empty() || path.front() != '/') return;
    dwfl_report_begin(dwfl_.get());
    Dwfl_Module* const module = dwfl_report_elf(dwfl_.get(), path.c_str(), path.c_str(), -1, file.base, true);
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (module == nullptr) return;
    GElf_Addr bias = 0;
    if (dwfl_module_getelf(module, &bias) == nullptr) return;
    const unsigned char* id = nullptr;
    GElf_Addr at = 0;
    const int length = dwfl_module_build_id(module, &id, &at);
    if (!file.build_id.empty() && (length <= 0 || in_hexadecimal(id, length) != file.build_id)) return;
    module_ = module;
  }

  std::string of_call(std::uint64_t return_address) const {
    if (module_ == nullptr || return_address == 0) return {};
    // The call may be the last instruction of its function.
    const GElf_Addr address = return_address - 1;
    GElf_Off offset = 0;
    GElf_Sym symbol{};
    const char* const name = dwfl_module_addrinfo(module_, address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name == nullptr) return {};
    std::string text = demangled(name);
    int line = 0;
    if (Dwfl_Line* const found = dwfl_module_getsrc(module_, address)) {
      const char* const source = dwfl_lineinfo(found, nullptr, &line, nullptr, nullptr, nullptr);
      if (source != nullptr) text += fmt::format(" at {}:{}", base_name(source), line);
    }
    return text;
  }

 private:
  struct End {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };
  std::unique_ptr<Dwfl, End> dwfl_;
  Dwfl_Module* module_ = nullptr;
};

}  // namespace

struct Symbols::Files {
  std::map<std::uint64_t, File> by_base;
  std::map<std::uint64_t, std::string> names;
};

Symbols::Symbols(const planner::Modules& modules) : modules_(modules), files_(std::make_unique<Files>()) {}
Symbols::~Symbols() = default;

std::string Symbols::of_call(std::uint64_t return_address) {
  const auto known = files_->names.find(return_address);
  if (known != files_->names.end()) return known->second;
  std::string text = modules_.name(return_address);
  if (const auto file = modules_.file(return_address)) {
    auto found = files_->by_base.find(file->base);
    if (found == files_->by_base.end()) found = files_->by_base.emplace(file->base, *file).first;
    if (const std::string name = found->second.of_call(return_address); !name.empty())
      text = fmt::format("{} ({})", name, text);
  }
  return files_->names.emplace(return_address, text).first->second;
}

}  // namespace memopt::tools
