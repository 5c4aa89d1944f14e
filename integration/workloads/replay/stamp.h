// What the pages of blocks are stamped with; the same on device and host.
//
// The first 16 bytes of every 4 KiB of a block say whose they are: block, version (counts the writes), page, and a
// check word. A block that was filled (memset) has one word throughout instead. Where a block's last page is shorter,
// it has as much as fits.
#pragma once

#ifdef __CUDACC__
#define REPLAY_ANYWHERE __host__ __device__
#else
#define REPLAY_ANYWHERE
#endif

namespace replay {

constexpr unsigned kPageBytes = 4096;
constexpr unsigned kStampWords = 4;

// What a block holds.
struct Content {
  unsigned block;
  unsigned version;
  unsigned salt;    // of the run and thread
  unsigned filled;  // 1: fill_word() everywhere
};

// What the reading kernels found; one for each stream, so that only one kernel at a time adds to it.
struct Findings {
  unsigned long long pages;
  unsigned long long checksum;  // sum over pages of stamp_hash()
  unsigned long long mismatches;
  unsigned taken;  // of the first mismatch:
  unsigned page;
  unsigned valid_bytes;
  unsigned reserved;
  Content expected;
  unsigned found[kStampWords];
};

REPLAY_ANYWHERE inline unsigned mix(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

REPLAY_ANYWHERE inline unsigned fill_word(const Content& content) {
  return mix(content.block + mix(content.version + mix(content.salt + 1)));
}

REPLAY_ANYWHERE inline unsigned stamp_word(const Content& content, unsigned page, unsigned word) {
  if (content.filled) return fill_word(content);
  if (word == 0) return content.block;
  if (word == 1) return content.version;
  if (word == 2) return page;
  return mix(page + mix(content.block + mix(content.version + mix(content.salt))));
}

REPLAY_ANYWHERE inline unsigned long long stamp_hash(const unsigned* words) {
  unsigned long long hash = 0xcbf29ce484222325ull;
  for (unsigned i = 0; i < kStampWords; ++i) hash = (hash ^ words[i]) * 0x100000001b3ull;
  return (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9ull;
}

// Bytes of the stamp of a page of which `left` bytes are there.
REPLAY_ANYWHERE inline unsigned stamp_bytes(unsigned long long left) {
  return left < kStampWords * 4 ? static_cast<unsigned>(left) : kStampWords * 4;
}

// The expected stamp, cut to `valid` bytes; what is cut off is zero.
REPLAY_ANYWHERE inline void expected_stamp(const Content& content, unsigned page, unsigned valid, unsigned* words) {
  for (unsigned i = 0; i < kStampWords; ++i) {
    const unsigned word = stamp_word(content, page, i);
    const unsigned bytes = valid > 4 * i ? valid - 4 * i : 0;
    words[i] = bytes >= 4 ? word : bytes == 0 ? 0 : word & ((1u << (8 * bytes)) - 1);
  }
}

// Pages lie at multiples of 4 KiB in blocks that are aligned themselves: whole words are aligned.
REPLAY_ANYWHERE inline void load_stamp(const unsigned char* at, unsigned valid, unsigned* words) {
  for (unsigned i = 0; i < kStampWords; ++i) {
    words[i] = 0;
    if (valid >= 4 * i + 4) {
      words[i] = *reinterpret_cast<const unsigned*>(at + 4 * i);
    } else {
      for (unsigned b = 4 * i; b < valid; ++b) words[i] |= static_cast<unsigned>(at[b]) << (8 * (b - 4 * i));
    }
  }
}

REPLAY_ANYWHERE inline void store_stamp(unsigned char* at, unsigned valid, const unsigned* words) {
  for (unsigned i = 0; i < kStampWords; ++i) {
    if (valid >= 4 * i + 4) {
      *reinterpret_cast<unsigned*>(at + 4 * i) = words[i];
    } else {
      for (unsigned b = 4 * i; b < valid; ++b) at[b] = static_cast<unsigned char>(words[i] >> (8 * (b - 4 * i)));
    }
  }
}

}  // namespace replay
