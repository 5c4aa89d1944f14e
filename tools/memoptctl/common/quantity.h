// Sizes and durations as shm/sizes.h and shm/durations.h read them, exactly.
#pragma once

#include <cstdint>
#include <string>

namespace memopt::tools {

// In the largest unit of which there is a whole number: 8589934592 -> "8GiB", 1536 -> "1536B". parse_bytes of it gives
// the same, up to 2^62.
std::string exact_size(std::uint64_t bytes);

// Likewise: 90000000000 ns -> "90s". parse_duration of it gives the same, up to 2^62.
std::string exact_duration(std::uint64_t nanoseconds);

}  // namespace memopt::tools
