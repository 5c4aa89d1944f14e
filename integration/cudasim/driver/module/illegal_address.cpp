#include "module/illegal_address.h"

#include <cstdio>

namespace cudasim {

std::optional<std::uintptr_t> outside_of_memory(const Memory& memory, const std::vector<AddressRange>& ranges) {
  for (const AddressRange& range : ranges) {
    const std::uint64_t size = range.end - range.begin;
    if (memory.is_device_range_in_order(range.begin, size) ||
        memory.is_pinned_range(reinterpret_cast<const void*>(range.begin), size))
      continue;
    // Rare: neighbouring pinned blocks, or a real mistake. Byte by byte names the first.
    for (std::uintptr_t at = range.begin; at < range.end; ++at) {
      if (!memory.is_device_range_in_order(at, 1) && memory.find_pinned(reinterpret_cast<const void*>(at)) == nullptr)
        return at;
    }
  }
  return std::nullopt;
}

CUresult illegal_address(const std::string& launch, const char* what, std::uintptr_t address) {
  std::fprintf(stderr, "cudasim: %s: illegal address: it %s 0x%llx\n", launch.c_str(), what,
               static_cast<unsigned long long>(address));
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace cudasim
