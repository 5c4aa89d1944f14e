#include "agent/stacks/imports.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace memopt::agent {
namespace {

struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * tables[2] = {};
  std::size_t bytes[2] = {};
};

Imports read_imports(const link_map& map) noexcept {
  Imports imports;
  const auto address = [&](ElfW(Addr) value) {
    // The dynamic linker has made addresses of these offsets, but for objects that it may not write.
    return reinterpret_cast<const void*>(value < map.l_addr ? value + map.l_addr : value);
  };
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        imports.symbols = static_cast<const ElfW(Sym)*>(address(entry->d_un.d_ptr));
        break;
      case DT_STRTAB:
        imports.names = static_cast<const char*>(address(entry->d_un.d_ptr));
        break;
      case DT_JMPREL:
        imports.tables[0] = static_cast<const ElfW(Rela)*>(address(entry->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        imports.bytes[0] = entry->d_un.d_val;
        break;
      case DT_RELA:
        imports.tables[1] = static_cast<const ElfW(Rela)*>(address(entry->d_un.d_ptr));
        break;
      case DT_RELASZ:
        imports.bytes[1] = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return imports;
}

// What is only read once the library is bound. Its headers are at its beginning.
bool is_read_only(const link_map& map, std::uintptr_t slot) noexcept {
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(map.l_addr);
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(map.l_addr + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    const std::uintptr_t begin = map.l_addr + segments[i].p_vaddr;
    if (segments[i].p_type == PT_GNU_RELRO && slot >= begin && slot < begin + segments[i].p_memsz) return true;
  }
  return false;
}

bool write_slot(const link_map& map, std::uintptr_t slot, void* function) noexcept {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(slot / page_bytes * page_bytes);
  const bool read_only = is_read_only(map, slot);
  if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(reinterpret_cast<void**>(slot), function, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace

bool replace_import(void* handle, const char* name, void* function) noexcept {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  const Imports imports = read_imports(*map);
  if (imports.symbols == nullptr || imports.names == nullptr) return false;
  bool any = false;
  for (int table = 0; table < 2; ++table) {
    const std::size_t count = imports.tables[table] == nullptr ? 0 : imports.bytes[table] / sizeof(ElfW(Rela));
    for (std::size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& entry = imports.tables[table][i];
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      if (std::strcmp(imports.names + imports.symbols[ELF64_R_SYM(entry.r_info)].st_name, name) != 0) continue;
      if (!write_slot(*map, map->l_addr + entry.r_offset, function)) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace memopt::agent
