#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver.h"
#include "memory/fault_guard.h"
#include "module/modules_impl.h"

namespace cudasim {
namespace {

std::vector<ByteRange> bytes_of(const Memory& memory, const LoadedModule& module) {
  std::vector<ByteRange> ranges;
  for (const auto& [name, global] : module.globals) {
    memory.for_each_byte_range(global.address, global.size, [&](ByteRange range) { ranges.push_back(range); });
  }
  return ranges;
}

void free_globals(Memory& memory, const LoadedModule& module) {
  for (const auto& [name, global] : module.globals) {
    memory.free(global.address);
  }
}

}  // namespace

CUresult set_initial_bytes(const LoadedGlobal& global, std::span<const std::byte> initial) {
  const auto fault = FaultGuard::run([&] {
    auto* const to = reinterpret_cast<std::byte*>(global.address);
    if (!initial.empty()) std::memcpy(to, initial.data(), initial.size());
    std::memset(to + initial.size(), 0, global.size - initial.size());
  });
  return fault ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

std::uintptr_t next_module_handle() {
  // Positive as a signed number, as a pointer is: Python bindings (cuda.core) read handles as signed.
  static std::uintptr_t last = 0x0780'0000'0000;
  return last += 64;
}

Modules::Modules(Driver& driver) : impl_(std::make_unique<Impl>(driver)) {}
Modules::~Modules() = default;

void Modules::release_context(ContextId context) {
  std::vector<LoadedModule*> gone;
  for (const auto& [handle, module] : impl_->owned_modules) {
    if (module->context == context) gone.push_back(module.get());
  }
  for (LoadedModule* module : gone) {
    free_globals(impl_->driver.memory, *module);
    impl_->drop(*module);
  }
}

Modules::Impl::Impl(Driver& driver_) : driver(driver_), plugins(driver_.config.kernel_paths, driver_.memory) {}

std::shared_ptr<const Image> Modules::Impl::read(std::span<const std::byte> bytes) const {
  const DeviceModel& device = driver.config.device;
  return std::make_shared<const Image>(read_image(bytes, 10 * device.compute_major + device.compute_minor));
}

CUresult Modules::Impl::instantiate(ContextId context, std::shared_ptr<const Image> image, LoadedLibrary* library,
                                    LoadedModule** out) {
  auto module = std::make_unique<LoadedModule>();
  module->context = context;
  module->image = std::move(image);
  module->library = library;
  for (const GlobalImage& global : module->image->globals) {
    // A name twice: only a damaged image has that; the first counts.
    if (global.size == 0 || module->globals.contains(global.name)) continue;
    LoadedGlobal loaded{0, global.size};
    CUresult result = driver.memory.allocate(context, global.size, &loaded.address);
    if (result == CUDA_SUCCESS) {
      module->globals.emplace(global.name, loaded);
      result = set_initial_bytes(loaded, global.initial);
    }
    if (result != CUDA_SUCCESS) {
      free_globals(driver.memory, *module);
      return result;
    }
  }
  if (module->image->program != nullptr) apply_relocations(driver, *module, *module->image->program);
  for (std::size_t i = 0; i < module->image->kernels.size(); ++i) {
    auto& function = *module->functions.emplace_back(std::make_unique<LoadedFunction>());
    function.module = module.get();
    function.image = &module->image->kernels[i];
    if (library != nullptr) function.settings = library->kernels[i]->settings;
    functions.add(function);
  }
  modules.add(*module);
  if (library != nullptr) library->modules.emplace(context, module.get());
  *out = module.get();
  owned_modules.emplace(module->handle, std::move(module));
  return CUDA_SUCCESS;
}

void Modules::Impl::drop(LoadedModule& module) {
  if (module.library != nullptr) module.library->modules.erase(module.context);
  for (const auto& function : module.functions) functions.remove(*function);
  modules.remove(module);
  owned_modules.erase(module.handle);  // the object is gone
}

CUresult Modules::Impl::unload(CUmodule handle) {
  LoadedModule* module = modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult waited = driver.engine.wait_context(module->context);
  module = modules.find(handle);  // the wait may have let another thread in
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<ByteRange> bytes = bytes_of(driver.memory, *module);
  if (!bytes.empty()) driver.engine.forget("cuModuleUnload", bytes);
  free_globals(driver.memory, *module);
  drop(*module);
  return waited;
}

LoadedLibrary& Modules::Impl::add_library(std::shared_ptr<const Image> image) {
  auto library = std::make_unique<LoadedLibrary>();
  library->image = std::move(image);
  for (std::size_t i = 0; i < library->image->kernels.size(); ++i) {
    auto& kernel = *library->kernels.emplace_back(std::make_unique<LoadedKernel>());
    kernel.library = library.get();
    kernel.image = &library->image->kernels[i];
    kernel.index = i;
    kernels.add(kernel);
  }
  libraries.add(*library);
  LoadedLibrary& result = *library;
  owned_libraries.emplace(library->handle, std::move(library));
  return result;
}

CUresult Modules::Impl::unload(CUlibrary handle) {
  CUresult result = CUDA_SUCCESS;
  while (true) {
    LoadedLibrary* const library = libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (library->modules.empty()) break;
    const CUresult unloaded = unload(library->modules.begin()->second->handle);
    if (unloaded != CUDA_SUCCESS && result == CUDA_SUCCESS) result = unloaded;
  }
  LoadedLibrary& library = *libraries.find(handle);
  for (const auto& kernel : library.kernels) kernels.remove(*kernel);
  libraries.remove(library);
  owned_libraries.erase(handle);
  return result;
}

CUresult Modules::Impl::module_of(LoadedLibrary& library, ContextId context, LoadedModule** out) {
  const auto found = library.modules.find(context);
  if (found != library.modules.end()) {
    *out = found->second;
    return CUDA_SUCCESS;
  }
  return instantiate(context, library.image, &library, out);
}

CUresult Modules::Impl::function_of(CUfunction handle, ContextId context, LoadedFunction** out) {
  if (LoadedFunction* const function = functions.find(handle)) {
    *out = function;
    return CUDA_SUCCESS;
  }
  LoadedKernel* const kernel = kernels.find(reinterpret_cast<CUkernel>(handle));
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LoadedModule* module = nullptr;
  const CUresult result = module_of(*kernel->library, context, &module);
  if (result == CUDA_SUCCESS) *out = module->functions[kernel->index].get();
  return result;
}

LoadedFunction* Modules::Impl::find_function(LoadedModule& module, std::string_view name) {
  for (const auto& function : module.functions) {
    if (function->image->name == name) return function.get();
  }
  return nullptr;
}

LoadedKernel* Modules::Impl::find_kernel(LoadedLibrary& library, std::string_view name) {
  for (const auto& kernel : library.kernels) {
    if (kernel->image->name == name) return kernel.get();
  }
  return nullptr;
}

}  // namespace cudasim
