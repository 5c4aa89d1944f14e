#include "memory/transfer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "memory/device_bytes.h"
#include "memory/fault_guard.h"

namespace cudasim {
namespace {

constexpr std::uint64_t kPieceBytes = 64u << 10;
constexpr std::uint64_t kMaxPieces = 8;

struct Span {
  std::uint64_t begin;
  std::uint64_t end;
};

// The part of the packed payload that belongs to a piece; cuts lie at multiples of `unit`.
Span span_of(std::uint64_t bytes, Piece piece, std::uint64_t unit) {
  const auto cut = [&](std::uint32_t index) {
    if (index == piece.count) return bytes;
    const std::uint64_t at = bytes / piece.count * index + bytes % piece.count * index / piece.count;
    return at / unit * unit;
  };
  return {cut(piece.index), cut(piece.index + 1)};
}

// Calls visit(y, z, x, size) for every run of bytes within one row.
template <class Visit>
void for_each_run(const Shape& shape, Span span, const Visit& visit) {
  for (std::uint64_t at = span.begin; at < span.end;) {
    const std::uint64_t row = at / shape.width;
    const std::uint64_t x = at % shape.width;
    const std::uint64_t size = std::min(shape.width - x, span.end - at);
    visit(row % shape.height, row / shape.height, x, size);
    at += size;
  }
}

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

Outcome guarded(const Memory& memory, const std::function<void()>& body) {
  const std::optional<std::uintptr_t> fault = FaultGuard::run(body);
  if (!fault) return Outcome::kDone;
  return memory.is_tracked(pointer(*fault)) ? Outcome::kDeviceFault : Outcome::kHostFault;
}

void fill(std::byte* to, std::uint64_t size, std::uint32_t pattern, unsigned pattern_size) {
  std::byte bytes[4];
  std::memcpy(bytes, &pattern, sizeof bytes);
  const auto same = [&](unsigned i) { return bytes[i] == bytes[0]; };
  if (pattern_size == 1 || (same(1) && (pattern_size == 2 || (same(2) && same(3))))) {
    fill_device_bytes(to, bytes[0], size);
    return;
  }
  // Doubling: the filled part is the pattern for the next.
  std::uint64_t filled = std::min<std::uint64_t>(pattern_size, size);
  move_device_bytes(to, bytes, filled);
  while (filled < size) {
    const std::uint64_t step = std::min({filled, size - filled, std::uint64_t{64} << 10});
    move_device_bytes(to + filled, to, step);
    filled += step;
  }
}

}  // namespace

Rows packed(std::uintptr_t base, const Shape& shape) { return {base, shape.width, shape.width * shape.height}; }

std::optional<std::uint64_t> extent_of(const Rows& rows, const Shape& shape) {
  if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return 0;
  std::uint64_t slices = 0;
  std::uint64_t lines = 0;
  std::uint64_t total = 0;
  std::uint64_t area = 0;
  std::uint64_t payload = 0;
  if (__builtin_mul_overflow(shape.depth - 1, rows.slice, &slices) ||
      __builtin_mul_overflow(shape.height - 1, rows.pitch, &lines) || __builtin_add_overflow(slices, lines, &total) ||
      __builtin_add_overflow(total, shape.width, &total) || __builtin_mul_overflow(shape.width, shape.height, &area) ||
      __builtin_mul_overflow(area, shape.depth, &payload)) {
    return std::nullopt;
  }
  return total;
}

std::uint32_t pieces_of(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / kPieceBytes, 1, kMaxPieces));
}

Duration transfer_time(std::uint64_t bytes, double bytes_per_ns) {
  if (!(bytes_per_ns > 0)) return Duration{0};
  return Duration{static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / bytes_per_ns))};
}

Outcome copy_piece(const Memory& memory, const Rows& to, const Rows& from, const Shape& shape, Piece piece,
                   AccessLog* log) {
  const Span span = span_of(shape.bytes(), piece, 1);
  if (log != nullptr) {
    for_each_run(shape, span, [&](std::uint64_t y, std::uint64_t z, std::uint64_t x, std::uint64_t size) {
      if (memory.is_tracked(pointer(from.row(y, z) + x))) log->read(from.row(y, z) + x, size);
      if (memory.is_tracked(pointer(to.row(y, z) + x))) log->write(to.row(y, z) + x, size);
    });
  }
  return guarded(memory, [&] {
    for_each_run(shape, span, [&](std::uint64_t y, std::uint64_t z, std::uint64_t x, std::uint64_t size) {
      move_device_bytes(pointer(to.row(y, z) + x), pointer(from.row(y, z) + x), size);
    });
  });
}

Outcome set_piece(const Memory& memory, const Rows& to, const Shape& shape, std::uint32_t pattern,
                  unsigned pattern_size, Piece piece, AccessLog& log) {
  const Span span = span_of(shape.bytes(), piece, pattern_size);
  for_each_run(shape, span, [&](std::uint64_t y, std::uint64_t z, std::uint64_t x, std::uint64_t size) {
    if (memory.is_tracked(pointer(to.row(y, z) + x))) log.write(to.row(y, z) + x, size);
  });
  return guarded(memory, [&] {
    for_each_run(shape, span, [&](std::uint64_t y, std::uint64_t z, std::uint64_t x, std::uint64_t size) {
      fill(static_cast<std::byte*>(pointer(to.row(y, z) + x)), size, pattern, pattern_size);
    });
  });
}

}  // namespace cudasim
