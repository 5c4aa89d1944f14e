#include "common/work.h"

#include <string.h>

namespace cudasim::libraries {
namespace {

#define CUDASIM_ONE(name) +1
constexpr int kKernels = 0 CUDASIM_LIBRARY_KERNELS(CUDASIM_ONE);
#undef CUDASIM_ONE

// Bodies mean nothing here: what the kernels do is in the plug-in. The size is that of WorkParameters.
constexpr unsigned kParameterBytes = 824;
static_assert(sizeof(WorkParameters) == kParameterBytes);
#define CUDASIM_ENTRY(name) ".visible .entry " #name "(.param .align 8 .b8 " #name "_0[824])\n{\n\tret;\n}\n"
constexpr char kModule[] = ".version 8.0\n.target sm_50\n.address_size 64\n\n" CUDASIM_LIBRARY_KERNELS(CUDASIM_ENTRY);
#undef CUDASIM_ENTRY

#define CUDASIM_NAME(name) #name,
constexpr const char* kNames[kKernels] = {CUDASIM_LIBRARY_KERNELS(CUDASIM_NAME)};
#undef CUDASIM_NAME

// Of the process: a library's kernels are there in every context. Never unloaded, as the program may call this from
// its static destructors.
cudaKernel_t kernels[kKernels];
cudaLibrary_t module_;
char loading;  // a lock: two threads load once

cudaError_t load(int index, cudaKernel_t* out) {
  while (__atomic_test_and_set(&loading, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
  cudaError_t error = cudaSuccess;
  if (!module_) error = cudaLibraryLoadData(&module_, kModule, nullptr, nullptr, 0, nullptr, nullptr, 0);
  cudaKernel_t kernel = kernels[index];
  if (error == cudaSuccess && !kernel) error = cudaLibraryGetKernel(&kernel, module_, kNames[index]);
  if (error == cudaSuccess) __atomic_store_n(&kernels[index], kernel, __ATOMIC_RELEASE);
  __atomic_clear(&loading, __ATOMIC_RELEASE);
  *out = kernel;
  return error;
}

cudaError_t find(const char* name, cudaKernel_t* out) {
  for (int i = 0; i < kKernels; ++i) {
    if (kNames[i] != name && strcmp(kNames[i], name) != 0) continue;
    *out = __atomic_load_n(&kernels[i], __ATOMIC_ACQUIRE);
    return *out ? cudaSuccess : load(i, out);
  }
  return cudaErrorInvalidDeviceFunction;
}

}  // namespace

Work& Work::add(const Part& part, uint32_t& count) {
  if (!part.data || !part.row_bytes || !part.rows || !part.planes) return *this;
  const uint32_t at = parameters_.reads + parameters_.writes;
  if (at == kMostParts) {
    too_many_ = true;
    return *this;
  }
  Part& mine = parameters_.parts[at];
  mine = part;
  // One run of bytes where there are no gaps: the plug-in is fastest on these.
  if (mine.rows > 1 && mine.pitch == mine.row_bytes) {
    mine.row_bytes *= mine.rows;
    mine.rows = 1;
  }
  if (mine.rows == 1) mine.pitch = mine.row_bytes;
  if (mine.planes > 1 && !mine.table && mine.rows == 1 && mine.plane_pitch == mine.row_bytes) {
    mine.row_bytes *= mine.planes;
    mine.pitch = mine.row_bytes;
    mine.planes = 1;
  }
  if (mine.planes == 1) mine.plane_pitch = 0;
  ++count;
  return *this;
}

Work& Work::type(Type type) {
  switch (type) {
    case Type::kSingle:
    case Type::kComplexSingle:
      parameters_.value_mask = 0x807fffff807fffffu, parameters_.value_base = 0x3f0000003f000000u;
      break;
    case Type::kDouble:
    case Type::kComplexDouble:
      parameters_.value_mask = 0x800fffffffffffffu, parameters_.value_base = 0x3fe0000000000000u;
      break;
    case Type::kHalf:
      parameters_.value_mask = 0x83ff83ff83ff83ffu, parameters_.value_base = 0x3800380038003800u;
      break;
    case Type::kBrainFloat:
      parameters_.value_mask = 0x807f807f807f807fu, parameters_.value_base = 0x3f003f003f003f00u;
      break;
    default:
      parameters_.value_mask = ~0ull, parameters_.value_base = 0;
  }
  return *this;
}

Work& Work::flops(double count, double times_single_precision) {
  parameters_.flops += count / times_single_precision;
  return *this;
}

Work& Work::seed(const void* scalar, size_t bytes) {
  if (!scalar) return *this;
  const auto* data = static_cast<const unsigned char*>(scalar);
  for (size_t i = 0; i < bytes; ++i) parameters_.seed = (parameters_.seed ^ data[i]) * 0x100000001b3u;
  return *this;
}

cudaError_t Work::launch(cudaStream_t stream) {
  if (too_many_) return cudaErrorInvalidValue;
  if (!parameters_.writes) return cudaSuccess;  // empty tensors
  cudaKernel_t kernel = nullptr;
  if (const cudaError_t error = find(kernel_, &kernel); error != cudaSuccess) return error;
  void* arguments[] = {&parameters_};

  // One block: the plug-in runs blocks one after the other, and the time comes from its cost function alone.
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, stream);
}

}  // namespace cudasim::libraries
