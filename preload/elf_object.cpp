#include "preload/elf_object.h"

namespace memopt::preload {
namespace {

// No call of any library: this code serves look-ups before other libraries, those that interpose strcmp included, have
// started.
bool are_equal(const char* a, const char* b) noexcept {
  while (*a == *b && *a != '\0') {
    ++a;
    ++b;
  }
  return *a == *b;
}

}  // namespace

ElfObject::ElfObject(const dl_phdr_info& info) noexcept
    : base_(info.dlpi_addr), path_(info.dlpi_name != nullptr ? info.dlpi_name : "") {
  const ElfW(Dyn)* dynamic = nullptr;
  low_ = ~ElfW(Addr){0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(base_ + segment.p_vaddr);
    if (segment.p_type != PT_LOAD) continue;
    if (base_ + segment.p_vaddr < low_) low_ = base_ + segment.p_vaddr;
    if (base_ + segment.p_vaddr + segment.p_memsz > high_) high_ = base_ + segment.p_vaddr + segment.p_memsz;
  }
  if (dynamic != nullptr) read_dynamic(dynamic);
}

ElfObject::ElfObject(const link_map& map) noexcept
    : base_(map.l_addr), low_(map.l_addr), high_(map.l_addr), path_(map.l_name != nullptr ? map.l_name : "") {
  if (map.l_ld != nullptr) read_dynamic(map.l_ld);
}

void ElfObject::read_dynamic(const ElfW(Dyn) * dynamic) noexcept {
  // The loader has relocated these pointers in place, except in read-only dynamic sections (the vDSO's).
  const auto absolute = [&](ElfW(Addr) value) { return value < low_ ? base_ + value : value; };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_STRTAB:
        strings_ = reinterpret_cast<const char*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_VERSYM:
        versions_ = reinterpret_cast<const ElfW(Half)*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_GNU_HASH:
        gnu_hash_ = reinterpret_cast<const std::uint32_t*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_HASH:
        sysv_hash_ = reinterpret_cast<const ElfW(Word)*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_RELA:
        relocations_ = reinterpret_cast<const ElfW(Rela)*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_RELASZ:
        relocation_bytes_ = dynamic->d_un.d_val;
        break;
      case DT_JMPREL:
        jump_relocations_ = reinterpret_cast<const ElfW(Rela)*>(absolute(dynamic->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        jump_bytes_ = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (strings_ == nullptr) symbols_ = nullptr;
}

bool ElfObject::contains(const void* address) const noexcept {
  const auto value = reinterpret_cast<ElfW(Addr)>(address);
  return value >= low_ && value < high_;
}

void* ElfObject::function_at(std::uint32_t index, const char* name, bool* is_default) const noexcept {
  const ElfW(Sym)& symbol = symbols_[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return nullptr;
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  if (type != STT_FUNC && type != STT_NOTYPE) return nullptr;
  if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || !are_equal(strings_ + symbol.st_name, name)) return nullptr;
  constexpr ElfW(Half) kHidden = 0x8000;  // an old version, kept for old programs
  *is_default = versions_ == nullptr || (versions_[index] & kHidden) == 0;
  return reinterpret_cast<void*>(base_ + symbol.st_value);
}

void* ElfObject::find_function(const char* name) const noexcept {
  if (symbols_ == nullptr) return nullptr;
  void* fallback = nullptr;
  bool is_default = false;
  if (gnu_hash_ != nullptr) {
    // Header: buckets, first hashed symbol, bloom words, bloom shift; then bloom words, buckets, one hash per symbol
    // with the lowest bit set at the end of each chain.
    const std::uint32_t bucket_count = gnu_hash_[0];
    const std::uint32_t first = gnu_hash_[1];
    const std::uint32_t bloom_words = gnu_hash_[2];
    const auto* const bloom = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
    const auto* const buckets = reinterpret_cast<const std::uint32_t*>(bloom + bloom_words);
    const std::uint32_t* const chain = buckets + bucket_count;
    if (bucket_count == 0 || bloom_words == 0) return nullptr;
    std::uint32_t hash = 5381;
    for (const char* at = name; *at != '\0'; ++at) hash = hash * 33 + static_cast<unsigned char>(*at);
    constexpr std::uint32_t kBits = sizeof(ElfW(Addr)) * 8;
    const ElfW(Addr) word = bloom[(hash / kBits) % bloom_words];
    const ElfW(Addr) mask = (ElfW(Addr){1} << (hash % kBits)) | (ElfW(Addr){1} << ((hash >> gnu_hash_[3]) % kBits));
    if ((word & mask) != mask) return nullptr;
    std::uint32_t index = buckets[hash % bucket_count];
    if (index < first) return nullptr;
    for (;; ++index) {
      const std::uint32_t candidate = chain[index - first];
      if ((candidate | 1) == (hash | 1)) {
        void* const address = function_at(index, name, &is_default);
        if (address != nullptr && is_default) return address;
        if (address != nullptr) fallback = address;
      }
      if ((candidate & 1) != 0) return fallback;
    }
  }
  if (sysv_hash_ == nullptr) return nullptr;
  const std::uint32_t symbol_count = sysv_hash_[1];
  for (std::uint32_t index = 1; index < symbol_count; ++index) {
    void* const address = function_at(index, name, &is_default);
    if (address != nullptr && is_default) return address;
    if (address != nullptr) fallback = address;
  }
  return fallback;
}

ElfObject object_of(const void* address) noexcept {
  ElfObject found;
  any_loaded_object([&](const ElfObject& object) {
    if (!object.contains(address)) return false;
    found = object;
    return true;
  });
  return found;
}

}  // namespace memopt::preload
