// What a stand-in's kernel gets, and what the plug-in (effects.plugin.cpp) reads: the one parameter of every kernel.
#pragma once
#include <stdint.h>

namespace cudasim::libraries {

// Bytes of an operand: `planes` of `rows` of `row_bytes`. A matrix product's operand has its leading dimension as the
// pitch and its batch as the planes, so that what lies between the rows of a view is neither read nor written.
struct Part {
  void* data;
  uint64_t row_bytes;
  uint64_t rows;
  uint64_t pitch;
  uint64_t planes;
  uint64_t plane_pitch;
  uint64_t table;  // 1: `data` is a table of `planes` pointers in device memory, one for each plane
};

// The tail of a product's operands, of a recurrent network's tensors: no call has more.
constexpr uint32_t kMostParts = 14;

struct WorkParameters {
  Part parts[kMostParts];           // what is read, then what is written; unused ones are zero
  double flops;                     // at the rate of single precision: those of tensor cores count less (roofline.h)
  uint64_t seed;                    // of the call's scalars
  uint64_t value_mask, value_base;  // every 64 bits written are (hash & mask) | base: finite numbers of the type
  uint32_t reads, writes;           // numbers of parts
};

// X(name) of each kernel. What a real library calls its kernels is not to be imitated; one name for each sort of work.
#define CUDASIM_LIBRARY_KERNELS(X)         \
  X(cudasim_matrix_product)                \
  X(cudasim_matrix_vector_product)         \
  X(cudasim_vector_operation)              \
  X(cudasim_triangular_solve)              \
  X(cudasim_convolution_forward)           \
  X(cudasim_convolution_backward_data)     \
  X(cudasim_convolution_backward_filter)   \
  X(cudasim_convolution_backward_bias)     \
  X(cudasim_batch_normalization_forward)   \
  X(cudasim_batch_normalization_backward)  \
  X(cudasim_batch_normalization_inference) \
  X(cudasim_elementwise)                   \
  X(cudasim_softmax_forward)               \
  X(cudasim_softmax_backward)              \
  X(cudasim_pooling_forward)               \
  X(cudasim_pooling_backward)              \
  X(cudasim_dropout_states)                \
  X(cudasim_dropout_forward)               \
  X(cudasim_dropout_backward)              \
  X(cudasim_recurrent_forward)             \
  X(cudasim_recurrent_backward_data)       \
  X(cudasim_recurrent_backward_weights)

}  // namespace cudasim::libraries
