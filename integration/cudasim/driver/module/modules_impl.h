// What modules, libraries, functions and kernels are inside. Handles are numbers that are never used twice, so that a
// stale one is always recognised.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "module/image.h"
#include "module/modules.h"
#include "module/plugins.h"

namespace cudasim {

namespace ptx {
struct Executable;
}

struct LoadedModule;
struct LoadedLibrary;

// What cuFuncSetAttribute and cuKernelSetAttribute have set; the latter is where functions of the kernel's later
// modules begin.
struct FunctionSettings {
  int max_dynamic_shared_bytes = 48 << 10;
  int preferred_carveout = -1;
  std::map<int, int> others;  // cluster attributes: kept, without effect
};

// A CUfunction: a kernel in a context.
struct LoadedFunction {
  CUfunction handle{};
  LoadedModule* module = nullptr;
  const KernelImage* image = nullptr;
  FunctionSettings settings;
  // Looked up at the first launch.
  bool resolved = false;
  HostKernel* host = nullptr;                         // null: no plug-in has it
  std::string readable_name;                          // demangled, without parameters
  std::shared_ptr<const ptx::Executable> executable;  // from PTX, without a plug-in; null: not there, or
  std::string ptx_problem;                            // why not
};

struct LoadedGlobal {
  CUdeviceptr address = 0;
  std::size_t size = 0;
};

// A CUmodule: an image in a context.
struct LoadedModule {
  CUmodule handle{};
  ContextId context{};
  std::shared_ptr<const Image> image;
  LoadedLibrary* library = nullptr;                        // of which it is an instance; null for one of cuModuleLoad
  std::vector<std::unique_ptr<LoadedFunction>> functions;  // in the order of image->kernels
  std::map<std::string, LoadedGlobal, std::less<>> globals;
  bool relocated = false;  // addresses in the variables' initial values are filled in
};

// A CUkernel: a kernel of a library, for any context.
struct LoadedKernel {
  CUkernel handle{};
  LoadedLibrary* library = nullptr;
  const KernelImage* image = nullptr;
  std::size_t index = 0;  // in image->kernels
  FunctionSettings settings;
};

// A CUlibrary: an image, instantiated in each context that asks.
struct LoadedLibrary {
  CUlibrary handle{};
  std::shared_ptr<const Image> image;
  std::vector<std::unique_ptr<LoadedKernel>> kernels;
  std::map<ContextId, LoadedModule*> modules;
};

// Nothing else knows the address yet, so the bytes are set at once: a module's load is synchronous on a device too.
CUresult set_initial_bytes(const LoadedGlobal& global, std::span<const std::byte> initial);

// Addresses of the module's own variables and functions in its variables' initial values; once per module.
void apply_relocations(Driver& driver, LoadedModule& module, const ptx::Program& program);

// Looks like no address that a program has, and like no small number either. One sequence for all kinds, so that one
// kind is never taken for another.
std::uintptr_t next_module_handle();

// Objects by handle.
template <class Handle, class Object>
class Handles {
 public:
  Object* find(Handle handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  void add(Object& object) {
    object.handle = reinterpret_cast<Handle>(next_module_handle());
    objects_.emplace(object.handle, &object);
  }
  void remove(const Object& object) { objects_.erase(object.handle); }

 private:
  std::unordered_map<Handle, Object*> objects_;
};

struct Modules::Impl {
  explicit Impl(Driver& driver_);

  // Throws ImageError.
  std::shared_ptr<const Image> read(std::span<const std::byte> bytes) const;
  // Gives the image's variables memory in `context`. Out of memory: nothing stays behind.
  CUresult instantiate(ContextId context, std::shared_ptr<const Image> image, LoadedLibrary* library,
                       LoadedModule** out);
  // Waits for the context's work, gives the variables' memory back. Both may have gone meanwhile:
  // CUDA_ERROR_INVALID_HANDLE.
  CUresult unload(CUmodule handle);

  LoadedLibrary& add_library(std::shared_ptr<const Image> image);
  CUresult unload(CUlibrary handle);
  // The library's module in `context`; made when it is not there yet.
  CUresult module_of(LoadedLibrary& library, ContextId context, LoadedModule** out);

  // A CUfunction, or the function of a CUkernel in `context`. CUDA_ERROR_INVALID_HANDLE for neither.
  CUresult function_of(CUfunction handle, ContextId context, LoadedFunction** out);
  static LoadedFunction* find_function(LoadedModule& module, std::string_view name);
  static LoadedKernel* find_kernel(LoadedLibrary& library, std::string_view name);

  void drop(LoadedModule& module);  // out of all tables; its variables' memory is not touched

  Driver& driver;
  Plugins plugins;
  Handles<CUmodule, LoadedModule> modules;
  Handles<CUfunction, LoadedFunction> functions;
  Handles<CUlibrary, LoadedLibrary> libraries;
  Handles<CUkernel, LoadedKernel> kernels;
  std::map<CUmodule, std::unique_ptr<LoadedModule>> owned_modules;
  std::map<CUlibrary, std::unique_ptr<LoadedLibrary>> owned_libraries;
};

}  // namespace cudasim
