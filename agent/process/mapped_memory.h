// Memory that is mapped, never returned, and never taken from the program's malloc.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

namespace memopt::agent {

// Zeroed pages, or null. Errno is kept.
inline void* map_pages(std::size_t bytes) noexcept {
  const int kept = errno;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = kept;
  return memory == MAP_FAILED ? nullptr : memory;
}

// Hands out pieces of mapped memory. Not thread-safe.
class MappedBump {
 public:
  // Zeroed, aligned to 16, or null.
  void* take(std::size_t bytes) noexcept {
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > left_) {
      const std::size_t chunk = bytes > kChunk ? bytes : kChunk;
      char* const memory = static_cast<char*>(map_pages(chunk));
      if (memory == nullptr) return nullptr;
      next_ = memory;
      left_ = chunk;
    }
    char* const taken = next_;
    next_ += bytes;
    left_ -= bytes;
    return taken;
  }

 private:
  static constexpr std::size_t kChunk = 64 * 1024;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace memopt::agent
