// What the device does while facts are measured. Written once: nvcc compiles it for devices, g++ for the simulator.
#pragma once

namespace facts {

#ifdef __CUDA_ARCH__
__device__ inline unsigned long long device_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
#endif

}  // namespace facts

extern "C" __global__ void facts_empty(int) {}

// Runs for so long; `gaps` (or null) gets the longest time between two looks at the device's clock in [0], how many
// looks in [1], and how long it ran in [2]. One thread. The simulator takes the time and leaves `gaps` alone.
extern "C" __global__ void facts_spin(unsigned long long nanoseconds, unsigned long long* gaps) {
#ifdef __CUDA_ARCH__
  const unsigned long long begin = facts::device_ns();
  unsigned long long last = begin, longest = 0, looks = 0;
  while (last - begin < nanoseconds) {
    const unsigned long long now = facts::device_ns();
    if (now - last > longest) longest = now - last;
    last = now;
    ++looks;
  }
  if (gaps != nullptr) {
    gaps[0] = longest;
    gaps[1] = looks;
    gaps[2] = last - begin;
  }
#else
  (void)nanoseconds;
  (void)gaps;
#endif
}

extern "C" __global__ void facts_fill(unsigned* words, unsigned long long count, unsigned first) {
  const unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) words[i] = first + static_cast<unsigned>(i);
}

extern "C" __global__ void facts_compare(const unsigned* words, unsigned long long count, unsigned first,
                                         unsigned long long* different) {
  const unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && words[i] != first + static_cast<unsigned>(i)) atomicAdd(different, 1ull);
}

// Reads through one address, writes through the other, and reads the first again, all in one thread of one grid: what
// nobody promises. Counts the words that still looked old.
extern "C" __global__ void facts_within(unsigned* written, const unsigned* read, unsigned long long count,
                                        unsigned first, unsigned long long* old) {
  const unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const volatile unsigned* const look = read;
  const unsigned before = look[i];
  written[i] = first + static_cast<unsigned>(i);
  __threadfence();
  if (look[i] == before) atomicAdd(old, 1ull);
}
