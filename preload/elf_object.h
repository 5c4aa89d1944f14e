// Reading the dynamic symbols of objects that the loader has mapped, without calling dlsym.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace memopt::preload {

// The dynamic section of one loaded object. A view: valid as long as the object stays loaded.
class ElfObject {
 public:
  constexpr ElfObject() = default;
  explicit ElfObject(const dl_phdr_info& info) noexcept;
  // Without its extent: contains() is not known.
  explicit ElfObject(const link_map& map) noexcept;

  // Address of a function (or untyped symbol) that the object itself defines, the default version where there are
  // several; null if none.
  void* find_function(const char* name) const noexcept;
  bool contains(const void* address) const noexcept;
  const char* path() const { return path_; }
  bool empty() const { return symbols_ == nullptr; }

  // Calls visit(symbol name, address of the slot) for each reference that is bound to a function of that name.
  template <typename Visit>
  void for_each_reference(Visit&& visit) const {
    for (const auto& [relocations, bytes] :
         {Table{jump_relocations_, jump_bytes_}, Table{relocations_, relocation_bytes_}}) {
      if (relocations == nullptr) continue;
      for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
        const auto type = ELF64_R_TYPE(relocations[i].r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(relocations[i].r_info)];
        visit(strings_ + symbol.st_name, reinterpret_cast<void* const*>(base_ + relocations[i].r_offset));
      }
    }
  }

 private:
  struct Table {
    const ElfW(Rela) * entries;
    std::size_t bytes;
  };

  void read_dynamic(const ElfW(Dyn) * dynamic) noexcept;
  void* function_at(std::uint32_t index, const char* name, bool* is_default) const noexcept;

  ElfW(Addr) base_ = 0;
  ElfW(Addr) low_ = 0;
  ElfW(Addr) high_ = 0;
  const char* path_ = "";
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const ElfW(Word) * sysv_hash_ = nullptr;
  const ElfW(Rela) * relocations_ = nullptr;
  std::size_t relocation_bytes_ = 0;
  const ElfW(Rela) * jump_relocations_ = nullptr;
  std::size_t jump_bytes_ = 0;
};

// Calls visit(object) for each loaded object of this namespace in load order, until it returns true; says whether one
// did. The loader's lock is held meanwhile: visit only reads.
template <typename Visit>
bool any_loaded_object(Visit&& visit) noexcept {
  const auto callback = [](dl_phdr_info* info, std::size_t, void* data) noexcept -> int {
    return (*static_cast<std::remove_reference_t<Visit>*>(data))(ElfObject(*info)) ? 1 : 0;
  };
  return dl_iterate_phdr(callback, &visit) != 0;
}

// The object that contains the address; empty() if none.
ElfObject object_of(const void* address) noexcept;

}  // namespace memopt::preload
