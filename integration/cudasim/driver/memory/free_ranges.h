// Free parts of a range of numbers (addresses, offsets), first fit from the bottom: the same order of calls gives the
// same places.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

namespace cudasim {

class FreeRanges {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t size;
  };

  FreeRanges(std::uint64_t begin, std::uint64_t size);

  // The lowest place for `size` at a multiple of `alignment` (a power of two); nullopt when there is none.
  std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  // Exactly [begin, begin + size); false, and nothing changed, when part of it is taken.
  bool take_at(std::uint64_t begin, std::uint64_t size);
  // The lowest free bytes, at most `size` of them in one piece; nullopt when nothing is free.
  std::optional<Range> take_up_to(std::uint64_t size);
  // Takes back what a take returned, or any part of it.
  void give(std::uint64_t begin, std::uint64_t size);

  std::uint64_t free_bytes() const { return free_bytes_; }
  bool all_free() const { return free_bytes_ == total_; }

 private:
  void cut(std::map<std::uint64_t, std::uint64_t>::iterator it, std::uint64_t begin, std::uint64_t size);

  std::map<std::uint64_t, std::uint64_t> free_;  // begin -> size; neighbours are merged
  std::uint64_t total_;
  std::uint64_t free_bytes_;
};

}  // namespace cudasim
