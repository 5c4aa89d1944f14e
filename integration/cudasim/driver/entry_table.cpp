// Must not see cuda.h: symbols are declared here without their types.
#include "entry_table.h"

#include <algorithm>
#include <vector>

#define MEMOPT_ENTRY(base, version, per_thread, symbol) \
  extern "C" int symbol();                              \
  extern "C" int cudasim_stub_##symbol();
#include "memopt_entry_points/table.inc"
#undef MEMOPT_ENTRY
// In cudaProfilerTypedefs.h, of which the list knows nothing.
extern "C" int cuProfilerStart();
extern "C" int cuProfilerStop();

namespace cudasim {

std::span<const EntryPoint> entry_points() {
  // Leaked: asked for by destructors of other libraries too.
  static const auto& table = *[] {
    auto* const rows = new std::vector<EntryPoint>{
#define MEMOPT_ENTRY(base, version, per_thread, symbol) \
  {base, version, per_thread, #symbol, reinterpret_cast<void*>(&symbol), &symbol != &cudasim_stub_##symbol},
#include "memopt_entry_points/table.inc"
#undef MEMOPT_ENTRY
        {"cuProfilerStart", 4000, false, "cuProfilerStart", reinterpret_cast<void*>(&cuProfilerStart), true},
        {"cuProfilerStop", 4000, false, "cuProfilerStop", reinterpret_cast<void*>(&cuProfilerStop), true},
    };
    std::stable_sort(rows->begin(), rows->end(),
                     [](const EntryPoint& a, const EntryPoint& b) { return a.base < b.base; });
    return rows;
  }();
  return table;
}

}  // namespace cudasim
