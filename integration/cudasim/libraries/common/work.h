// A call's work on the device: which bytes it reads and writes, how much arithmetic it is, on which stream.
//
//   Work work("cudasim_matrix_product");
//   work.read(a).read(b).write(c);
//   work.flops(2.0 * m * n * k, Rate::kTensor);
//   return work.launch(stream);
//
// One launch of a kernel that the plug-in of these libraries has: it takes the roofline of the device for the bytes and
// the arithmetic, and writes what it writes as a function of all bytes that it reads.
#pragma once
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "common/types.h"
#include "common/work_parameters.h"

namespace cudasim::libraries {

class Work {
 public:
  explicit Work(const char* kernel) : kernel_(kernel) {}

  // All reads come before the first write. Parts of no bytes, and of no address, are left out.
  Work& read(const Part& part) { return add(part, parameters_.reads); }
  Work& read(const void* data, uint64_t bytes) { return read({const_cast<void*>(data), bytes, 1, bytes, 1, 0, 0}); }
  // Bytes that the result depends on are read as well (`accumulates`: a beta that is not zero).
  Work& write(const Part& part) { return add(part, parameters_.writes); }
  Work& write(void* data, uint64_t bytes) { return write({data, bytes, 1, bytes, 1, 0, 0}); }

  Work& type(Type type);  // of what is written; single precision if not said
  Work& flops(double count, double times_single_precision = 1);
  Work& seed(const void* scalar, size_t bytes);  // host memory; null is nothing

  cudaError_t launch(cudaStream_t stream);

 private:
  Work& add(const Part& part, uint32_t& count);

  const char* kernel_;
  bool too_many_ = false;
  WorkParameters parameters_{{}, 0, 0x9e3779b97f4a7c15u, 0x807fffff807fffffu, 0x3f0000003f000000u, 0, 0};
};

}  // namespace cudasim::libraries
