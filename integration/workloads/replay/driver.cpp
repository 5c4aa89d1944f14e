#include "driver.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace replay {

void fail_driver(CUresult result, const char* call, const char* file, int line) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  std::fprintf(stderr, "replay: %s:%d: %s failed: %s (%d)\n", file, line, call, name, static_cast<int>(result));
  std::exit(kExitDriver);
}

Device::Device(const std::string& module_path) {
  std::ifstream file(module_path, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (image.empty()) {
    std::fprintf(stderr, "replay: %s: no module of kernels there; --module names another\n", module_path.c_str());
    std::exit(kExitUsage);
  }
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device_, 0));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context_, device_));
  make_current();
  CHECK_DRIVER(cuModuleLoadData(&module_, image.data()));
  CHECK_DRIVER(cuModuleGetFunction(&stamp_, module_, "replay_stamp"));
  CHECK_DRIVER(cuModuleGetFunction(&verify_, module_, "replay_verify"));
  CHECK_DRIVER(cuModuleGetFunction(&verify_range_, module_, "replay_verify_range"));
}

Device::~Device() {
  CHECK_DRIVER(cuModuleUnload(module_));
  CHECK_DRIVER(cuDevicePrimaryCtxRelease(device_));
}

void Device::make_current() const { CHECK_DRIVER(cuCtxSetCurrent(context_)); }

}  // namespace replay
