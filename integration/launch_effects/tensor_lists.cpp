#include "tensor_lists.h"

#include <cstring>
#include <iterator>
#include <sstream>
#include <string>

namespace launch_effects {
namespace {

constexpr std::size_t kTensors[] = {110, 64, 48, 36, 30};
constexpr std::size_t kTensorsWithScalars[] = {96, 64, 48, 36, 30};
constexpr std::size_t kTensorsWithComplexDoubles[] = {72, 60, 48, 36, 30};
constexpr std::size_t kBlocks = 320;
// For devices whose kernels take 32 KiB of parameters there is seven times as much room, and an index has two bytes.
constexpr std::size_t kLarge = 7;

struct Scalar {
  std::string_view type;
  std::size_t bytes;
};
constexpr Scalar kScalars[] = {{"bool", 1},
                               {"signed char", 1},
                               {"unsigned char", 1},
                               {"short", 2},
                               {"int", 4},
                               {"float", 4},
                               {"long", 8},
                               {"double", 8},
                               {"c10::complex<float>", 8},
                               {"c10::complex<double>", 16}};

std::size_t whole(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

std::optional<TensorLists> TensorLists::of(std::string_view type, std::size_t bytes) {
  const std::optional<TensorLists> small = of(type, bytes, 1);
  return small ? small : of(type, bytes, kLarge);
}

std::optional<TensorLists> TensorLists::of(std::string_view type, std::size_t bytes, std::size_t times) {
  if (!type.starts_with("at::native::")) return std::nullopt;
  const auto is = [&](const std::string& name) { return type.ends_with("::" + name); };
  for (std::size_t lists = 1; lists <= std::size(kTensors); ++lists) {
    const std::string number = std::to_string(lists) + ">";
    TensorLists found;
    found.bytes_ = bytes;
    found.lists_ = lists;
    found.tensors_ = times * kTensors[lists - 1];
    found.blocks_ = times * kBlocks;
    found.index_bytes_ = times == 1 ? 1 : 2;
    // Behind the addresses and the tensors' numbers of elements.
    const auto head = [&] { return 8 * (lists + 1) * found.tensors_; };
    const auto with = [&](std::size_t block_to_tensor, std::size_t rest) -> std::optional<TensorLists> {
      found.block_to_tensor_ = block_to_tensor;
      const std::size_t end = block_to_tensor + (found.index_bytes_ + 4) * found.blocks_ + rest;
      return whole(end) == bytes ? std::optional(found) : std::nullopt;
    };
    if (is("TensorListMetadata<" + number)) return with(head(), 4);
    if (is("FusedOptimizerTensorListMetadata<" + number)) {
      found.steps_ = head();
      return with(head() + 8 * times * kTensorsWithScalars[lists - 1], 4);
    }
    for (const Scalar& scalar : kScalars) {
      if (!is("TensorListScalarListMetadata<" + std::string(scalar.type) + ", " + number)) continue;
      found.tensors_ = times * (scalar.bytes == 16 ? kTensorsWithComplexDoubles : kTensorsWithScalars)[lists - 1];
      return with(head() + scalar.bytes * found.tensors_, 0);
    }
  }
  return std::nullopt;
}

std::set<std::size_t> TensorLists::addresses(std::span<const std::byte> parameter, unsigned thread_blocks) const {
  std::set<std::size_t> offsets;
  if (thread_blocks > blocks_ || parameter.size() < bytes_) return offsets;
  for (unsigned block = 0; block < thread_blocks; ++block) {
    std::size_t tensor = 0;  // little-endian
    std::memcpy(&tensor, &parameter[block_to_tensor_ + index_bytes_ * block], index_bytes_);
    for (std::size_t list = 0; list < lists_; ++list) offsets.insert(8 * (list * tensors_ + tensor));
    if (steps_ != 0) offsets.insert(steps_ + 8 * tensor);
  }
  return offsets;
}

std::optional<CatInputs> CatInputs::of(std::string_view type, std::size_t bytes) {
  const std::size_t name = type.find("::CatArrInputTensorMetadata<");
  // Its last three arguments: of the index, of the inputs and of the strides.
  constexpr std::string_view kIndex = ", unsigned int, ";
  const std::size_t index = type.rfind(kIndex);
  if (!type.starts_with("at::native::") || name == std::string_view::npos || index == std::string_view::npos)
    return std::nullopt;
  std::istringstream numbers{std::string(type.substr(index + kIndex.size()))};
  std::size_t room = 0, strides = 0;
  char comma = 0, end = 0;
  if (!(numbers >> room >> comma >> strides >> end) || comma != ',' || end != '>') return std::nullopt;
  constexpr std::size_t kSizesAndStrides = 2 * 4 * 4;
  const std::size_t head = room * 8 + 3 * room * 4 + room;
  CatInputs found;
  found.bytes_ = bytes;
  found.room_ = room;
  return whole((head + 3) / 4 * 4 + strides * kSizesAndStrides) == bytes ? std::optional(found) : std::nullopt;
}

std::set<std::size_t> CatInputs::addresses(unsigned inputs) const {
  std::set<std::size_t> offsets;
  for (std::size_t i = 0; i < inputs && i < room_; ++i) offsets.insert(8 * i);
  return offsets;
}

}  // namespace launch_effects
