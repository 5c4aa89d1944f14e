// cuLink*: PTX of several modules becomes one text, whose names mean each other; it is handed out as the "cubin" that
// cuModuleLoadData takes. Machine code can't be linked: alone it is handed through.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "api/call.h"
#include "module/load.h"

struct CUlinkState_st {
  std::vector<std::byte> image;  // ends in a zero where it is text
  unsigned inputs = 0;
  bool is_text = false;
  cudasim::JitLog log;
};

using namespace cudasim;

namespace {

// Under the driver's lock. Never destroyed.
std::vector<std::unique_ptr<CUlinkState_st>>& states() {
  static auto* const all = new std::vector<std::unique_ptr<CUlinkState_st>>;
  return *all;
}

CUlinkState_st* find_state(CUlinkState state) {
  const auto found = std::ranges::find(states(), state, [](const auto& s) { return s.get(); });
  return found == states().end() ? nullptr : found->get();
}

CUresult create(CallSite& site, unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  return call(site, Needs::kContext, [&](Driver&, ContextId) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto state = std::make_unique<CUlinkState_st>();
    if (const CUresult result = state->log.read(count, options, values); result != CUDA_SUCCESS) return result;
    *out = states().emplace_back(std::move(state)).get();
    return CUDA_SUCCESS;
  });
}

CUresult add(const char* symbol, Driver& driver, CUlinkState_st& state, CUjitInputType type,
             std::span<const std::byte> bytes) {
  const bool is_text = type == CU_JIT_INPUT_PTX;
  if (!is_text && type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_NOT_SUPPORTED;
  return with_image_errors(symbol, state.log, [&] {
    if (state.inputs != 0 && (!is_text || !state.is_text))
      throw ImageError(CUDA_ERROR_NOT_SUPPORTED, "link: machine code can't be linked here, PTX can");
    std::span<const std::byte> input = bytes;
    if (is_text) {
      input = input.first(static_cast<std::size_t>(std::ranges::find(input, std::byte{0}) - input.begin()));
      read_ptx(input);  // what is wrong is said now
    } else {
      driver.modules.impl().read(input);
    }
    if (!state.image.empty()) state.image.back() = std::byte{'\n'};  // in the place of the zero
    state.image.insert(state.image.end(), input.begin(), input.end());
    if (is_text) state.image.push_back(std::byte{0});
    state.is_text = is_text;
    ++state.inputs;
    return CUDA_SUCCESS;
  });
}

CUresult add_data(CallSite& site, CUlinkState handle, CUjitInputType type, void* data, std::size_t size) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    CUlinkState_st* const state = find_state(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return add(site.symbol, driver, *state, type, {static_cast<const std::byte*>(data), size});
  });
}

CUresult add_file(CallSite& site, CUlinkState handle, CUjitInputType type, const char* path) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    CUlinkState_st* const state = find_state(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> bytes;
    if (const CUresult result = read_file(path, bytes); result != CUDA_SUCCESS) return result;
    return add(site.symbol, driver, *state, type, bytes);
  });
}

}  // namespace

CUDASIM_API cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  static CallSite site{"cuLinkCreate"};
  return create(site, count, options, values, out);
}

CUDASIM_API cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  static CallSite site{"cuLinkCreate_v2"};
  return create(site, count, options, values, out);
}

CUDASIM_API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*, unsigned int,
                          CUjit_option*, void**) {
  static CallSite site{"cuLinkAddData"};
  return add_data(site, state, type, data, size);
}

CUDASIM_API cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*, unsigned int,
                             CUjit_option*, void**) {
  static CallSite site{"cuLinkAddData_v2"};
  return add_data(site, state, type, data, size);
}

CUDASIM_API cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int, CUjit_option*,
                          void**) {
  static CallSite site{"cuLinkAddFile"};
  return add_file(site, state, type, path);
}

CUDASIM_API cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int, CUjit_option*,
                             void**) {
  static CallSite site{"cuLinkAddFile_v2"};
  return add_file(site, state, type, path);
}

CUDASIM_API cuLinkComplete(CUlinkState handle, void** out, size_t* size) {
  static CallSite site{"cuLinkComplete"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    CUlinkState_st* const state = find_state(handle);
    if (state == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (out == nullptr || state->inputs == 0) return CUDA_ERROR_INVALID_VALUE;
    return with_image_errors(site.symbol, state->log, [&] {
      driver.modules.impl().read(state->image);
      *out = state->image.data();
      if (size != nullptr) *size = state->image.size();
      return CUDA_SUCCESS;
    });
  });
}

CUDASIM_API cuLinkDestroy(CUlinkState handle) {
  static CallSite site{"cuLinkDestroy"};
  return call(site, Needs::kContext, [&](Driver&, ContextId) {
    if (find_state(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    std::erase_if(states(), [&](const auto& s) { return s.get() == handle; });
    return CUDA_SUCCESS;
  });
}
