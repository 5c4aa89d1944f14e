// The shape of a copy or a set and the doing of it, piece by piece, by real loads and stores.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "access_log.h"
#include "memory/memory.h"
#include "units.h"

namespace cudasim {

// `depth` slices of `height` rows of `width` bytes.
struct Shape {
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t depth = 1;

  std::uint64_t bytes() const { return width * height * depth; }
};

// Where the rows of one side lie.
struct Rows {
  std::uintptr_t base = 0;
  std::uint64_t pitch = 0;  // from row to row
  std::uint64_t slice = 0;  // from slice to slice

  std::uintptr_t row(std::uint64_t y, std::uint64_t z) const { return base + y * pitch + z * slice; }
};

Rows packed(std::uintptr_t base, const Shape& shape);

// From the first byte to behind the last; nullopt when that does not fit into 64 bits.
std::optional<std::uint64_t> extent_of(const Rows& rows, const Shape& shape);

// Copies are done in up to 8 pieces from 128 KiB up, so that other work can come in between.
std::uint32_t pieces_of(std::uint64_t bytes);

// Time for `bytes` at `bytes_per_ns`, rounded up to whole nanoseconds; 0 when the rate is 0.
Duration transfer_time(std::uint64_t bytes, double bytes_per_ns);

// How one run of a row ended.
enum class Outcome { kDone, kDeviceFault, kHostFault };

struct Piece {
  std::uint32_t index;
  std::uint32_t count;
};

// Moves one piece of the copy and logs what it touched of device and pinned memory. Never throws on a fault.
Outcome copy_piece(const Memory& memory, const Rows& to, const Rows& from, const Shape& shape, Piece piece,
                   AccessLog* log);

// Fills one piece with a pattern of `pattern_size` bytes (1, 2 or 4); the width is a multiple of it.
Outcome set_piece(const Memory& memory, const Rows& to, const Shape& shape, std::uint32_t pattern,
                  unsigned pattern_size, Piece piece, AccessLog& log);

}  // namespace cudasim
