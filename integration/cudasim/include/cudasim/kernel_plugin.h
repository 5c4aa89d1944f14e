// Turns a CUDA source into a plug-in of host functions for the simulated driver. One translation unit per plug-in:
//
//   #include "cudasim/kernel_plugin.h"
//   #include "my_kernels.cuh"  // the very source that nvcc compiles
//
//   CUDASIM_KERNEL(add, [](cudasim::Grid, const float*, const float*, float*, int n) {
//     return cudasim::Cost{.flops = 1.0 * n, .bytes = 12.0 * n};
//   });
//
//   // An instance of a template; default cost.
//   CUDASIM_KERNEL((scale<float, 4>));
//
//   // Static or in an anonymous namespace: the linker does not know its name.
//   CUDASIM_KERNEL_NAMED("_ZN3fooL3barEPf", foo::bar);
//
// The kernel is found by its mangled name, which g++ and nvcc spell alike. The cost function takes the grid and the
// kernel's own parameters; it may look at values, never at what pointers point to. Without one a launch counts as one
// flop, four bytes read and four written per thread.
//
// Threads run one after the other, so kernels that need barriers, shared memory or warp operations can't be run: using
// these is a compile error. Atomics are plain operations.
//
// Built by cudasim_add_kernels() (cmake/CudasimKernels.cmake), which includes this header before anything else: it says
// what __global__, threadIdx, float4, expf, __ldg, … mean on a host.
#pragma once
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cudasim/plugin_abi.h"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __managed__
#undef __shared__
#undef __grid_constant__
#undef __launch_bounds__
#undef __forceinline__
#undef __noinline__
#undef __cluster_dims__
#define __global__ __attribute__((visibility("default")))  // its name is asked of the dynamic linker
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))

// One literal each: the compiler shows it as it stands.
#define CUDASIM_PRAGMA(text) _Pragma(#text)
#define CUDASIM_UNSUPPORTED(text) CUDASIM_PRAGMA(GCC error text)
#define __shared__ \
  CUDASIM_UNSUPPORTED("__shared__ does not work in a simulated kernel: its threads run one after the other")
#define __managed__ \
  CUDASIM_UNSUPPORTED("__managed__ does not work in a simulated kernel: its threads run one after the other")
#define __cluster_dims__(...) \
  CUDASIM_UNSUPPORTED("__cluster_dims__ does not work in a simulated kernel: its threads run one after the other")
#define __syncthreads(...) \
  CUDASIM_UNSUPPORTED("__syncthreads does not work in a simulated kernel: its threads run one after the other")
#define __syncwarp(...) \
  CUDASIM_UNSUPPORTED("__syncwarp does not work in a simulated kernel: its threads run one after the other")
#define __syncthreads_count(...) \
  CUDASIM_UNSUPPORTED("__syncthreads_count does not work in a simulated kernel: its threads run one after the other") 0
#define __syncthreads_and(...) \
  CUDASIM_UNSUPPORTED("__syncthreads_and does not work in a simulated kernel: its threads run one after the other") 0
#define __syncthreads_or(...) \
  CUDASIM_UNSUPPORTED("__syncthreads_or does not work in a simulated kernel: its threads run one after the other") 0
#define __shfl_sync(...) \
  CUDASIM_UNSUPPORTED("__shfl_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __shfl_up_sync(...) \
  CUDASIM_UNSUPPORTED("__shfl_up_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __shfl_down_sync(...) \
  CUDASIM_UNSUPPORTED("__shfl_down_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __shfl_xor_sync(...) \
  CUDASIM_UNSUPPORTED("__shfl_xor_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __ballot_sync(...) \
  CUDASIM_UNSUPPORTED("__ballot_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __any_sync(...) \
  CUDASIM_UNSUPPORTED("__any_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __all_sync(...) \
  CUDASIM_UNSUPPORTED("__all_sync does not work in a simulated kernel: its threads run one after the other") 0
#define __activemask(...) \
  CUDASIM_UNSUPPORTED("__activemask does not work in a simulated kernel: its threads run one after the other") 0

namespace cudasim {

// A launch as its cost function sees it.
struct Grid {
  dim3 grid;
  dim3 block;
  unsigned dynamic_shared_bytes = 0;
  double blocks() const { return double(grid.x) * grid.y * grid.z; }
  double threads() const { return blocks() * block.x * block.y * block.z; }
};

struct Cost {
  double flops = 0;
  double bytes = 0;        // read from and written to device memory
  double nanoseconds = 0;  // > 0: the launch takes exactly this
};

namespace plugin {

// Plain variables: one launch runs at a time. Internal linkage and an address that goes nowhere, so that the compiler
// may keep them in registers and run threads in vectors.
[[maybe_unused]] static uint3 thread_index;
[[maybe_unused]] static uint3 block_index;
[[maybe_unused]] static dim3 block_size;
[[maybe_unused]] static dim3 grid_size;

// Leaked: the driver reads it until the process is gone.
inline std::vector<CudasimKernel>& kernels() {
  static auto* table = new std::vector<CudasimKernel>;
  return *table;
}

// The name as the dynamic linker has it. Null: the function has no exported name.
inline const char* exported_name(const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_sname == nullptr || info.dli_saddr != function) return nullptr;
  return info.dli_sname;
}

template <auto Function>
struct Kernel;

template <class... Parameters, void (*Function)(Parameters...)>
struct Kernel<Function> {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernel parameters travel as bytes");

  // At least one element, so that a kernel without parameters needs no case of its own.
  static constexpr uint32_t kSizes[sizeof...(Parameters) + 1] = {static_cast<uint32_t>(sizeof(Parameters))..., 0};

  // Copied, not pointed at: the driver's packed buffer need not be aligned.
  template <class T>
  static T get(const void* parameter) {
    std::array<std::byte, sizeof(T)> bytes;
    memcpy(bytes.data(), parameter, sizeof(T));
    return std::bit_cast<T>(bytes);
  }

  template <size_t... I>
  static void run_blocks(const void* const* params, const CudasimLaunch& launch, uint64_t first, uint64_t last,
                         std::index_sequence<I...>) {
    [[maybe_unused]] const std::tuple<Parameters...> arguments{get<Parameters>(params[I])...};
    const unsigned gx = launch.grid[0], gy = launch.grid[1];
    const unsigned bx = launch.block[0], by = launch.block[1], bz = launch.block[2];
    grid_size = dim3(gx, gy, launch.grid[2]);
    block_size = dim3(bx, by, bz);
    for (uint64_t b = first; b < last; ++b) {
      block_index = {static_cast<unsigned>(b % gx), static_cast<unsigned>(b / gx % gy),
                     static_cast<unsigned>(b / gx / gy)};
      for (unsigned z = 0; z < bz; ++z) {
        thread_index.z = z;
        for (unsigned y = 0; y < by; ++y) {
          thread_index.y = y;
          for (unsigned x = 0; x < bx; ++x) {
            thread_index.x = x;
            Function(std::get<I>(arguments)...);
          }
        }
      }
    }
  }

  static void run(const void* const* params, const CudasimLaunch* launch, uint64_t first, uint64_t last) {
    run_blocks(params, *launch, first, last, std::index_sequence_for<Parameters...>{});
  }

  static Grid grid_of(const CudasimLaunch& launch) {
    return {dim3(launch.grid[0], launch.grid[1], launch.grid[2]),
            dim3(launch.block[0], launch.block[1], launch.block[2]), launch.dynamic_shared_bytes};
  }

  static CudasimCost default_cost(const void* const*, const CudasimLaunch* launch) {
    const double threads = grid_of(*launch).threads();
    return {threads, 8 * threads, 0};
  }

  template <class CostFunction>
  static CudasimCost cost(const void* const* params, const CudasimLaunch* launch) {
    return [&]<size_t... I>(std::index_sequence<I...>)->CudasimCost {
      const Cost result = CostFunction{}(grid_of(*launch), get<Parameters>(params[I])...);
      return {result.flops, result.bytes, result.nanoseconds};
    }
    (std::index_sequence_for<Parameters...>{});
  }

  static bool add(const char* source_name, const char* name,
                  CudasimCost (*cost_function)(const void* const*, const CudasimLaunch*)) {
    if (name == nullptr) name = exported_name(reinterpret_cast<const void*>(Function));
    if (name == nullptr) {
      fprintf(stderr,
              "cudasim plug-in: kernel %s has no exported name (static, or in an anonymous namespace?): use "
              "CUDASIM_KERNEL_NAMED\n",
              source_name);
      return false;
    }
    kernels().push_back({name, kSizes, static_cast<uint32_t>(sizeof...(Parameters)), 0, &run, cost_function});
    return true;
  }
  static bool add(const char* source_name, const char* name) { return add(source_name, name, &default_cost); }
  template <class CostFunction>
  static bool add(const char* source_name, const char* name, CostFunction) {
    static_assert(std::is_invocable_r_v<Cost, CostFunction, Grid, Parameters...>,
                  "the cost function takes cudasim::Grid and the kernel's own parameters, captures nothing and returns "
                  "cudasim::Cost");
    return add(source_name, name, &cost<CostFunction>);
  }
};

}  // namespace plugin
}  // namespace cudasim

#ifdef CUDASIM_INSTRUMENTED
// instrument/plugin.cpp: takes the driver's functions, returns the plug-in's flush.
extern "C" __attribute__((visibility("hidden"))) void (*cudasim_instrument_attach(const CudasimHost* host))(void);
#endif

// Not inline: two translation units with this header in one plug-in would each have their own threadIdx; so they fail
// to link.
extern "C" __attribute__((visibility("default"))) const CudasimPlugin* cudasim_plugin(const CudasimHost* host) {
  if (host == nullptr || host->abi != CUDASIM_PLUGIN_ABI || host->struct_size < sizeof(CudasimHost)) return nullptr;
  static CudasimPlugin table;
  table = {CUDASIM_PLUGIN_ABI,
           sizeof(CudasimPlugin),
           sizeof(CudasimKernel),
           0,
           ::cudasim::plugin::kernels().size(),
           ::cudasim::plugin::kernels().data(),
           nullptr};
#ifdef CUDASIM_INSTRUMENTED
  table.instrumented = 1;
  table.flush = cudasim_instrument_attach(host);
#endif
  return &table;
}

#define CUDASIM_JOIN_(a, b) a##b
#define CUDASIM_JOIN(a, b) CUDASIM_JOIN_(a, b)
#define CUDASIM_KERNEL_NAMED(name, function, ...)                                 \
  [[maybe_unused]] static const bool CUDASIM_JOIN(cudasim_kernel_, __COUNTER__) = \
      ::cudasim::plugin::Kernel<(function)>::add(#function, name __VA_OPT__(, ) __VA_ARGS__)
#define CUDASIM_KERNEL(function, ...) CUDASIM_KERNEL_NAMED(nullptr, function __VA_OPT__(, ) __VA_ARGS__)

[[maybe_unused]] static constexpr const uint3& threadIdx = ::cudasim::plugin::thread_index;
[[maybe_unused]] static constexpr const uint3& blockIdx = ::cudasim::plugin::block_index;
[[maybe_unused]] static constexpr const dim3& blockDim = ::cudasim::plugin::block_size;
[[maybe_unused]] static constexpr const dim3& gridDim = ::cudasim::plugin::grid_size;
[[maybe_unused]] static constexpr int warpSize = 32;

#include "cudasim/device_functions.h"
