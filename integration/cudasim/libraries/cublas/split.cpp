#include "cublas/values.h"

namespace cudasim::libraries::cublas {

uint64_t split_workspace(int64_t m, int64_t n, int64_t k, int64_t batch, uint64_t limit) {
  constexpr int64_t kTile = 128, kShortest = 512;
  const int64_t tiles = ((m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile) * (batch < 1 ? 1 : batch);
  const int64_t fit = tiles == 0 ? 1 : multiprocessors() / tiles;
  const int64_t splits = fit < k / kShortest ? fit : k / kShortest;
  if (splits < 2) return 0;
  const uint64_t one = static_cast<uint64_t>(m) * static_cast<uint64_t>(n) * sizeof(float);
  const uint64_t wanted = one * static_cast<uint64_t>(splits) * static_cast<uint64_t>(batch < 1 ? 1 : batch);
  if (wanted <= limit) return wanted;
  // Fewer parts, where two fit.
  const uint64_t least = 2 * one * static_cast<uint64_t>(batch < 1 ? 1 : batch);
  return least <= limit ? limit / one * one : 0;
}

}  // namespace cudasim::libraries::cublas
