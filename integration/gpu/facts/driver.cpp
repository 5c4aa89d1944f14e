#include "driver.h"

#include <dlfcn.h>

namespace facts {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Driver load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw std::runtime_error(std::string("no CUDA driver: ") + (why != nullptr ? why : "libcuda.so.1 can't be loaded"));
  }
  Driver driver;
#define FACTS_FIND(name)                        \
  find(library, FACTS_TEXT(name), driver.name); \
  if (driver.name == nullptr) throw std::runtime_error("libcuda.so.1 has no " FACTS_TEXT(name));
  FACTS_FUNCTIONS(FACTS_FIND)
#undef FACTS_FIND
#define FACTS_FIND(name) find(library, FACTS_TEXT(name), driver.name);
  FACTS_OPTIONAL_FUNCTIONS(FACTS_FIND)
#undef FACTS_FIND
  find(library, "cudasim_counters", driver.cudasim_counters);
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver* const loaded = new Driver(load());
  return *loaded;
}

std::string Driver::error_name(CUresult result) const {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) return "error " + std::to_string(result);
  return name;
}

DriverError::DriverError(CUresult error, const std::string& call)
    : std::runtime_error(call + ": " + driver().error_name(error)), result(error) {}

}  // namespace facts
