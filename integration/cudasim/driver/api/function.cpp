// cuFunc* and cuKernel*: attributes, names, parameters. Where the driver takes a function, a kernel of a library will
// do too.
#define __CUDA_API_VERSION_INTERNAL
#include "api/call.h"
#include "module/function_attributes.h"

using namespace cudasim;

namespace {

// Runs `body` with the function of a CUfunction or CUkernel.
CUresult with_function(CallSite& site, CUfunction handle,
                       const std::function<CUresult(Driver&, LoadedFunction&)>& body) {
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    LoadedFunction* function = nullptr;
    const CUresult result = driver.modules.impl().function_of(handle, context, &function);
    return result == CUDA_SUCCESS ? body(driver, *function) : result;
  });
}

CUresult with_kernel(CallSite& site, CUkernel handle, const std::function<CUresult(Driver&, LoadedKernel&)>& body) {
  return call(site, Needs::kInit, [&](Driver& driver, ContextId) {
    LoadedKernel* const kernel = driver.modules.impl().kernels.find(handle);
    return kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(driver, *kernel);
  });
}

constexpr bool is_cache_config(CUfunc_cache config) {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

}  // namespace

CUDASIM_API cuFuncGetAttribute(int* out, CUfunction_attribute attribute, CUfunction handle) {
  static CallSite site{"cuFuncGetAttribute"};
  return with_function(site, handle, [&](Driver& driver, LoadedFunction& function) {
    return get_attribute(driver.config.device, *function.module->image, *function.image, function.settings, attribute,
                         out);
  });
}

CUDASIM_API cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  static CallSite site{"cuFuncSetAttribute"};
  return with_function(site, handle, [&](Driver& driver, LoadedFunction& function) {
    return set_attribute(driver.config.device, *function.image, function.settings, attribute, value);
  });
}

CUDASIM_API cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  static CallSite site{"cuFuncSetCacheConfig"};
  return with_function(site, handle, [&](Driver&, LoadedFunction&) {
    return is_cache_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUDASIM_API cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  static CallSite site{"cuFuncSetSharedMemConfig"};
  return with_function(site, handle, [&](Driver&, LoadedFunction&) { return CUDA_SUCCESS; });
}

CUDASIM_API cuFuncGetModule(CUmodule* out, CUfunction handle) {
  static CallSite site{"cuFuncGetModule"};
  return with_function(site, handle, [&](Driver&, LoadedFunction& function) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = function.module->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuFuncGetName(const char** out, CUfunction handle) {
  static CallSite site{"cuFuncGetName"};
  return with_function(site, handle, [&](Driver&, LoadedFunction& function) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = function.image->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  static CallSite site{"cuFuncGetParamInfo"};
  return with_function(site, handle, [&](Driver&, LoadedFunction& function) {
    return parameter_info(*function.image, index, offset, size);
  });
}

// Functions are there as soon as their module is.
CUDASIM_API cuFuncLoad(CUfunction handle) {
  static CallSite site{"cuFuncLoad"};
  return with_function(site, handle, [&](Driver&, LoadedFunction&) { return CUDA_SUCCESS; });
}

CUDASIM_API cuFuncIsLoaded(CUfunctionLoadingState* out, CUfunction handle) {
  static CallSite site{"cuFuncIsLoaded"};
  return with_function(site, handle, [&](Driver&, LoadedFunction&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  static CallSite site{"cuKernelGetFunction"};
  return call(site, Needs::kContext, [&](Driver& driver, ContextId context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Modules::Impl& modules = driver.modules.impl();
    if (modules.kernels.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    LoadedFunction* function = nullptr;
    const CUresult result = modules.function_of(reinterpret_cast<CUfunction>(handle), context, &function);
    if (result == CUDA_SUCCESS) *out = function->handle;
    return result;
  });
}

CUDASIM_API cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  static CallSite site{"cuKernelGetLibrary"};
  return with_kernel(site, handle, [&](Driver&, LoadedKernel& kernel) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = kernel.library->handle;
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuKernelGetAttribute(int* out, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  static CallSite site{"cuKernelGetAttribute"};
  return with_kernel(site, handle, [&](Driver& driver, LoadedKernel& kernel) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return get_attribute(driver.config.device, *kernel.library->image, *kernel.image, kernel.settings, attribute, out);
  });
}

// For this kernel in contexts to come and in those that have it already.
CUDASIM_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  static CallSite site{"cuKernelSetAttribute"};
  return with_kernel(site, handle, [&](Driver& driver, LoadedKernel& kernel) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    const CUresult result = set_attribute(driver.config.device, *kernel.image, kernel.settings, attribute, value);
    if (result != CUDA_SUCCESS) return result;
    for (const auto& [context, module] : kernel.library->modules) {
      set_attribute(driver.config.device, *kernel.image, module->functions[kernel.index]->settings, attribute, value);
    }
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
  static CallSite site{"cuKernelSetCacheConfig"};
  return with_kernel(site, handle, [&](Driver&, LoadedKernel&) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return is_cache_config(config) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUDASIM_API cuKernelGetName(const char** out, CUkernel handle) {
  static CallSite site{"cuKernelGetName"};
  return with_kernel(site, handle, [&](Driver&, LoadedKernel& kernel) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = kernel.image->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUDASIM_API cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  static CallSite site{"cuKernelGetParamInfo"};
  return with_kernel(site, handle,
                     [&](Driver&, LoadedKernel& kernel) { return parameter_info(*kernel.image, index, offset, size); });
}
