// PyTorch's foreach kernels are given lists of tensors by value, with room for many; what is behind the last tensor is
// left over from launches before, the same in each run where these are the same, so that no comparison of runs tells it
// from what is used. The kernel does (aten/src/ATen/native/cuda/MultiTensorApply.cuh): each thread block of the grid
// reads the tensor that `block_to_tensor` names for it, and no other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace launch_effects {

class TensorLists {
 public:
  // Of a kernel's first parameter, by its C++ type and size; nothing for other types.
  static std::optional<TensorLists> of(std::string_view type, std::size_t bytes);

  // The words of the parameter, by offset, that hold addresses of tensors which the grid's thread blocks read. All
  // others are numbers, or are left over.
  std::set<std::size_t> addresses(std::span<const std::byte> parameter, unsigned thread_blocks) const;
  std::size_t bytes() const { return bytes_; }

 private:
  static std::optional<TensorLists> of(std::string_view type, std::size_t bytes, std::size_t times);

  std::size_t bytes_ = 0;
  std::size_t lists_ = 0;
  std::size_t tensors_ = 0;
  std::size_t steps_ = 0;  // offset of one more list, of optimizers' step counts; 0: there is none
  std::size_t block_to_tensor_ = 0;
  std::size_t blocks_ = 0;
  std::size_t index_bytes_ = 0;
};

// The inputs of a concatenation (aten/src/ATen/native/cuda/Shape.cu, CatArrayBatchedCopy): a thread block reads the one
// of its number in the grid's second dimension.
class CatInputs {
 public:
  // Of a parameter, by its C++ type and size; nothing for other types.
  static std::optional<CatInputs> of(std::string_view type, std::size_t bytes);

  std::set<std::size_t> addresses(unsigned inputs) const;
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  std::size_t room_ = 0;
};

}  // namespace launch_effects
