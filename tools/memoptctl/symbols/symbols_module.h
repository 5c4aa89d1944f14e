// Symbols of files by libdw, as a module: what libdw needs would otherwise be loaded at every start, and be missing on
// machines to which the tools are carried.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memopt::tools {

struct SymbolText {
  char* text;
  std::size_t bytes;  // what does not fit is cut off; a zero ends it
};

// The symbol that an address of the file lies in, as it is in the file's tables, and where its source is known the
// file's name and line ("a.cpp:12"); both empty where there is none, or the file is not the one with that build id
// (hexadecimal). One thread.
using SymbolOf = void (*)(const char* file, const char* build_id, std::uint64_t address, SymbolText name,
                          SymbolText line);
inline constexpr char kSymbolsRun[] = "memopt_symbol";
// Module and program must be of one build.
inline constexpr char kSymbolsVersion[] = "memopt_symbols_version";
inline constexpr char kSymbolsFile[] = "libmemopt_symbols_module.so";

}  // namespace memopt::tools
