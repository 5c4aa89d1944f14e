#include "agent/stack_walker.h"

#include <dlfcn.h>
#include <link.h>

#include <string>

#include "agent/log.h"

namespace memopt::agent {
namespace {

constexpr const char* kLibrary = "libunwind.so.8";
constexpr const char* kFunction = "unw_backtrace";

std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string path_of(void* handle) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return kLibrary;
  return map->l_name;
}

}  // namespace

StackWalker::StackWalker(const char* library_folder) noexcept {
  try {
    void* handle = nullptr;
    if (library_folder != nullptr && *library_folder != '\0') {
      handle = dlopen((std::string(library_folder) + "/" + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = dlerror();
      status_ = {"frame-pointers", reason != nullptr ? reason : "libunwind.so.8 cannot be loaded"};
      return;
    }
    backtrace_ = reinterpret_cast<BacktraceFunction>(dlsym(handle, kFunction));
    if (backtrace_ == nullptr) {
      status_ = {"frame-pointers", path_of(handle) + " has no function " + kFunction};
      dlclose(handle);
      return;
    }
    status_ = {"libunwind", path_of(handle)};
  } catch (...) {
    backtrace_ = nullptr;  // out of memory; an empty status is shown as unknown
  }
}

const StackWalker& stack_walker() noexcept {
  static const StackWalker* const walker = [] {
    std::string folder;
    try {
      folder = folder_of_this_library();
    } catch (...) {
      folder.clear();
    }
    return new StackWalker(folder.c_str());
  }();
  return *walker;
}

}  // namespace memopt::agent
