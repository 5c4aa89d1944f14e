#include "tools/memoptctl/symbols/symbols_module.h"

#include <elfutils/libdwfl.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace {

using memopt::tools::SymbolText;

// By build id alone, below /usr/lib/debug: the standard way asks servers, where some are named in the environment.
const Dwfl_Callbacks kCallbacks{.find_elf = dwfl_build_id_find_elf,
                                .find_debuginfo = dwfl_build_id_find_debuginfo,
                                .section_address = dwfl_offline_section_address,
                                .debuginfo_path = nullptr};

struct OpenFile {
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session{dwfl_begin(&kCallbacks), &dwfl_end};
  Dwfl_Module* module = nullptr;
  std::string build_id;
};

OpenFile open(const char* path) {
  OpenFile file;
  if (!file.session) return file;
  dwfl_report_begin(file.session.get());
  // At its own addresses.
  file.module = dwfl_report_elf(file.session.get(), path, path, -1, 0, true);
  dwfl_report_end(file.session.get(), nullptr, nullptr);
  GElf_Addr at = 0;
  if (file.module == nullptr || dwfl_module_getelf(file.module, &at) == nullptr) return file;
  const unsigned char* bytes = nullptr;
  const int count = dwfl_module_build_id(file.module, &bytes, &at);
  for (int i = 0; i < count; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    file.build_id += digits;
  }
  return file;
}

void write(const SymbolText& to, const std::string& text) { std::snprintf(to.text, to.bytes, "%s", text.c_str()); }

}  // namespace

extern "C" {

__attribute__((visibility("default"))) extern const char memopt_symbols_version[];
const char memopt_symbols_version[] = MEMOPT_VERSION;

__attribute__((visibility("default"))) void memopt_symbol(const char* path, const char* build_id, std::uint64_t address,
                                                          SymbolText name, SymbolText line) {
  static std::map<std::string, OpenFile, std::less<>> files;
  auto known = files.find(path);
  if (known == files.end()) known = files.emplace(path, open(path)).first;
  const OpenFile& file = known->second;
  write(name, {});
  write(line, {});
  if (file.module == nullptr || file.build_id != build_id) return;
  GElf_Off offset = 0;
  GElf_Sym symbol{};
  const char* const found = dwfl_module_addrinfo(file.module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (found == nullptr) return;
  write(name, found);
  Dwfl_Line* const at = dwfl_module_getsrc(file.module, address);
  int number = 0;
  const char* const source = at == nullptr ? nullptr : dwfl_lineinfo(at, nullptr, &number, nullptr, nullptr, nullptr);
  if (source == nullptr) return;
  const std::string_view whole(source);
  write(line, std::string(whole.substr(whole.rfind('/') + 1)) + ":" + std::to_string(number));
}
}
