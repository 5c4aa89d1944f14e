// The frame around every entry point: driver's lock, serialize gate, checks, counters, host cost, injected errors, no
// exception gets out.
//
//   CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
//     static CallSite site{"cuMemAlloc_v2"};
//     return call(site, Needs::kContext, [&](Driver& driver, ContextId context) { … });
//   }
//
// Declarations come from cuda.h; files in api/ define __CUDA_API_VERSION_INTERNAL before it to see the old and the
// _ptsz ones. Entry points are exported by CUDASIM_API.
#pragma once
#ifndef __CUDA_API_VERSION_INTERNAL
#error \
    "define __CUDA_API_VERSION_INTERNAL before the first include: the old and the per-thread entry points are declared only then"
#endif
#include <cuda.h>

#include <functional>

#include "driver.h"

#define CUDASIM_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

namespace cudasim {

// One entry point; made once, on its first call. Host cost is looked up then.
struct CallSite {
  const char* symbol;
  explicit CallSite(const char* exported_symbol) : symbol(exported_symbol) {}
  std::uint64_t* count = nullptr;  // in Counters::calls; set under the lock on first use
  const Driver* owner = nullptr;   // whose count: a child forked before cuInit has another driver
  CallCost cost{};
  bool unsafe_in_capture = false;  // Captures::is_unsafe
};

enum class Needs {
  kNothing,  // works before cuInit; body gets ContextId::kNone or the current one
  kInit,     // CUDA_ERROR_NOT_INITIALIZED before cuInit
  kContext,  // …and CUDA_ERROR_INVALID_CONTEXT without a current context; a sticky error of the context is returned at
             // once
};

// `units`: number of handles for calls whose cost grows with it. Body returns a CUresult. std::bad_alloc becomes
// CUDA_ERROR_OUT_OF_MEMORY, anything else CUDA_ERROR_UNKNOWN with a line on stderr.
CUresult call(CallSite& site, Needs needs, const std::function<CUresult(Driver&, ContextId)>& body,
              std::uint64_t units = 1) noexcept;

}  // namespace cudasim
