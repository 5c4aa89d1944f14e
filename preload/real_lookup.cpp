#include "preload/real_lookup.h"

#include <link.h>

#include "preload/elf_object.h"

namespace {

void* no_dlsym(void*, const char*) { return nullptr; }
void* no_dlvsym(void*, const char*, const char*) { return nullptr; }

// The first object after ours that defines the name. dlsym cannot be asked for itself, and dlvsym is interposed too; so
// the symbol tables are read. Another library's dlsym is taken in its turn: without us it would be called as well. This
// cannot run in circles: a dlsym that calls the public dlsym would call itself without us.
//
// The list is walked without the loader's lock, and not by dl_iterate_phdr, which others interpose and may not be ready
// to serve (a sanitizer's runtime looks up functions while it starts). What is read are objects of the program's start,
// which are never unloaded: libc, which has the name, is the last that can be reached.
void* next_definition(const char* name) {
  const link_map* map = _r_debug.r_map;
  while (map != nullptr && map->l_ld != _DYNAMIC) map = map->l_next;
  if (map == nullptr) return nullptr;
  for (map = map->l_next; map != nullptr; map = map->l_next) {
    if (void* const found = memopt::preload::ElfObject(*map).find_function(name)) return found;
  }
  // Loaded late, by the driver (injection.cpp): the program's is before us.
  for (map = _r_debug.r_map; map != nullptr && map->l_ld != _DYNAMIC; map = map->l_next) {
    if (void* const found = memopt::preload::ElfObject(*map).find_function(name)) return found;
  }
  return nullptr;
}

}  // namespace

// Concurrent first calls find and store the same.
extern "C" void memopt_find_real_lookups() noexcept {
  auto dlsym_found = reinterpret_cast<decltype(memopt_real_dlsym)>(next_definition("dlsym"));
  auto dlvsym_found = reinterpret_cast<decltype(memopt_real_dlvsym)>(next_definition("dlvsym"));
  if (dlsym_found == nullptr) dlsym_found = no_dlsym;
  if (dlvsym_found == nullptr) dlvsym_found = no_dlvsym;
  __atomic_store_n(&memopt_real_dlvsym, dlvsym_found, __ATOMIC_RELAXED);
  __atomic_store_n(&memopt_real_dlsym, dlsym_found, __ATOMIC_RELAXED);
}
