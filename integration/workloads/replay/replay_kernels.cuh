// Stamps on the pages of blocks, and their verification. Written once: nvcc compiles them for devices, g++ for the
// simulator.
#pragma once

#include "stamp.h"

namespace replay {

__device__ inline unsigned this_page() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline void verify_page(const unsigned char* begin, unsigned long long bytes, unsigned first_page,
                                   const Content& content, Findings* findings) {
  const unsigned long long offset = static_cast<unsigned long long>(this_page()) * kPageBytes;
  if (offset >= bytes) return;
  const unsigned page = first_page + this_page();
  const unsigned valid = stamp_bytes(bytes - offset);
  unsigned found[kStampWords];
  unsigned expected[kStampWords];
  load_stamp(begin + offset, valid, found);
  expected_stamp(content, page, valid, expected);
  atomicAdd(&findings->pages, 1ull);
  atomicAdd(&findings->checksum, stamp_hash(found));
  bool same = true;
  for (unsigned i = 0; i < kStampWords; ++i) same = same && found[i] == expected[i];
  if (same) return;
  atomicAdd(&findings->mismatches, 1ull);
  if (atomicCAS(&findings->taken, 0u, 1u) != 0) return;
  findings->page = page;
  findings->valid_bytes = valid;
  findings->expected = content;
  for (unsigned i = 0; i < kStampWords; ++i) findings->found[i] = found[i];
}

}  // namespace replay

// One thread a page. `cost_bytes`: what the launch stands for; for the simulator's clock.
extern "C" __global__ void replay_stamp(unsigned char* begin, unsigned long long bytes, unsigned first_page,
                                        replay::Content content, unsigned long long cost_bytes) {
  const unsigned long long offset = static_cast<unsigned long long>(replay::this_page()) * replay::kPageBytes;
  if (offset >= bytes) return;
  const unsigned valid = replay::stamp_bytes(bytes - offset);
  unsigned words[replay::kStampWords];
  replay::expected_stamp(content, first_page + replay::this_page(), valid, words);
  replay::store_stamp(begin + offset, valid, words);
}

extern "C" __global__ void replay_verify(const unsigned char* begin, unsigned long long bytes, unsigned first_page,
                                         replay::Content content, replay::Findings* findings) {
  replay::verify_page(begin, bytes, first_page, content, findings);
}

// Bytes by the pointer behind the last one, as iterators have it.
extern "C" __global__ void replay_verify_range(const unsigned char* begin, const unsigned char* end,
                                               unsigned first_page, replay::Content content,
                                               replay::Findings* findings) {
  replay::verify_page(begin, static_cast<unsigned long long>(end - begin), first_page, content, findings);
}
