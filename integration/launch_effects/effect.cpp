#include "effect.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace launch_effects {
namespace {

constexpr std::uint64_t kPage = 4096, kLine = 64;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
// Of each 16 bits a sign and eight of the mantissa vary.
constexpr std::uint64_t kVarying = 0x80ff80ff80ff80ffu, kFixed = 0x3f003f003f003f00u;

// Calls use(offset, count) for each run of bytes of a range that counts.
template <typename Use>
void each_run(Extent extent, Range range, Use use) {
  if (extent != Extent::kSome) return use(range.begin, range.end - range.begin);
  for (std::uint64_t page = range.begin / kPage * kPage; page < range.end; page += kPage) {
    const std::uint64_t begin = std::max(page, range.begin), end = std::min(page + kLine, range.end);
    if (begin < end) use(begin, end - begin);
  }
}

// By place in the block, so that it does not matter which runs are written.
void fill(unsigned char* block, std::uint64_t offset, std::uint64_t count, std::uint64_t seed) {
  const auto word = [seed](std::uint64_t index) {
    const std::uint64_t value = seed + index * kStep;
    return ((value ^ (value >> 29)) & kVarying) | kFixed;
  };
  const std::uint64_t first = offset / 8;  // runs begin at multiples of 64
  unsigned char* const bytes = block + offset;
  for (std::uint64_t i = 0; i < count / 8; ++i) {
    const std::uint64_t value = word(first + i);
    std::memcpy(bytes + 8 * i, &value, 8);
  }
  if (const std::uint64_t rest = count % 8; rest != 0) {
    const std::uint64_t value = word(first + count / 8);
    std::memcpy(bytes + count - rest, &value, rest);
  }
}

// All of it, in any extent: a plug-in's kernel may look at other bytes of a block than this does.
void fill_unwritten_of(const Operand& operand) {
  for (const Range& range : operand.unwritten) std::memset(operand.bytes + range.begin, 0, range.end - range.begin);
}

}  // namespace

std::uint64_t hash_of(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint64_t hash_of(const unsigned char* bytes, Range range, Extent extent) {
  std::uint64_t hash = range.begin;
  each_run(extent, range, [&](std::uint64_t begin, std::uint64_t count) {
    hash = hash_of(bytes + (begin - range.begin), count, hash);
  });
  return hash;
}

std::uint64_t mixed(std::uint64_t value, std::uint64_t with) {
  const std::uint64_t words[] = {value, with};
  return hash_of(words, sizeof words, kStep);
}

void Effect::fill_unwritten() {
  for (const Operand& operand : operands) fill_unwritten_of(operand);
}

void Effect::read() {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, digest);
  for (const Operand& operand : operands) {
    XXH3_64bits_update(&state, &operand.size, sizeof operand.size);
    // A block that is written for the first time is not read.
    if (!operand.is_read) continue;
    fill_unwritten_of(operand);
    each_run(extent, {0, operand.size}, [&](std::uint64_t begin, std::uint64_t count) {
      XXH3_64bits_update(&state, operand.bytes + begin, count);
    });
  }
  hash = XXH3_64bits_digest(&state);
}

void Effect::write() {
  std::uint64_t seed = hash;
  for (const Operand& operand : operands) {
    seed = mixed(seed, operand.size);
    if (!operand.is_read && (!operand.is_written || extent == Extent::kSome)) fill_unwritten_of(operand);
    if (!operand.is_written) continue;
    each_run(extent, {0, operand.size},
             [&](std::uint64_t begin, std::uint64_t count) { fill(operand.bytes, begin, count, seed); });
  }
  if (found != nullptr) found->store(hash, std::memory_order_relaxed);
  sums->hash.fetch_add(mixed(hash, place), std::memory_order_relaxed);
  sums->effects.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace launch_effects
