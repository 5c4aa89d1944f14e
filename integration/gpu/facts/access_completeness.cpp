#include <dlfcn.h>

#include "device.h"
#include "fact.h"

namespace facts {

// CUPTI reports the accesses of a kernel only through its profiling interfaces, which need counters that many machines
// withhold; so this says whether the library is there, and claims nothing.
void access_completeness(const Settings&, Findings& findings) {
  const Device device;
  for (const char* const name : {"libcupti.so.13", "libcupti.so"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    findings.add("library", name);
    std::uint32_t version = 0;
    if (auto* const get = reinterpret_cast<int (*)(std::uint32_t*)>(dlsym(library, "cuptiGetVersion"))) get(&version);
    findings.add("version", version);
    throw std::runtime_error("not measured: CUPTI is there, but comparing accesses with it is not built");
  }
  throw std::runtime_error("not available: CUPTI (libcupti.so.13) can't be loaded");
}

}  // namespace facts
