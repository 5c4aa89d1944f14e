// cuLibrary*. No managed variables and no unified functions: CUDA_ERROR_NOT_FOUND.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "module/load.h"

using namespace cudasim;

namespace {

CUresult load_library(CallSite& site, Driver& driver, const JitLog& log, CUlibrary* out,
                      const std::function<std::span<const std::byte>()>& bytes) {
  return with_image_errors(site.symbol, log, [&] {
    Modules::Impl& modules = driver.modules.impl();
    *out = modules.add_library(modules.read(bytes())).handle;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUDASIM_API cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option* jit_options, void** jit_values,
                              unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count) {
  static CallSite site{"cuLibraryLoadData"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr || code == nullptr || (count != 0 && (options == nullptr || values == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    JitLog log;
    if (const CUresult result = log.read(jit_count, jit_options, jit_values); result != CUDA_SUCCESS) return result;
    return load_library(site, driver, log, out, [&] { return image_at(code); });
  });
}

CUDASIM_API cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* jit_options, void** jit_values,
                                  unsigned int jit_count, CUlibraryOption* options, void** values, unsigned int count) {
  static CallSite site{"cuLibraryLoadFromFile"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr || path == nullptr || (count != 0 && (options == nullptr || values == nullptr)))
      return CUDA_ERROR_INVALID_VALUE;
    JitLog log;
    if (const CUresult result = log.read(jit_count, jit_options, jit_values); result != CUDA_SUCCESS) return result;
    std::vector<std::byte> bytes;
    if (const CUresult result = read_file(path, bytes); result != CUDA_SUCCESS) return result;
    return load_library(site, driver, log, out, [&] { return std::span<const std::byte>(bytes); });
  });
}

CUDASIM_API cuLibraryUnload(CUlibrary handle) {
  static CallSite site{"cuLibraryUnload"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) { return driver.modules.impl().unload(handle); });
}

CUDASIM_API cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  static CallSite site{"cuLibraryGetKernel"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LoadedLibrary* const library = driver.modules.impl().libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const LoadedKernel* const kernel = Modules::Impl::find_kernel(*library, name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    *out = kernel->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  static CallSite site{"cuLibraryGetKernelCount"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const LoadedLibrary* const library = driver.modules.impl().libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned>(library->kernels.size());
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuLibraryEnumerateKernels(CUkernel* out, unsigned int count, CUlibrary handle) {
  static CallSite site{"cuLibraryEnumerateKernels"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    if (out == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    const LoadedLibrary* const library = driver.modules.impl().libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (std::size_t i = 0; i < count && i < library->kernels.size(); ++i) out[i] = library->kernels[i]->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  static CallSite site{"cuLibraryGetModule"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Modules::Impl& modules = driver.modules.impl();
    LoadedLibrary* const library = modules.libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    LoadedModule* module = nullptr;
    const CUresult result = modules.module_of(*library, context, &module);
    if (result == CUDA_SUCCESS) *out = module->handle;
    return result;
  });
}

CUDASIM_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary handle, const char* name) {
  static CallSite site{"cuLibraryGetGlobal"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (name == nullptr || (address == nullptr && size == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    Modules::Impl& modules = driver.modules.impl();
    LoadedLibrary* const library = modules.libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    LoadedModule* module = nullptr;
    if (const CUresult result = modules.module_of(*library, context, &module); result != CUDA_SUCCESS) return result;
    const auto global = module->globals.find(name);
    if (global == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = global->second.address;
    if (size != nullptr) *size = global->second.size;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary handle, const char*) {
  static CallSite site{"cuLibraryGetManaged"};
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    return driver.modules.impl().libraries.find(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
  });
}
