#include "cupti_library.h"

#include <dlfcn.h>

namespace gpu_kit {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function, std::string& error) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) error = std::string("it has no function ") + name;
  return function != nullptr;
}

}  // namespace

bool CuptiLibrary::load(const char* path, std::string& error) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    error = std::string("it can't be loaded: ") + (why == nullptr ? "no reason given" : why);
    return false;
  }
  decltype(&cuptiGetVersion) get_version = nullptr;
  if (!find(library, "cuptiGetVersion", get_version, error)) return false;
  if (const CUptiResult result = get_version(&version); result != CUPTI_SUCCESS) {
    error = "cuptiGetVersion: " + text(result);
    return false;
  }
  if (!is_usable(version)) {
    error = "its version is " + std::to_string(version) + ", known are " + std::to_string(kOldestVersion) + " to " +
            std::to_string(kLastOldNumber) + " (CUDA 12) and " + std::to_string(kFirstNumber) + " to " +
            std::to_string(kFirstUnknown - 1) + " (CUDA 13)";
    return false;
  }
  return find(library, "cuptiActivityRegisterCallbacks", register_callbacks, error) &&
         find(library, "cuptiActivityEnable", enable, error) &&
         find(library, "cuptiActivityGetNextRecord", next_record, error) &&
         find(library, "cuptiActivityGetNumDroppedRecords", dropped_records, error) &&
         find(library, "cuptiActivityFlushAll", flush_all, error) &&
         find(library, "cuptiGetResultString", result_string, error);
}

std::string CuptiLibrary::text(CUptiResult result) const {
  const char* name = nullptr;
  if (result_string != nullptr && result_string(result, &name) == CUPTI_SUCCESS && name != nullptr) return name;
  return "error " + std::to_string(static_cast<int>(result));
}

}  // namespace gpu_kit
