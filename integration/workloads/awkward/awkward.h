// What the awkward programs share: calls of the driver that must succeed, answers and contents to print, blocks with
// known contents, and others that want the room. Nothing that is printed depends on an address or on time.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace awkward {

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kBytes = 3 * kMib;  // of a block, unless a case says otherwise
constexpr int kWords = static_cast<int>(kBytes / sizeof(unsigned));
constexpr unsigned kThreads = 256;

extern CUdevice device;

// The program ends, with the call's name, where it has failed.
void check(CUresult result, const char* what);
// "what: invalid value", by the code's name: what a program sees of a call.
void show(const char* what, CUresult result);
void say(const char* what, unsigned long long value);
// "what: hash" of what is in device memory, after all that was queued.
void contents(const char* what, CUdeviceptr address, std::size_t bytes = kBytes);
void host_contents(const char* what, const void* memory, std::size_t bytes);

// Makes the device's primary context current, which open() retains once.
CUcontext open();
// Of the current context's module; loaded when first asked for.
CUfunction kernel(const char* name);
CUdeviceptr global(const char* name);
const std::vector<char>& image();
// The modules of contexts that have ended are forgotten.
void forget_modules();

template <typename... Parameters>
CUresult try_launch(CUstream stream, const char* name, int threads, Parameters... parameters) {
  void* pointers[] = {static_cast<void*>(&parameters)...};
  return cuLaunchKernel(kernel(name), (threads + kThreads - 1) / kThreads, 1, 1, kThreads, 1, 1, 0, stream, pointers,
                        nullptr);
}
template <typename... Parameters>
void launch(CUstream stream, const char* name, int threads, Parameters... parameters) {
  check(try_launch(stream, name, threads, parameters...), name);
}

CUdeviceptr allocate(std::size_t bytes = kBytes);
// Filled by a kernel: the words are seed * 2654435761 + index.
CUdeviceptr block(unsigned seed, std::size_t bytes = kBytes, CUstream stream = nullptr);
void refill(CUdeviceptr address, unsigned seed, std::size_t bytes = kBytes, CUstream stream = nullptr);
void release(CUdeviceptr address);
void finish();  // cuCtxSynchronize
CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent make_event();
// `then` begins what follows on it behind what `first` has so far.
void order(CUstream first, CUstream then);

// Others that want the room: 12 MiB of blocks. Where less of the device may be held than the program has, what was used
// before use() has to go.
class Others {
 public:
  Others();
  ~Others();
  void use();
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

 private:
  std::vector<CUdeviceptr> blocks_;
  unsigned seed_ = 7000;
};

struct Case {
  const char* name;
  void (*run)();
  // Leaves nothing behind, and may be run again in the same process.
  bool repeats = true;
};
std::span<const Case> allocation_cases();
std::span<const Case> copy_cases();
std::span<const Case> context_cases();
std::span<const Case> free_cases();
std::span<const Case> graph_cases();
std::span<const Case> launch_cases();
std::span<const Case> own_memory_cases();
std::span<const Case> pointer_cases();
std::span<const Case> pool_cases();
std::span<const Case> process_cases();
std::span<const Case> query_cases();
std::span<const Case> stream_cases();

}  // namespace awkward
