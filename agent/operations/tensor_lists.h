// Lists of tensors that a kernel is given by value, and how much of them a launch uses.
//
// PyTorch's foreach functions and fused optimizers (the default on CUDA devices) launch `multi_tensor_apply_kernel`
// with one structure of 4 to 26 KiB: lists of addresses with room for 30 to 770 tensors each, the tensors' numbers of
// elements, and for each thread block of the grid the tensor and the part of it that the block works on. The structure
// lies on the stack and is not cleared, so that behind the last tensor there are addresses of earlier launches, which
// name nearly all that an optimizer has. A thread block uses the entries of its tensor and no other: what the grid's
// blocks name is all that the launch can touch.
//
// The structures are those of PyTorch: aten/src/ATen/native/cuda/MultiTensorApply.cuh, read in 2024's sources and met
// in 2.15. Whether one is as expected is asked of the kernel's name and of the parameter's size once, and of the
// contents at each launch: where anything is different all words count.
//
// `torch.cat` and `stack` are like that: room for 128 inputs, of which the grid's second dimension says how many there
// are (aten/src/ATen/native/cuda/Shape.cu, parallel_cat).
//
// Any thread; noexcept.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memopt::agent {

// Offsets are in bytes from the beginning of the structure.
struct TensorLists {
  std::uint32_t lists = 0;            // of addresses, one behind the other from offset 0, each with room for `tensors`
  std::uint32_t tensors = 0;          // at most
  std::uint32_t blocks = 0;           // thread blocks, at most
  std::uint32_t elements = 0;         // numbers of elements, 8 bytes for each tensor
  std::uint32_t steps = 0;            // one more list of addresses, of optimizers' step counts; 0: there is none
  std::uint32_t tensor_of_block = 0;  // `index_bytes` for each thread block
  std::uint32_t chunk_of_block = 0;   // 4 bytes for each thread block
  std::uint32_t index_bytes = 0;      // 1 or 2
};

// Of a kernel whose first parameter has so many bytes, by its mangled name; nothing: it is given no such lists.
std::optional<TensorLists> tensor_lists_of(std::string_view kernel, std::uint32_t first_parameter_bytes) noexcept;

// How many tensors a launch with so many thread blocks uses: the first entries of each list. 0: the contents are not
// what PyTorch would have written, and nothing is known.
std::uint32_t tensors_in_use(const TensorLists& lists, const void* structure, std::uint32_t thread_blocks) noexcept;

// The inputs of a concatenation, in arrays from offset 0 on: addresses, and 4 bytes each of where the input begins in
// the output, what it has along the dimension of that, and its number of elements.
struct CatInputs {
  std::uint32_t inputs = 0;  // at most
};

// Of a kernel whose second parameter has so many bytes; its first is the output's address.
std::optional<CatInputs> cat_inputs_of(std::string_view kernel, std::uint32_t second_parameter_bytes) noexcept;

// Does a launch that works on so many inputs use the first entries and no others? False: the contents are not what
// PyTorch would have written.
bool are_inputs(const CatInputs& inputs, const void* structure, std::uint32_t count) noexcept;

}  // namespace memopt::agent
