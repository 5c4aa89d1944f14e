// Moves and fills bytes of the device. ThreadSanitizer's own memmove and memset note each byte that they touch, in four
// of its own, for most of the time that a program takes there; which accesses to the device are ordered is what
// checker/ says, in every build. So there these do without.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cudasim {

inline void move_device_bytes(void* to, const void* from, std::uint64_t size) {
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  if (target <= source || target - source >= size) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return;
  }
#endif
  std::memmove(to, from, size);
}

inline void fill_device_bytes(void* to, std::byte value, std::uint64_t size) {
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
#else
  std::memset(to, std::to_integer<int>(value), size);
#endif
}

}  // namespace cudasim
