// The side of driver_check that talks to the driver: a line "step NAME" before each step, "NAME=VALUE" for each fact.
#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/memoptctl/doctor/checks.h"

namespace memopt::tools {
namespace {

void step(const char* name) {
  fmt::print("step {}\n", name);
  std::fflush(stdout);
}

template <typename Value>
void fact(const char* name, const Value& value) {
  fmt::print("{}={}\n", name, value);
  std::fflush(stdout);
}

class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  // Calls a function of the driver by its exported name. False: it is not there or failed; said under "error".
  template <typename... Parameters, typename... Arguments>
  bool call(const char* symbol, CUresult (*)(Parameters...), Arguments... arguments) {
    auto* const function = reinterpret_cast<CUresult (*)(Parameters...)>(::dlsym(library_, symbol));
    const CUresult result = function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...);
    if (result == CUDA_SUCCESS) return true;
    fact("error", fmt::format("{}: {}", symbol, function == nullptr ? "not there" : name_of(result)));
    fact("code", static_cast<int>(result));
    return false;
  }

 private:
  std::string name_of(CUresult result) {
    const char* name = nullptr;
    auto* const get = reinterpret_cast<decltype(&cuGetErrorName)>(::dlsym(library_, "cuGetErrorName"));
    if (get == nullptr || get(result, &name) != CUDA_SUCCESS || name == nullptr) {
      return fmt::format("error {}", static_cast<int>(result));
    }
    return fmt::format("{} ({})", name, static_cast<int>(result));
  }

  void* library_;
};

// The declared type is all that is taken from the header: nothing is linked.
#define MEMOPT_CALL(driver, symbol, function, ...) \
  (driver).call(symbol, static_cast<decltype(&function)>(nullptr) __VA_OPT__(, ) __VA_ARGS__)

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  std::size_t bytes = 0;
};

// One chunk at two addresses.
bool map_twice(Driver& driver, CUdevice device, Chunk& chunk) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (!MEMOPT_CALL(driver, "cuMemGetAllocationGranularity", cuMemGetAllocationGranularity, &chunk.bytes, &properties,
                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return false;
  }
  fact("granularity", chunk.bytes);
  if (!MEMOPT_CALL(driver, "cuMemCreate", cuMemCreate, &chunk.handle, chunk.bytes, &properties, 0ULL)) return false;
  for (CUdeviceptr* const address : {&chunk.first, &chunk.second}) {
    if (!MEMOPT_CALL(driver, "cuMemAddressReserve", cuMemAddressReserve, address, chunk.bytes, std::size_t{0},
                     CUdeviceptr{0}, 0ULL) ||
        !MEMOPT_CALL(driver, "cuMemMap", cuMemMap, *address, chunk.bytes, std::size_t{0}, chunk.handle, 0ULL) ||
        !MEMOPT_CALL(driver, "cuMemSetAccess", cuMemSetAccess, *address, chunk.bytes, &access, std::size_t{1})) {
      return false;
    }
  }
  return true;
}

// What is written through one address is read through the other, both ways.
bool compare(Driver& driver, const Chunk& chunk) {
  std::vector<unsigned char> written(chunk.bytes);
  std::vector<unsigned char> read(chunk.bytes);
  for (const auto& [to, from, salt] :
       {std::tuple(chunk.first, chunk.second, 17u), std::tuple(chunk.second, chunk.first, 91u)}) {
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<unsigned char>((i * 31 + i / 251) ^ salt);
    if (!MEMOPT_CALL(driver, "cuMemcpyHtoD_v2", cuMemcpyHtoD_v2, to, written.data(), written.size()) ||
        !MEMOPT_CALL(driver, "cuMemcpyDtoH_v2", cuMemcpyDtoH_v2, read.data(), from, read.size())) {
      return false;
    }
    const auto differing = std::mismatch(written.begin(), written.end(), read.begin());
    if (differing.first != written.end()) {
      fact("error", fmt::format("byte {} of {} differs", differing.first - written.begin(), written.size()));
      return false;
    }
  }
  return true;
}

void probe_device(Driver& driver) {
  CUdevice device = 0;
  if (!MEMOPT_CALL(driver, "cuDeviceGet", cuDeviceGet, &device, 0)) return;
  char name[256] = {};
  if (MEMOPT_CALL(driver, "cuDeviceGetName", cuDeviceGetName, name, static_cast<int>(sizeof name) - 1, device)) {
    fact("name", name);
  }
  std::size_t bytes = 0;
  if (MEMOPT_CALL(driver, "cuDeviceTotalMem_v2", cuDeviceTotalMem_v2, &bytes, device)) fact("memory", bytes);
  for (const auto& [label, attribute] : {std::pair("vmm", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
                                         std::pair("pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)}) {
    int value = 0;
    if (MEMOPT_CALL(driver, "cuDeviceGetAttribute", cuDeviceGetAttribute, &value, attribute, device)) {
      fact(label, value);
    }
  }
  step("aliasing");
  CUcontext context = nullptr;
  if (!MEMOPT_CALL(driver, "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, &context, device) ||
      !MEMOPT_CALL(driver, "cuCtxSetCurrent", cuCtxSetCurrent, context)) {
    return;
  }
  Chunk chunk;
  if (map_twice(driver, device, chunk) && compare(driver, chunk)) fact("aliasing", "same");
  // Nothing is given back: the process ends.
}

}  // namespace

int probe_driver() {
  step("load");
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fact("load_error", ::dlerror());
    return 0;
  }
  // Any function of it will do.
  Dl_info place{};
  void* const init = ::dlsym(library, "cuInit");
  if (init != nullptr && ::dladdr(init, &place) != 0 && place.dli_fname != nullptr) fact("path", place.dli_fname);
  Driver driver(library);
  step("cuInit");
  if (!MEMOPT_CALL(driver, "cuInit", cuInit, 0u)) return 0;
  fact("init", 0);
  int version = 0;
  if (MEMOPT_CALL(driver, "cuDriverGetVersion", cuDriverGetVersion, &version)) fact("version", version);
  step("devices");
  int count = 0;
  if (!MEMOPT_CALL(driver, "cuDeviceGetCount", cuDeviceGetCount, &count)) return 0;
  fact("devices", count);
  if (count > 0) probe_device(driver);
  step("end");
  return 0;
}

}  // namespace memopt::tools
