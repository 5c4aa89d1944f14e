#include "device.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace facts {
namespace {

constexpr unsigned kThreadsPerBlock = 256;

std::vector<char> kernels() {
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "facts_kernels.fatbin";
  std::ifstream file(path, std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (image.empty()) throw std::runtime_error(path.string() + ": no module of kernels there");
  return image;
}

}  // namespace

Device::Device() {
  CALL(cuInit, 0);
  int count = 0;
  CALL(cuDeviceGetCount, &count);
  if (count == 0) throw std::runtime_error("the driver has no device");
  CALL(cuDeviceGet, &device_, 0);
  CUcontext context = nullptr;
  CALL(cuDevicePrimaryCtxRetain, &context, device_);
  CALL(cuCtxSetCurrent, context);
  const std::vector<char> image = kernels();
  CUmodule module = nullptr;
  CALL(cuModuleLoadData, &module, image.data());
  CALL(cuModuleGetFunction, &empty_, module, "facts_empty");
  CALL(cuModuleGetFunction, &spin_, module, "facts_spin");
  CALL(cuModuleGetFunction, &fill_, module, "facts_fill");
  CALL(cuModuleGetFunction, &compare_, module, "facts_compare");
  CALL(cuModuleGetFunction, &within_, module, "facts_within");
}

int Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  CALL(cuDeviceGetAttribute, &value, which, device_);
  return value;
}

std::size_t Device::free_bytes() const {
  std::size_t free = 0, total = 0;
  CALL(cuMemGetInfo, &free, &total);
  return free;
}

void Device::launch(CUfunction function, std::uint64_t threads, CUstream stream,
                    std::initializer_list<const void*> parameters) {
  std::vector<void*> pointers;
  for (const void* parameter : parameters) pointers.push_back(const_cast<void*>(parameter));
  const unsigned block = threads < kThreadsPerBlock ? static_cast<unsigned>(threads) : kThreadsPerBlock;
  const auto grid = static_cast<unsigned>((threads + block - 1) / block);
  CALL(cuLaunchKernel, function, grid, 1, 1, block, 1, 1, 0, stream, pointers.data(), nullptr);
}

void Device::spin(CUstream stream, std::uint64_t nanoseconds, CUdeviceptr gaps) {
  launch(spin_, 1, stream, {&nanoseconds, &gaps});
}

void Device::fill(CUstream stream, CUdeviceptr words, std::uint64_t count, std::uint32_t first) {
  launch(fill_, count, stream, {&words, &count, &first});
}

void Device::compare(CUstream stream, CUdeviceptr words, std::uint64_t count, std::uint32_t first,
                     CUdeviceptr different) {
  launch(compare_, count, stream, {&words, &count, &first, &different});
}

CUstream new_stream() {
  CUstream stream = nullptr;
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

CUevent new_event(unsigned flags) {
  CUevent event = nullptr;
  CALL(cuEventCreate, &event, flags);
  return event;
}

Words::Words(std::size_t count) : count_(count) {
  CALL(cuMemAlloc, &address_, count * sizeof(std::uint64_t));
  clear(nullptr);
  CALL(cuCtxSynchronize);
}

std::vector<std::uint64_t> Words::read() const {
  std::vector<std::uint64_t> words(count_);
  CALL(cuMemcpyDtoH, words.data(), address_, count_ * sizeof(std::uint64_t));
  return words;
}

void Words::clear(CUstream stream) const { CALL(cuMemsetD32Async, address_, 0, 2 * count_, stream); }

CUmemAllocationProp physical(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUmemAccessDesc read_and_write(CUdevice device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

}  // namespace facts
