#include "registry.h"

#include <fatbinary_section.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "call.h"
#include "lock.h"
#include "pointer_map.h"

namespace cudart {

struct Function {
  const void* stub;
  const char* name;  // lies in the program's image, as long as the binary is registered
  Binary* binary;
  Function* next;
  std::atomic<CUkernel> kernel;
};

struct Variable {
  const void* shadow;
  const char* name;
  size_t size;
  Binary* binary;
  bool managed;
  Variable* next;
};

struct Binary {
  const void* image;
  CUlibrary library;
  bool loaded;
  Function* functions;
  Variable* variables;
  Binary* next;
};

namespace {

Binary* g_binaries;
PointerMap<Function> g_functions;
PointerMap<Variable> g_variables;
PointerMap<CUkern_st> g_kernels;  // given out to the program

template <typename T>
T* allocate() {
  return static_cast<T*>(calloc(1, sizeof(T)));
}

// With the lock held, and the driver loaded.
cudaError_t load(Binary* binary) {
  if (binary->loaded) return cudaSuccess;
  const DriverTable& table = driver();
  if (!table.cuLibraryLoadData || !table.cuLibraryGetKernel || !table.cuLibraryGetGlobal) {
    return cudaErrorCallRequiresNewerDriver;
  }
  const CUresult result =
      table.cuLibraryLoadData(&binary->library, binary->image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  binary->loaded = result == CUDA_SUCCESS;
  return to_runtime_error(result);
}

bool asked_for_eager_loading() {
  static constinit std::atomic<int> answer{-1};  // not known yet
  int known = answer.load(std::memory_order_relaxed);
  if (known < 0) {
    const char* mode = getenv("CUDA_MODULE_LOADING");
    known = mode && strcmp(mode, "EAGER") == 0;
    answer.store(known, std::memory_order_relaxed);
  }
  return known;
}

}  // namespace

Binary* register_binary(const void* wrapper) {
  auto* binary = allocate<Binary>();
  if (!binary) return nullptr;
  const auto* control = static_cast<const __fatBinC_Wrapper_t*>(wrapper);
  // Anything else is left for the driver to make out, or to refuse.
  binary->image = control && control->magic == FATBINC_MAGIC ? control->data : wrapper;
  Guard guard;
  binary->next = g_binaries;
  g_binaries = binary;
  return binary;
}

void unregister_binary(Binary* binary) {
  if (!binary) return;
  CUlibrary library = nullptr;
  {
    Guard guard;
    Binary** link = &g_binaries;
    while (*link && *link != binary) link = &(*link)->next;
    if (!*link) return;
    *link = binary->next;
    while (Function* function = binary->functions) {
      binary->functions = function->next;
      if (g_functions.find(function->stub) == function) g_functions.erase(function->stub);
      if (const CUkernel kernel = function->kernel.load(std::memory_order_relaxed)) g_kernels.erase(kernel);
      free(function);
    }
    while (Variable* variable = binary->variables) {
      binary->variables = variable->next;
      if (g_variables.find(variable->shadow) == variable) g_variables.erase(variable->shadow);
      free(variable);
    }
    if (binary->loaded) library = binary->library;
    free(binary);
  }
  // At exit the driver may have gone before us; there is nobody left to tell.
  if (library && driver().cuLibraryUnload) driver().cuLibraryUnload(library);
}

void register_function(Binary* binary, const void* stub, const char* device_name) {
  if (!binary || !stub) return;
  auto* function = allocate<Function>();
  if (!function) return;
  function->stub = stub;
  function->name = device_name;
  function->binary = binary;
  Guard guard;
  if (!g_functions.insert(stub, function)) {
    free(function);
    return;
  }
  function->next = binary->functions;
  binary->functions = function;
}

namespace {

void add_variable(Binary* binary, const void* shadow, const char* device_name, size_t size, bool managed) {
  if (!binary || !shadow) return;
  auto* variable = allocate<Variable>();
  if (!variable) return;
  *variable = {shadow, device_name, size, binary, managed, nullptr};
  Guard guard;
  if (!g_variables.insert(shadow, variable)) {
    free(variable);
    return;
  }
  variable->next = binary->variables;
  binary->variables = variable;
}

}  // namespace

void register_variable(Binary* binary, const void* shadow, const char* device_name, size_t size) {
  add_variable(binary, shadow, device_name, size, false);
}

void register_managed_variable(Binary* binary, void** shadow, const char* device_name, size_t size) {
  add_variable(binary, shadow, device_name, size, true);
}

cudaError_t place_managed_variables(Binary* binary) {
  if (!binary) return cudaErrorInvalidResourceHandle;
  Guard guard;
  if (const cudaError_t error = load(binary); error != cudaSuccess) return error;
  for (Variable* variable = binary->variables; variable; variable = variable->next) {
    if (!variable->managed) continue;
    if (!driver().cuLibraryGetManaged) return cudaErrorCallRequiresNewerDriver;
    CUdeviceptr address = 0;
    size_t size = 0;
    const CUresult result = driver().cuLibraryGetManaged(&address, &size, binary->library, variable->name);
    if (result != CUDA_SUCCESS) return to_runtime_error(result);
    *static_cast<void**>(const_cast<void*>(variable->shadow)) = reinterpret_cast<void*>(address);
  }
  return cudaSuccess;
}

Function* find_function(const void* stub) {
  Guard guard;
  return g_functions.find(stub);
}

cudaError_t resolve(Function* function, CUkernel* kernel) {
  *kernel = function->kernel.load(std::memory_order_acquire);
  if (__builtin_expect(*kernel != nullptr, 1)) return cudaSuccess;
  if (const cudaError_t error = load_driver(); error != cudaSuccess) return error;
  Guard guard;
  *kernel = function->kernel.load(std::memory_order_relaxed);
  if (*kernel != nullptr) return cudaSuccess;  // another thread was first
  if (const cudaError_t error = load(function->binary); error != cudaSuccess) return error;
  const CUresult result = driver().cuLibraryGetKernel(kernel, function->binary->library, function->name);
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (result != CUDA_SUCCESS) return to_runtime_error(result);
  function->kernel.store(*kernel, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t resolve_symbol(const void* stub_or_kernel, CUkernel* kernel) {
  Function* function = nullptr;
  {
    Guard guard;
    function = g_functions.find(stub_or_kernel);
    if (!function) {
      *kernel = g_kernels.find(stub_or_kernel);
      return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    }
  }
  return resolve(function, kernel);
}

cudaError_t note_kernel(CUkernel kernel) {
  Guard guard;
  return g_kernels.insert(kernel, kernel) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t resolve_variable(const void* shadow, CUdeviceptr* address, size_t* size) {
  if (const cudaError_t error = enter_context(); error != cudaSuccess) return error;
  CUlibrary library = nullptr;
  const char* name = nullptr;
  bool managed = false;
  {
    Guard guard;
    const Variable* variable = g_variables.find(shadow);
    if (!variable) return cudaErrorInvalidSymbol;
    if (const cudaError_t error = load(variable->binary); error != cudaSuccess) return error;
    library = variable->binary->library;
    name = variable->name;
    managed = variable->managed;
  }
  const cudaError_t error =
      managed ? ask_context<&DriverTable::cuLibraryGetManaged>(kDefaultStream, address, size, library, name)
              : ask_context<&DriverTable::cuLibraryGetGlobal>(kDefaultStream, address, size, library, name);
  return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

cudaError_t load_eagerly_if_asked() {
  if (!asked_for_eager_loading()) return cudaSuccess;
  Guard guard;
  for (Binary* binary = g_binaries; binary; binary = binary->next) {
    if (const cudaError_t error = load(binary); error != cudaSuccess) return error;
    for (Function* function = binary->functions; function; function = function->next) {
      CUkernel kernel = nullptr;
      CUfunction loaded = nullptr;
      if (driver().cuLibraryGetKernel(&kernel, binary->library, function->name) != CUDA_SUCCESS) continue;
      if (driver().cuKernelGetFunction) driver().cuKernelGetFunction(&loaded, kernel);
      function->kernel.store(kernel, std::memory_order_release);
    }
  }
  return cudaSuccess;
}

}  // namespace cudart
