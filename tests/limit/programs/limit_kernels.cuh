// Kernels that get at a block in all the ways that a limit has to see. Written once: nvcc compiles them for devices,
// g++ for the simulator. One thread, one word.
#pragma once

struct Two {
  unsigned* out;
  const unsigned* in;
};

__device__ inline int this_word() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

extern "C" __global__ void limit_fill(unsigned* out, unsigned seed, int count) {
  const int i = this_word();
  if (i < count) out[i] = seed + static_cast<unsigned>(i);
}

extern "C" __global__ void limit_add(unsigned* out, const unsigned* in, int count) {
  const int i = this_word();
  if (i < count) out[i] += in[i];
}

// The addresses are members of a structure.
extern "C" __global__ void limit_add_two(int count, Two two) {
  const int i = this_word();
  if (i < count) two.out[i] += two.in[i];
}

// All that is named of the block is its end.
extern "C" __global__ void limit_add_before(unsigned* end, unsigned seed, int count) {
  const int i = this_word();
  if (i < count) end[i - count] += seed;
}

// The addresses stand in memory: on the device, or page-locked on the host.
extern "C" __global__ void limit_gather(unsigned* out, const unsigned* const* table, int blocks, int count) {
  const int i = this_word();
  if (i >= count) return;
  unsigned sum = 0;
  for (int block = 0; block < blocks; ++block) sum += table[block][i];
  out[i] = sum;
}

// Writes through an address that stands in memory.
extern "C" __global__ void limit_scatter(unsigned* const* table, int blocks, unsigned seed, int count) {
  const int i = this_word();
  if (i >= count) return;
  for (int block = 0; block < blocks; ++block) table[block][i] += seed;
}

// An address comes to stand in memory without the host.
extern "C" __global__ void limit_store(unsigned** table, int first, int count, unsigned* block) {
  const int i = this_word();
  if (i < count) table[first + i] = block + i;
}

// Touches a word of each of four blocks, however large they are.
extern "C" __global__ void limit_first_words(unsigned* a, unsigned* b, unsigned* c, unsigned* d) {
  if (this_word() != 0) return;
  *a += 1;
  *b += *a;
  *c += *b;
  *d += *c;
}
