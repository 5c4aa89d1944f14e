#include "module/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "access_log.h"
#include "memory/memory.h"

namespace cudasim {
namespace {

// The plug-ins' way back has no place for `this`. One driver per process.
std::atomic<const Memory*> memory_of_driver{nullptr};

void on_access(const void* address, std::size_t size, int write) {
  AccessLog* const log = current_access_log();
  if (log == nullptr) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (write != 0) {
    log->write(at, size);
  } else {
    log->read(at, size);
  }
}

int on_is_tracked(const void* address) {
  const Memory* const memory = memory_of_driver.load(std::memory_order_relaxed);
  return memory != nullptr && memory->is_tracked(address) ? 1 : 0;
}

const CudasimHost kHost{CUDASIM_PLUGIN_ABI, sizeof(CudasimHost), &on_access, &on_is_tracked};

void complain(const std::string& path, const std::string& why) {
  std::fprintf(stderr, "cudasim: kernel plug-in %s is left out: %s\n", path.c_str(), why.c_str());
}

// A folder's plug-ins in the order of their names, so that runs repeat.
std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".so") files.push_back(entry->path().string());
  }
  if (error) complain(folder.string(), "can't list the folder: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Plugins::Plugins(std::vector<std::string> paths, const Memory& memory) : paths_(std::move(paths)) {
  memory_of_driver.store(&memory, std::memory_order_relaxed);
}

HostKernel* Plugins::find(std::string_view mangled_name) {
  if (!loaded_) load_all();
  const auto found = kernels_.find(mangled_name);
  return found == kernels_.end() ? nullptr : &found->second;
}

void Plugins::load_all() {
  loaded_ = true;
  for (const std::string& path : paths_) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      for (const std::string& file : files_of(path)) load(file);
    } else {
      load(path);  // dlopen names what is wrong
    }
  }
}

void Plugins::load(const std::string& path) {
  // A path without a slash would be looked for in the library path.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    complain(path, why == nullptr ? "dlopen failed" : why);
    return;
  }
  const auto entry = reinterpret_cast<CudasimPluginEntry>(dlsym(library, "cudasim_plugin"));
  if (entry == nullptr) {
    complain(path, "it has no function cudasim_plugin (see cudasim/kernel_plugin.h)");
    return;
  }
  const CudasimPlugin* const plugin = entry(&kHost);
  if (plugin == nullptr) {
    complain(path, "it was built for another version of the simulator than " + std::to_string(CUDASIM_PLUGIN_ABI) +
                       ": build it again");
  } else if (plugin->abi != CUDASIM_PLUGIN_ABI || plugin->struct_size < sizeof(CudasimPlugin) ||
             plugin->kernel_size != sizeof(CudasimKernel)) {
    complain(path, "its version is " + std::to_string(plugin->abi) + ", this simulator's is " +
                       std::to_string(CUDASIM_PLUGIN_ABI) + ": build it again");
  } else {
    add(path, *plugin);
  }
}

void Plugins::add(const std::string& path, const CudasimPlugin& plugin) {
  for (std::uint64_t i = 0; i < plugin.kernel_count; ++i) {
    const CudasimKernel& kernel = plugin.kernels[i];
    const auto [at, is_new] = kernels_.try_emplace(kernel.mangled_name, HostKernel{&kernel, &plugin, path, ""});
    if (!is_new && at->second.shadowed.empty()) at->second.shadowed = path;
  }
}

}  // namespace cudasim
