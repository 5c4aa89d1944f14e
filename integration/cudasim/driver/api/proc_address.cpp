// cuGetProcAddress, cuGetExportTable, and what stands for entry points that are missing.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <cstdio>
#include <string>

#include "api/call.h"
#include "api/stubs.h"
#include "entry_table.h"

namespace cudasim {
namespace {

struct Lookup {
  void* address;
  CUdriverProcAddressQueryResult status;
};

// The newest plain ABI that `version` knows; the per-thread form of that same ABI where it is asked for and exists.
Lookup look_up(std::string_view base, int version, bool per_thread) {
  const EntryPoint* plain = nullptr;
  bool known = false;
  for (const EntryPoint& entry : entry_points()) {
    if (entry.base != base) continue;
    known = true;
    if (!entry.per_thread && entry.version <= version && (plain == nullptr || entry.version > plain->version))
      plain = &entry;
  }
  if (plain == nullptr)
    return {nullptr, known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  const EntryPoint* found = plain;
  if (per_thread) {
    for (const EntryPoint& entry : entry_points()) {
      if (!entry.per_thread || entry.base != base || entry.version > version) continue;
      const std::string_view symbol = entry.symbol;
      if (symbol.substr(0, symbol.size() - 5) == plain->symbol) found = &entry;
    }
  }
  // A stub is not handed out: programs tell by the pointer whether a feature is there.
  if (!found->implemented) return {nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  return {found->address, CU_GET_PROC_ADDRESS_SUCCESS};
}

CUresult check_request(const char* symbol, void** out, int version, cuuint64_t flags) {
  constexpr cuuint64_t kBoth = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || out == nullptr || (flags & ~kBoth) != 0 || flags == kBoth || version > kDriverVersion) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

int refuse(StubSite& stub) {
  CallSite site{stub.symbol};  // made for each call: stubs are rare and their counters are found by name
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (!stub.named)
      std::fprintf(stderr, "cudasim: %s is not implemented; it returns CUDA_ERROR_NOT_SUPPORTED\n", stub.symbol);
    stub.named = true;
    return CUDA_ERROR_NOT_SUPPORTED;
  });
}

}  // namespace cudasim

using namespace cudasim;

// As CUDA 11.3 to 11.8 had it: no status, a missing symbol is an error.
CUDASIM_API cuGetProcAddress(const char* symbol, void** out, int version, cuuint64_t flags) {
  static CallSite site{"cuGetProcAddress"};
  return call(site, Needs::kNothing, [&](Driver&, ContextId) {
    if (const CUresult bad = check_request(symbol, out, version, flags); bad != CUDA_SUCCESS) return bad;
    *out = look_up(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0).address;
    return *out == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
  });
}

// As CUDA 12 and later document it: a missing symbol is a success with a null pointer, and the status says why.
CUDASIM_API cuGetProcAddress_v2(const char* symbol, void** out, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult* status) {
  static CallSite site{"cuGetProcAddress_v2"};
  return call(site, Needs::kNothing, [&](Driver&, ContextId) {
    if (const CUresult bad = check_request(symbol, out, version, flags); bad != CUDA_SUCCESS) return bad;
    const Lookup found = look_up(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
    *out = found.address;
    if (status != nullptr) *status = found.status;
    return CUDA_SUCCESS;
  });
}

// Private tables of NVIDIA's own libraries, among them the challenge by which its runtime recognises its driver. This
// is not that driver and does not say that it is: there is no table.
CUDASIM_API cuGetExportTable(const void** table, const CUuuid* id) {
  static CallSite site{"cuGetExportTable"};
  return call(site, Needs::kNothing, [&](Driver&, ContextId) {
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
  });
}
