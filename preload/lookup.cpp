// What dlsym and dlvsym answer for names that begin with "cu" (entry.S): three cases.
//
//   RTLD_DEFAULT, RTLD_NEXT   The real function answers, called as by the program; our exported symbol is found where
//   the driver's would
//                             be. Only if nobody but us has such a function the answer must be "no such symbol", as
//                             without us.
//   a handle                  The real function answers first. If it has found the driver's function, ours is given
//   instead. another interposer asks   A library that exports the same name itself looks for what it wraps: it gets the
//   real one, or the two
//                             would call each other for ever.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "agent/process/options.h"
#include "preload/elf_object.h"
#include "preload/hook_table.h"
#include "preload/real_lookup.h"

namespace memopt::preload {
namespace {

// Callers for which the third case was ruled out, one per hook: repeated look-ups from one place need no search.
constinit const void* g_plain_caller[kHookCount] = {};
constinit bool g_looked_up = false;

bool is_defined_by_another(const char* symbol, bool only_after_us) noexcept {
  bool past_us = !only_after_us;
  return any_loaded_object([&](const ElfObject& object) {
    if (object.contains(trampoline_of(Hook{}))) {
      past_us = true;
      return false;
    }
    return past_us && object.find_function(symbol) != nullptr;
  });
}

// Null, and the message for dlerror.
void* no_such_symbol(const char* symbol) noexcept { return real_dlsym(RTLD_NEXT, symbol); }

bool is_interposer(Hook hook, const void* caller) noexcept {
  const void** const known = &g_plain_caller[static_cast<std::size_t>(hook)];
  if (__atomic_load_n(known, __ATOMIC_RELAXED) == caller) return false;
  if (object_of(caller).find_function(symbol_of(hook)) != nullptr) return true;
  __atomic_store_n(known, caller, __ATOMIC_RELAXED);
  return false;
}

// By handle.
void* look_up(Hook hook, void* handle, const char* symbol, const char* version, const void* caller) noexcept {
  void* const found = version != nullptr ? real_dlvsym(handle, symbol, version) : real_dlsym(handle, symbol);
  if (found == nullptr) return nullptr;
  void* answer = found;
  if (is_trampoline(found)) {
    if (!is_defined_by_another(symbol, false)) return no_such_symbol(symbol);
  } else if (!agent::disabled() && !is_interposer(hook, caller) && adopt(hook, found)) {
    answer = trampoline_of(hook);
  }
  dlerror();  // a successful look-up leaves no message, whatever we did in between
  return answer;
}

// Another library with a dlsym of its own asks for the next one, by libc's version of it or by a handle, and would get
// libc's, past us: it gets ours, which hands on. But not if it comes after us, since ours hands on to it. Null: the
// real function is to answer.
void* look_up_lookup(void* handle, const char* symbol, const char* version, const void* caller) noexcept {
  void* const ours = std::strcmp(symbol, "dlsym") == 0    ? reinterpret_cast<void*>(&memopt_dlsym)
                     : std::strcmp(symbol, "dlvsym") == 0 ? reinterpret_cast<void*>(&memopt_dlvsym)
                                                          : nullptr;
  const bool by_scope = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
  // Without a version our own symbol is found in its turn.
  if (ours == nullptr || (by_scope && version == nullptr) || agent::disabled()) return nullptr;
  const ElfObject asking = object_of(caller);
  if (asking.empty() || asking.contains(ours)) return nullptr;
  if (asking.find_function(symbol) != nullptr && !is_before_us(caller)) return nullptr;
  void* const found =
      version != nullptr ? real_dlvsym(by_scope ? RTLD_DEFAULT : handle, symbol, version) : real_dlsym(handle, symbol);
  if (found == nullptr || !object_of(reinterpret_cast<const void*>(&std::strtol)).contains(found)) return nullptr;
  dlerror();
  return ours;
}

}  // namespace

bool is_before_us(const void* address) noexcept {
  bool before = false;
  any_loaded_object([&](const ElfObject& object) {
    before = object.contains(address);
    return before || object.contains(trampoline_of(Hook{}));
  });
  return before;
}

bool a_name_was_looked_up() noexcept { return __atomic_load_n(&g_looked_up, __ATOMIC_RELAXED); }

// From entry.S. True: *answer is the answer. False: the real function is to be called as if by the program.
extern "C" [[gnu::visibility("hidden")]] bool memopt_lookup(void* handle, const char* symbol, const char* version,
                                                            const void* caller, void** answer) noexcept {
  Hook hook;
  if (!find_hook(symbol, &hook)) {
    *answer = look_up_lookup(handle, symbol, version, caller);
    return *answer != nullptr;
  }
  if (!a_name_was_looked_up()) __atomic_store_n(&g_looked_up, true, __ATOMIC_RELAXED);
  if (handle != RTLD_DEFAULT && handle != RTLD_NEXT) {
    *answer = look_up(hook, handle, symbol, version, caller);
    return true;
  }
  // Our symbols have no version, and a look-up that names one does not find them.
  if (version != nullptr || is_defined_by_another(symbol, handle == RTLD_NEXT)) return false;
  *answer = no_such_symbol(symbol);
  return true;
}

}  // namespace memopt::preload
