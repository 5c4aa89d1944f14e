// The CUDA driver API with its errors checked, and owned handles. A failure ends the program (exit code 3).
#pragma once
#include <cuda.h>

#include <cstddef>
#include <string>

namespace replay {

constexpr int kExitMismatch = 1;
constexpr int kExitUsage = 2;
constexpr int kExitDriver = 3;

[[noreturn]] void fail_driver(CUresult result, const char* call, const char* file, int line);
inline void check_driver(CUresult result, const char* call, const char* file, int line) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    fail_driver(result, call, file, line);
}
#define CHECK_DRIVER(call) ::replay::check_driver((call), #call, __FILE__, __LINE__)

// The first device with its primary context, and the kernels.
class Device {
 public:
  explicit Device(const std::string& module_path);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void make_current() const;  // for the calling thread
  CUfunction stamp() const { return stamp_; }
  CUfunction verify() const { return verify_; }
  CUfunction verify_range() const { return verify_range_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction stamp_ = nullptr;
  CUfunction verify_ = nullptr;
  CUfunction verify_range_ = nullptr;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) { CHECK_DRIVER(cuMemAlloc(&address_, bytes)); }
  ~DeviceMemory() { CHECK_DRIVER(cuMemFree(address_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  CUdeviceptr address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) { CHECK_DRIVER(cuMemAllocHost(&data_, bytes)); }
  ~PinnedMemory() { CHECK_DRIVER(cuMemFreeHost(data_)); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace replay
