// The program's loaded objects: which one an address lies in, and where in it.
//
// Not thread-safe, but for generation(): its user has a lock (call_stacks.cpp). Memory is mapped, never the program's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/process/mapped_memory.h"

struct dl_phdr_info;

namespace memopt::agent {

// The same in every run of the same program: a module is named by the hash of its path. Code that lies in no module
// (made at run time) is 0, 0.
struct ModulePlace {
  std::uint64_t module = 0;
  std::uint64_t offset = 0;
};

class LoadedModules {
 public:
  constexpr LoadedModules() = default;

  // Looks whether objects were loaded or unloaded, and if so reads the list anew. True if some were unloaded.
  bool refresh() noexcept;

  // Writes those that are not yet in the recording into it (kModule: path, a newline, build id in hexadecimal).
  void write_new() noexcept;
  void write_again() noexcept;  // all of them, next time

  ModulePlace place_of(std::uint64_t address) const noexcept;

  // Grows with each change.
  std::uint64_t generation() const noexcept { return __atomic_load_n(&generation_, __ATOMIC_RELAXED); }

  void forget_after_fork() noexcept;

 private:
  struct Module {
    std::uint64_t begin;  // of the first segment
    std::uint64_t end;    // of the last
    std::uint64_t base;
    std::uint64_t path_hash;
    const char* text;  // of the record
    std::uint32_t text_bytes;
    bool written;
  };

  static int add(dl_phdr_info* info, std::size_t bytes, void* self) noexcept;
  const char* make_text(const dl_phdr_info& info, std::string_view path, std::uint32_t* bytes) noexcept;

  static constexpr std::size_t kMaxModules = 4096;

  std::uint64_t generation_ = 0;
  std::uint64_t added_ = 0;  // the dynamic linker's counts
  std::uint64_t removed_ = 0;
  Module* modules_ = nullptr;  // sorted by begin
  Module* before_ = nullptr;   // the list before the last refresh
  std::size_t count_ = 0;
  std::size_t count_before_ = 0;
  MappedBump texts_;
};

LoadedModules& modules() noexcept;

}  // namespace memopt::agent
