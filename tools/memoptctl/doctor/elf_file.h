// What an executable or a library says of itself, without loading it. The file is not ours, so every offset is checked.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memopt::tools {

struct ElfFile {
  bool bits_64 = false;
  std::uint16_t machine = 0;        // EM_X86_64, ...
  std::string interpreter;          // empty: linked statically, or a library
  std::vector<std::string> needed;  // libraries
  bool has_device_code = false;     // a section of nvcc's
  bool has_runtime = false;         // defines functions of the CUDA runtime: it is linked in
  bool has_symbols = false;         // there is a table of all symbols (not stripped)
};

// Nothing where the file can't be read or is no ELF file: `*why` says which.
std::optional<ElfFile> read_elf(const std::string& path, std::string* why);

// How a program reaches CUDA, by its file.
enum class RuntimeKind {
  kNone,                  // nothing of CUDA is to be seen (an interpreter, or a program that loads libraries itself)
  kDriver,                // linked to libcuda
  kShared,                // linked to libcudart
  kStatic,                // the runtime is linked in
  kStaticWithoutSymbols,  // device code is there, and no runtime is named
};
RuntimeKind runtime_kind(const ElfFile& file);
const char* to_string(RuntimeKind kind);

}  // namespace memopt::tools
