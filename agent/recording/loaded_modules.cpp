#include "agent/recording/loaded_modules.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "agent/process/loaded_path.h"
#include "agent/recording/recorder.h"

namespace memopt::agent {
namespace {

constinit LoadedModules g_modules;

struct Counts {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
};

// Of the first object only: the counts are the same in all.
int read_counts(dl_phdr_info* info, std::size_t bytes, void* to) {
  auto& counts = *static_cast<Counts*>(to);
  if (bytes >= offsetof(dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
    counts = {info->dlpi_adds, info->dlpi_subs};
  }
  return 1;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  return hash;
}

struct BuildId {
  const unsigned char* bytes = nullptr;
  std::size_t count = 0;
};

// The notes of a loaded object are in its memory.
BuildId build_id_of(const dl_phdr_info& info) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const unsigned char*>(info.dlpi_addr + segment.p_vaddr);
    const std::size_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [align](std::size_t bytes) { return (bytes + align - 1) / align * align; };
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof(note));
      const std::size_t name = at + sizeof(note);
      const std::size_t body = name + padded(note.n_namesz);
      if (body + note.n_descsz > segment.p_memsz) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
        return {notes + body, note.n_descsz};
      }
      at = body + padded(note.n_descsz);
    }
  }
  return {};
}

}  // namespace

LoadedModules& modules() noexcept { return g_modules; }

const char* LoadedModules::make_text(const dl_phdr_info& info, std::string_view path, std::uint32_t* bytes) noexcept {
  const BuildId id = build_id_of(info);
  auto* const text = static_cast<char*>(texts_.take(path.size() + 1 + 2 * id.count));
  if (text == nullptr) return nullptr;
  std::memcpy(text, path.data(), path.size());
  char* to = text + path.size();
  *to++ = '\n';
  for (std::size_t i = 0; i < id.count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    *to++ = kDigits[id.bytes[i] >> 4];
    *to++ = kDigits[id.bytes[i] & 15];
  }
  *bytes = static_cast<std::uint32_t>(to - text);
  return text;
}

// Called with the dynamic linker's lock on its list, which code of the program never runs under.
int LoadedModules::add(dl_phdr_info* info, std::size_t, void* self) noexcept {
  auto& list = *static_cast<LoadedModules*>(self);
  if (list.count_ == kMaxModules) return 1;
  Module module{~std::uint64_t{0}, 0, info->dlpi_addr, 0, nullptr, 0, false};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    module.begin = std::min<std::uint64_t>(module.begin, info->dlpi_addr + segment.p_vaddr);
    module.end = std::max<std::uint64_t>(module.end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  if (module.begin >= module.end) return 0;
  // The program itself has no name there.
  const std::string_view named = path_of(*info);
  const std::string_view path = named.empty() ? "/proc/self/exe" : named;
  module.path_hash = hash_of(path);
  const Module* const end = list.before_ + list.count_before_;
  const Module* const known = std::find_if(static_cast<const Module*>(list.before_), end, [&](const Module& old) {
    return old.base == module.base && old.path_hash == module.path_hash && old.end == module.end;
  });
  if (known != end) {
    module.text = known->text;
    module.text_bytes = known->text_bytes;
    module.written = known->written;
  } else {
    module.text = list.make_text(*info, path, &module.text_bytes);
  }
  list.modules_[list.count_++] = module;
  return 0;
}

bool LoadedModules::refresh() noexcept {
  Counts counts;
  dl_iterate_phdr(read_counts, &counts);
  if (modules_ != nullptr && counts.added == added_ && counts.removed == removed_) return false;
  if (modules_ == nullptr) {
    modules_ = static_cast<Module*>(map_pages(kMaxModules * sizeof(Module)));
    before_ = static_cast<Module*>(map_pages(kMaxModules * sizeof(Module)));
    if (modules_ == nullptr || before_ == nullptr) {
      modules_ = nullptr;
      return false;
    }
  }
  const bool unloaded = counts.removed != removed_;
  added_ = counts.added;
  removed_ = counts.removed;
  std::swap(modules_, before_);
  count_before_ = count_;
  count_ = 0;
  dl_iterate_phdr([](dl_phdr_info* info, std::size_t bytes, void* self) { return add(info, bytes, self); }, this);
  std::sort(modules_, modules_ + count_, [](const Module& a, const Module& b) { return a.begin < b.begin; });
  __atomic_store_n(&generation_, generation_ + 1, __ATOMIC_RELAXED);
  return unloaded;
}

void LoadedModules::write_new() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    Module& module = modules_[i];
    if (module.written || module.text == nullptr) continue;
    record_named(shm::RecordKind::kModule, module.base, {module.text, module.text_bytes});
    module.written = true;
  }
}

void LoadedModules::write_again() noexcept {
  for (std::size_t i = 0; i < count_; ++i) modules_[i].written = false;
}

ModulePlace LoadedModules::place_of(std::uint64_t address) const noexcept {
  // A return address may be the first byte behind the module's last call.
  const Module* const end = modules_ + count_;
  const Module* const after =
      std::upper_bound(static_cast<const Module*>(modules_), end, address - 1,
                       [](std::uint64_t at, const Module& module) { return at < module.begin; });
  if (after == modules_ || address - 1 >= after[-1].end) return {};
  return {after[-1].path_hash, address - after[-1].base};
}

void LoadedModules::forget_after_fork() noexcept {
  // Another thread may have been in the middle of it: the memory is left alone.
  modules_ = nullptr;
  before_ = nullptr;
  count_ = 0;
  count_before_ = 0;
  texts_ = MappedBump();
}

}  // namespace memopt::agent
