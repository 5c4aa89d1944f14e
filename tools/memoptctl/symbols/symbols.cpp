#include "tools/memoptctl/symbols/symbols.h"

#include <cxxabi.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "tools/memoptctl/common/optional_module.h"
#include "tools/memoptctl/symbols/symbols_module.h"

namespace memopt::tools {
namespace {

SymbolOf symbol_function() {
#if MEMOPT_HAS_SYMBOLS
  static const OptionalModule module = load_optional_module(kSymbolsFile, kSymbolsVersion, kSymbolsRun);
  return reinterpret_cast<SymbolOf>(module.run);
#else
  return nullptr;
#endif
}

// To open a pipe would wait for a writer.
bool is_regular(const std::string& path) {
  struct stat about {};
  return !path.empty() && path.front() == '/' && ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace

Symbols::Function Symbols::find(std::uint64_t return_address) const {
  const auto file = modules_.file(return_address);
  const SymbolOf symbol_of = symbol_function();
  if (!file || file->build_id.empty() || symbol_of == nullptr) return {};
  const std::string path(file->path);
  if (!is_regular(path)) return {};
  std::array<char, 8192> name{};
  std::array<char, 512> line{};
  // The call may be the last instruction of its function.
  const std::uint64_t address = return_address - file->base - (return_address != file->base ? 1 : 0);
  symbol_of(path.c_str(), std::string(file->build_id).c_str(), address, {name.data(), name.size()},
            {line.data(), line.size()});
  if (name[0] == '\0') return {};
  return {demangled(name.data()), line.data()};
}

const Symbols::Function& Symbols::function(std::uint64_t return_address) {
  const auto [known, fresh] = functions_.try_emplace(return_address);
  if (fresh) known->second = find(return_address);
  return known->second;
}

std::string Symbols::of_call(std::uint64_t return_address) {
  const auto& [name, line] = function(return_address);
  const std::string place = modules_.name(return_address);
  return name.empty() ? place : name + (line.empty() ? "" : " at " + line) + " (" + place + ")";
}

}  // namespace memopt::tools
