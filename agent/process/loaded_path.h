// The path of a loaded library, as the dynamic linker hands it to a callback of dl_iterate_phdr.
#pragma once

#include <link.h>

#include <cstddef>
#include <string_view>

namespace memopt::agent {

// Empty for the program itself; ends with a zero. ThreadSanitizer, which does not see the loader's lock, is told that
// the letters of a path are nobody else's, but not that the zero behind them is: so that one is looked for without it.
__attribute__((no_sanitize("thread"), noinline)) inline std::string_view path_of(const dl_phdr_info& info) noexcept {
  if (info.dlpi_name == nullptr) return {"", 0};
  const volatile char* const path = info.dlpi_name;  // volatile: else it would be strlen, which is watched
  std::size_t length = 0;
  while (path[length] != '\0') ++length;
  return {info.dlpi_name, length};
}

}  // namespace memopt::agent
