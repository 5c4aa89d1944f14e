// Bounds-checked reading of little-endian structures.
#pragma once
#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "module/image.h"

namespace cudasim {

class Bytes {
 public:
  // `what` names the structure in messages.
  Bytes(std::span<const std::byte> bytes, const char* what) : bytes_(bytes), what_(what) {}

  std::size_t size() const { return bytes_.size(); }

  template <std::integral T>
  T read(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw ImageError(CUDA_ERROR_INVALID_IMAGE, std::string(what_) + ": bytes " + std::to_string(offset) + " to +" +
                                                     std::to_string(size) + " lie outside of its " +
                                                     std::to_string(bytes_.size()) + " bytes");
    }
    return bytes_.subspan(offset, size);
  }

  // A zero-terminated string.
  std::string_view string(std::uint64_t offset) const {
    part(offset, 0);
    const auto rest = bytes_.subspan(offset);
    const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
    if (end == nullptr) {
      throw ImageError(CUDA_ERROR_INVALID_IMAGE,
                       std::string(what_) + ": the string at " + std::to_string(offset) + " has no end");
    }
    const char* begin = reinterpret_cast<const char*>(rest.data());
    return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
  }

 private:
  std::span<const std::byte> bytes_;
  const char* what_;
};

}  // namespace cudasim
