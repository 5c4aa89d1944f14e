// A range of addresses kept by one PROT_NONE mapping, in which parts are mapped and unmapped: nothing else in the
// process can get an address of it, and a touch of an unmapped part faults.
#pragma once
#include <cstdint>
#include <span>

#include "memory/free_ranges.h"

namespace cudasim {

enum class Access : std::uint8_t { kNone, kRead, kReadWrite };

// Whether a file's pages are in the host's RAM. kPerhaps: those that have been touched.
enum class InRam : std::uint8_t { kNo, kPerhaps, kYes };

class AddressArena {
 public:
  // Tries the hints in order, then any place, then less, down to `least`. Throws std::system_error. Hints make
  // addresses the same in every run; places that a sanitizer does not take are passed over.
  AddressArena(std::uint64_t size, std::uint64_t least, std::span<const std::uintptr_t> hints);
  ~AddressArena();
  AddressArena(const AddressArena&) = delete;
  AddressArena& operator=(const AddressArena&) = delete;

  std::uintptr_t begin() const { return begin_; }
  std::uintptr_t end() const { return begin_ + size_; }
  bool contains(std::uintptr_t address) const { return address - begin_ < size_; }
  FreeRanges& ranges() { return ranges_; }

  // False: the machine refused (number of mappings, memory). Granules of which the file has half the pages or more
  // are mapped at once, and the rest of them is made.
  [[nodiscard]] bool map_file(std::uintptr_t address, std::uint64_t size, int file, std::uint64_t offset, Access access,
                              InRam in_ram);
  [[nodiscard]] bool map_private(std::uintptr_t address, std::uint64_t size);  // zero-filled, readable and writable
  [[nodiscard]] bool protect(std::uintptr_t address, std::uint64_t size, Access access);
  // Back to no access. Aborts with a message if the machine refuses: a freed block that can still be written is no
  // longer a simulation.
  void unmap(std::uintptr_t address, std::uint64_t size);

 private:
  std::uintptr_t begin_ = 0;
  std::uint64_t size_ = 0;
  FreeRanges ranges_;
};

}  // namespace cudasim
