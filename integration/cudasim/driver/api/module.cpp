// cuModule*.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "module/load.h"

using namespace cudasim;

namespace {

CUresult load_module(Driver& driver, ContextId context, std::span<const std::byte> bytes, CUmodule* out) {
  Modules::Impl& modules = driver.modules.impl();
  LoadedModule* module = nullptr;
  const CUresult result = modules.instantiate(context, modules.read(bytes), nullptr, &module);
  if (result == CUDA_SUCCESS) *out = module->handle;
  return result;
}

CUresult load_data(CallSite& site, CUmodule* out, const void* image, unsigned count, const CUjit_option* options,
                   void* const* values) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    JitLog log;
    if (const CUresult result = log.read(count, options, values); result != CUDA_SUCCESS) return result;
    return with_image_errors(site.symbol, log, [&] { return load_module(driver, context, image_at(image), out); });
  });
}

}  // namespace

CUDASIM_API cuModuleLoad(CUmodule* out, const char* path) {
  static CallSite site{"cuModuleLoad"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> bytes;
    if (const CUresult result = read_file(path, bytes); result != CUDA_SUCCESS) return result;
    return with_image_errors(site.symbol, JitLog(), [&] { return load_module(driver, context, bytes, out); });
  });
}

CUDASIM_API cuModuleLoadData(CUmodule* out, const void* image) {
  static CallSite site{"cuModuleLoadData"};
  return load_data(site, out, image, 0, nullptr, nullptr);
}

CUDASIM_API cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int count, CUjit_option* options,
                               void** values) {
  static CallSite site{"cuModuleLoadDataEx"};
  return load_data(site, out, image, count, options, values);
}

CUDASIM_API cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  static CallSite site{"cuModuleLoadFatBinary"};
  return load_data(site, out, image, 0, nullptr, nullptr);
}

CUDASIM_API cuModuleUnload(CUmodule handle) {
  static CallSite site{"cuModuleUnload"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    Modules::Impl& modules = driver.modules.impl();
    const LoadedModule* const module = modules.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;  // cuLibraryUnload takes it down
    return modules.unload(handle);
  });
}

CUDASIM_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  static CallSite site{"cuModuleGetLoadingMode"};
  return call(site, Needs::kInit, [&](Driver&, ContextId) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  static CallSite site{"cuModuleGetFunction"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LoadedModule* const module = driver.modules.impl().modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const LoadedFunction* const function = Modules::Impl::find_function(*module, name);
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    *out = function->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  static CallSite site{"cuModuleGetFunctionCount"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const LoadedModule* const module = driver.modules.impl().modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuModuleEnumerateFunctions(CUfunction* out, unsigned int count, CUmodule handle) {
  static CallSite site{"cuModuleEnumerateFunctions"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (out == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    const LoadedModule* const module = driver.modules.impl().modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (std::size_t i = 0; i < count && i < module->functions.size(); ++i) out[i] = module->functions[i]->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule handle, const char* name) {
  static CallSite site{"cuModuleGetGlobal_v2"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId) {
    if (name == nullptr || (address == nullptr && size == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const LoadedModule* const module = driver.modules.impl().modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto global = module->globals.find(name);
    if (global == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = global->second.address;
    if (size != nullptr) *size = global->second.size;
    return CUDA_SUCCESS;
  });
}
