// What the vectors hold; the same on device and host. Whole numbers only, so that every machine finds the same bits.
#pragma once

#ifdef __CUDACC__
#define VECTOR_ANYWHERE __host__ __device__
#else
#define VECTOR_ANYWHERE
#endif

namespace vector {

constexpr int kRounds = 3;  // of an iteration, each with shorter vectors

VECTOR_ANYWHERE inline int length_of(int elements, int round) { return elements / (1 + round); }

VECTOR_ANYWHERE inline unsigned filled(unsigned seed, unsigned index) {
  unsigned x = seed * 0x9e3779b9u + index;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

VECTOR_ANYWHERE inline unsigned combined(unsigned a, unsigned b) { return a * 3u + (b << 7 | b >> 25) + 1u; }

// A round: x = fill(seed), v = fill(~seed), y = combine(x, v), and of z = combine(y, x) this element.
VECTOR_ANYWHERE inline unsigned expected(unsigned seed, unsigned index) {
  const unsigned x = filled(seed, index);
  return combined(combined(x, filled(~seed, index)), x);
}

}  // namespace vector
