// A weak definition of every entry point: a directly linked program loads whatever it names. Where a room of this
// library has a real definition, that one wins. A stub counts its call, says its name once and refuses.
//
// Must not see cuda.h: symbols are defined here without their types, which on this machine's calling conventions is
// harmless for functions that look at no parameter.
#include "api/stubs.h"

#define MEMOPT_ENTRY(base, version, per_thread, symbol)                          \
  extern "C" __attribute__((visibility("hidden"))) int cudasim_stub_##symbol() { \
    static cudasim::StubSite site{#symbol};                                      \
    return cudasim::refuse(site);                                                \
  }                                                                              \
  extern "C" __attribute__((weak, alias("cudasim_stub_" #symbol), visibility("default"))) int symbol();
#include "memopt_entry_points/table.inc"
#undef MEMOPT_ENTRY
