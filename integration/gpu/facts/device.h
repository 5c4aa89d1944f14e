// The first device: its primary context, the kernels, and the owned things that measuring needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "driver.h"

namespace facts {

// Makes the context current for the calling thread, and loads the kernels (facts_kernels.fatbin beside the program).
class Device {
 public:
  Device();

  CUdevice number() const { return device_; }
  int attribute(CUdevice_attribute which) const;
  std::size_t free_bytes() const;

  void launch(CUfunction function, std::uint64_t threads, CUstream stream,
              std::initializer_list<const void*> parameters);
  void spin(CUstream stream, std::uint64_t nanoseconds, CUdeviceptr gaps = 0);
  void fill(CUstream stream, CUdeviceptr words, std::uint64_t count, std::uint32_t first);
  void compare(CUstream stream, CUdeviceptr words, std::uint64_t count, std::uint32_t first, CUdeviceptr different);
  CUfunction empty() const { return empty_; }
  CUfunction within() const { return within_; }

 private:
  CUdevice device_ = 0;
  CUfunction empty_ = nullptr;
  CUfunction spin_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction compare_ = nullptr;
  CUfunction within_ = nullptr;
};

// Never destroyed before the process: a fact may end with work still running.
CUstream new_stream();
CUevent new_event(unsigned flags = CU_EVENT_DISABLE_TIMING);

// 64-bit words on the device, zero at first.
class Words {
 public:
  explicit Words(std::size_t count);
  CUdeviceptr address() const { return address_; }
  std::vector<std::uint64_t> read() const;
  void clear(CUstream stream) const;

 private:
  CUdeviceptr address_ = 0;
  std::size_t count_;
};

// Physical memory of the device, as `cuMemCreate` wants to be asked.
CUmemAllocationProp physical(CUdevice device);
CUmemAccessDesc read_and_write(CUdevice device);

}  // namespace facts
