// What the stand-ins' kernels do to device memory, and how long they take.
//
// Each writes its outputs as a function of all bytes that it reads, of its name and of the call's scalars; no address
// enters. So whether operands were whole and in order can be told from the results, natively and under anything
// between. The numbers are finite and near one, but mean nothing.
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <xxhash.h>

#include <algorithm>

#include "common/work_parameters.h"

namespace {

using cudasim::libraries::Part;
using cudasim::libraries::WorkParameters;

// CUDASIM_LIBRARY_BYTES: whole operands, the first 64 bytes of each 4 KiB of them, or none.
enum class Effect { kAll, kSome, kNone };

Effect effect() {
  static const Effect chosen = [] {
    const char* value = getenv("CUDASIM_LIBRARY_BYTES");
    if (value != nullptr && strcmp(value, "some") == 0) return Effect::kSome;
    return value != nullptr && strcmp(value, "none") == 0 ? Effect::kNone : Effect::kAll;
  }();
  return chosen;
}

unsigned char* plane_of(const Part& part, uint64_t plane) {
  if (part.table != 0) return static_cast<unsigned char**>(part.data)[plane];
  return static_cast<unsigned char*>(part.data) + plane * part.plane_pitch;
}

// Calls use(bytes, count) for each run of bytes of the part that counts.
template <class Use>
void each_run(const Part& part, Use use) {
  constexpr uint64_t kPage = 4096, kLine = 64;
  const bool some = effect() == Effect::kSome;
  for (uint64_t plane = 0; plane < part.planes; ++plane) {
    unsigned char* const base = plane_of(part, plane);
    // Rows of less than a page: every so many of them.
    const uint64_t step = some && part.pitch < kPage && part.pitch != 0 ? (kPage + part.pitch - 1) / part.pitch : 1;
    for (uint64_t row = 0; row < part.rows; row += step) {
      unsigned char* const bytes = base + row * part.pitch;
      if (!some) {
        use(bytes, part.row_bytes);
        continue;
      }
      for (uint64_t at = 0; at < part.row_bytes; at += kPage) use(bytes + at, std::min(kLine, part.row_bytes - at));
    }
  }
}

void fill(unsigned char* bytes, uint64_t count, uint64_t& state, const WorkParameters& p) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  uint64_t word = state;
  const uint64_t words = count / 8;
  for (uint64_t i = 0; i < words; ++i) {
    const uint64_t mixed = word + i * kStep;
    const uint64_t value = ((mixed ^ (mixed >> 29)) & p.value_mask) | p.value_base;
    memcpy(bytes + 8 * i, &value, 8);
  }
  word += words * kStep;
  if (const uint64_t rest = count % 8; rest != 0) {
    const uint64_t value = ((word ^ (word >> 29)) & p.value_mask) | p.value_base;
    memcpy(bytes + 8 * words, &value, rest);
    word += kStep;
  }
  state = word;
}

void work(WorkParameters p) {
  if (effect() == Effect::kNone || p.reads + p.writes > cudasim::libraries::kMostParts) return;
  XXH3_state_t hash;
  // Else what lies on the stack may be taken for a secret that was made for this seed before.
  XXH3_INITSTATE(&hash);
  XXH3_64bits_reset_withSeed(&hash, p.seed);
  for (uint32_t i = 0; i < p.reads; ++i) {
    each_run(p.parts[i], [&](const unsigned char* bytes, uint64_t count) { XXH3_64bits_update(&hash, bytes, count); });
  }
  uint64_t state = XXH3_64bits_digest(&hash);
  for (uint32_t i = p.reads; i < p.reads + p.writes; ++i) {
    each_run(p.parts[i], [&](unsigned char* bytes, uint64_t count) { fill(bytes, count, state, p); });
  }
}

cudasim::Cost cost_of(cudasim::Grid, const WorkParameters& p) {
  double bytes = 0;
  for (uint32_t i = 0; i < p.reads + p.writes && i < cudasim::libraries::kMostParts; ++i) {
    bytes += double(p.parts[i].row_bytes) * double(p.parts[i].rows) * double(p.parts[i].planes);
  }
  return {p.flops, bytes, 0};
}

constexpr auto kCost = [](cudasim::Grid grid, const WorkParameters& p) { return cost_of(grid, p); };

}  // namespace

#define CUDASIM_LIBRARY_KERNEL(name) CUDASIM_KERNEL_NAMED(#name, work, kCost);
CUDASIM_LIBRARY_KERNELS(CUDASIM_LIBRARY_KERNEL)
