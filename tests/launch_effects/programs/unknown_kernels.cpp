// Kernels that no plug-in has, launched as programs do: by pointers, by structs, with stale words in their padding, on
// blocks that are freed and whose addresses are used again, and on two streams that an event orders.
//
//   unknown_kernels [STEPS] [--plain | --async] [--no-edge] [--stale]
//
// --no-edge leaves out a wait for an event: the mistake that checksum and checker are to find. --stale puts addresses
// of freed blocks into the padding of a struct. Prints the bytes of the result, hashed.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr char kModule[] = R"(
.version 8.0
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 scale_0, .param .f32 scale_1, .param .u32 scale_2) { ret; }
.visible .entry _Z7add_rowPKfS0_Pfi(.param .u64 add_0, .param .u64 add_1, .param .u64 add_2, .param .u32 add_3) { ret; }
.visible .entry gather(.param .align 8 .b8 gather_0[64]) { ret; }
)";

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "unknown_kernels: %s: error %d\n", what, static_cast<int>(result));
  std::exit(3);
}

// As a compiler lays it out: the words behind the counts are whatever was there before.
struct Gather {
  CUdeviceptr from[3];
  std::uint32_t sources;
  std::uint32_t step;
  CUdeviceptr to;
  CUdeviceptr padding[3];
};
static_assert(sizeof(Gather) == 64);

struct Program {
  bool async = false;
  CUstream streams[2] = {};
  CUfunction scale = nullptr, add = nullptr, gather = nullptr;

  CUdeviceptr allocate(std::size_t size, CUstream stream) const {
    CUdeviceptr address = 0;
    check(async ? cuMemAllocAsync(&address, size, stream) : cuMemAlloc(&address, size), "allocation");
    return address;
  }
  void free(CUdeviceptr address, CUstream stream) const {
    check(async ? cuMemFreeAsync(address, stream) : cuMemFree(address), "free");
  }
  static void launch(CUfunction function, CUstream stream, std::vector<void*> parameters) {
    check(cuLaunchKernel(function, 16, 1, 1, 128, 1, 1, 0, stream, parameters.data(), nullptr), "cuLaunchKernel");
  }
};

}  // namespace

int main(int count, char** arguments) {
  int steps = 8;
  bool edge = true, stale = false;
  Program program;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--async") == 0) {
      program.async = true;
    } else if (std::strcmp(arguments[i], "--no-edge") == 0) {
      edge = false;
    } else if (std::strcmp(arguments[i], "--stale") == 0) {
      stale = true;
    } else if (std::strcmp(arguments[i], "--plain") != 0) {
      steps = std::atoi(arguments[i]);
    }
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, kModule), "cuModuleLoadData");
  check(cuModuleGetFunction(&program.scale, module, "scale"), "cuModuleGetFunction");
  check(cuModuleGetFunction(&program.add, module, "_Z7add_rowPKfS0_Pfi"), "cuModuleGetFunction");
  check(cuModuleGetFunction(&program.gather, module, "gather"), "cuModuleGetFunction");
  for (CUstream& stream : program.streams) check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUevent made = nullptr, used = nullptr;
  check(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  check(cuEventCreate(&used, CU_EVENT_DISABLE_TIMING), "cuEventCreate");

  constexpr std::size_t kSize = 3u << 20, kSmall = 1000;
  CUstream first = program.streams[0], second = program.streams[1];
  const CUdeviceptr weights = program.allocate(kSize, first), counter = program.allocate(kSmall, first);
  std::vector<float> values(kSize / sizeof(float), 1.5f);
  check(cuMemcpyHtoDAsync(weights, values.data(), kSize, first), "cuMemcpyHtoDAsync");
  // The rest of it has no contents until a kernel names it.
  check(cuMemsetD8Async(counter, 3, kSmall / 2, first), "cuMemsetD8Async");
  check(cuStreamSynchronize(first), "cuStreamSynchronize");

  CUdeviceptr freed[3] = {};
  for (int step = 0; step < steps; ++step) {
    float factor = 0.5f;
    int elements = static_cast<int>(kSize / sizeof(float));
    // What freed before names other blocks in this step: sizes change with the step.
    const std::size_t size = kSize + static_cast<std::size_t>(step % 3) * 4096;
    CUdeviceptr a = program.allocate(size, first), b = program.allocate(size / 2, first);
    CUdeviceptr c = program.allocate(kSmall + static_cast<std::size_t>(step % 3), first);
    Program::launch(program.scale, first, {&a, &factor, &elements});
    Program::launch(program.add, first, {const_cast<CUdeviceptr*>(&weights), &a, &b, &elements});
    check(cuEventRecord(made, first), "cuEventRecord");
    if (edge) check(cuStreamWaitEvent(second, made, 0), "cuStreamWaitEvent");
    Gather gather{{a, b, counter}, 3, static_cast<std::uint32_t>(step), c, {}};
    if (stale) std::memcpy(gather.padding, freed, sizeof freed);
    Program::launch(program.gather, second, {&gather});
    check(cuEventRecord(used, second), "cuEventRecord");
    check(cuStreamWaitEvent(first, used, 0), "cuStreamWaitEvent");
    Program::launch(program.add, first, {&c, &b, const_cast<CUdeviceptr*>(&weights), &elements});
    freed[0] = a, freed[1] = b, freed[2] = c;
    program.free(a, first);
    program.free(c, first);
    program.free(b, first);
  }
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  check(cuMemcpyDtoH(values.data(), weights, kSize), "cuMemcpyDtoH");
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  std::printf("result %016llx\n", static_cast<unsigned long long>(hash));
  return 0;
}
