// The words of a launch's parameters that can be addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "agent/operations/launch_parameters.h"
#include "agent/operations/operations.h"

namespace memopt::agent {

// Blocks begin at multiples of it, and elements of vectors have at most so many bytes.
inline constexpr std::uint64_t kBlockAlignment = 512;
inline constexpr std::uint64_t kLargestElement = 16;

// Arrays whose first index is 1 are known by the address before their first element.
inline bool is_before_block(std::uint64_t word) noexcept {
  return ((word + kLargestElement) & (kBlockAlignment - 1)) < kLargestElement;
}
inline std::uint64_t block_behind(std::uint64_t word) noexcept {
  return (word + kLargestElement) & ~std::uint64_t{kBlockAlignment - 1};
}

inline std::uint64_t load_word(const void* from) noexcept {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// kernelParams stands for itself; `extra` packs the parameters into one buffer.
struct PackedParameters {
  const char* buffer = nullptr;
  std::size_t bytes = 0;
};

inline PackedParameters packed(void** extra) noexcept {
  PackedParameters found;
  // A list of keys and values, ended by a key; one that never ends is the program's mistake, and not followed far.
  for (int i = 0; i < 16 && extra != nullptr && extra[0] != CU_LAUNCH_PARAM_END; ++i, extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) found.buffer = static_cast<const char*>(extra[1]);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != nullptr) {
      found.bytes = *static_cast<const std::size_t*>(extra[1]);
    }
  }
  if (found.buffer == nullptr) found.bytes = 0;
  return found;
}

// Of a launch that is given a list of tensors, sees the addresses in it that it uses. False: it is not as expected.
template <typename See>
bool see_tensors(const LaunchCall& call, const FunctionLayout& layout, See&& see) noexcept {
  const auto* const structure = static_cast<const char*>(call.parameters[layout.inputs != nullptr ? 1 : 0]);
  const auto see_first = [&](std::uint32_t used, std::size_t offset) {
    for (std::uint32_t i = 0; i < used; ++i) see(load_word(structure + offset + std::size_t{8} * i));
  };
  if (layout.inputs != nullptr) {
    const std::uint32_t used = call.grid[1];
    if (call.grid[2] != 1 || !are_inputs(*layout.inputs, structure, used)) return false;
    see_first(used, 0);
    return true;
  }
  const TensorLists& lists = *layout.lists;
  if (call.grid[1] != 1 || call.grid[2] != 1) return false;
  const std::uint32_t used = tensors_in_use(lists, structure, call.grid[0]);
  if (used == 0) return false;
  for (std::uint32_t list = 0; list < lists.lists; ++list) see_first(used, std::size_t{8} * list * lists.tensors);
  if (lists.steps != 0) see_first(used, lists.steps);
  return true;
}

// Sees all of them. False: the launch's parameters can't be read.
template <typename See>
bool see_words(const LaunchCall& call, const FunctionLayout& layout, See&& see) noexcept {
  if (call.parameters == nullptr) {
    const PackedParameters buffer = packed(call.extra);
    for (std::size_t at = 0; at + 8 <= buffer.bytes; at += 8) see(load_word(buffer.buffer + at));
    return true;
  }
  if (!layout.known) return false;
  std::span<const ParameterWord> words(layout.words, layout.word_count);
  const auto see_some = [&](std::span<const ParameterWord> some) {
    for (const ParameterWord& word : some) {
      const auto* const parameter = static_cast<const char*>(call.parameters[word.parameter]);
      if (parameter != nullptr) see(load_word(parameter + word.offset));
    }
  };
  if (layout.list_words != 0 && see_tensors(call, layout, see)) [[unlikely]] {
    see_some(words.first(layout.first_list_word));
    words = words.subspan(layout.first_list_word + layout.list_words);
  }
  see_some(words);
  return true;
}

}  // namespace memopt::agent
