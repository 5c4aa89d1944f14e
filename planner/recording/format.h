// What lies in a recording, little-endian. docs/formats/recording.md.
//
//   FileHeader | info: JSON, padded with zeros to 8 bytes | block | block | ... | end block
//
// A block is a BlockHeader and its payload, compressed by zstd; it is read without any other. A payload is a row of
// entries: an EntryHeader, and for kRecord a record as in shm/record.h, for kClock a ClockPair, for kGap nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "shm/record.h"

namespace memopt::planner::recording {

inline constexpr std::uint64_t kFileMagic = 0x314345525450'4d4d;  // "MMPTREC1"
// Whether a file that begins so is one of ours.
inline bool is_recording(std::string_view head) {
  std::uint64_t magic = 0;
  if (head.size() < sizeof magic) return false;
  std::memcpy(&magic, head.data(), sizeof magic);
  return magic == kFileMagic;
}
inline constexpr std::uint64_t kBlockMagic = 0x4b4c42435250'4d4d;  // "MMPRCBLK"
// Grows with any change that an older reader would misread; that of records themselves is kWireVersion.
inline constexpr std::uint32_t kFormat = 1;

inline constexpr std::size_t kMaxInfoBytes = std::size_t{1} << 20;
inline constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // a block is written when its payload reaches this
inline constexpr std::size_t kMaxBlockBytes = kBlockBytes + 2 * shm::kMaxRecordBytes;
// Larger than zstd can make of kMaxBlockBytes.
inline constexpr std::size_t kMaxPackedBytes = kMaxBlockBytes + kMaxBlockBytes / 128 + 1024;

// The first 24 bytes, and the info behind the header, stay so in every later format: a reader can say what it refuses.
struct FileHeader {
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t wire_version;
  std::uint32_t info_bytes;  // without padding
  std::uint32_t reserved;    // 0
  std::uint64_t info_hash;   // XXH64 of the info, seed 0
};
static_assert(sizeof(FileHeader) == 32);

enum class BlockKind : std::uint32_t {
  kEntries = 1,
  kEnd = 2,  // no payload: the writer was told that nothing follows
};

struct BlockHeader {
  std::uint64_t magic;
  std::uint32_t kind;
  std::uint32_t raw_bytes;       // of the payload; 0: none
  std::uint32_t packed_bytes;    // as it lies in the file; 0: none
  std::uint32_t records;         // kRecord entries in it
  std::uint64_t first_sequence;  // of its records; 0: it has none. kEnd: number of all records in the file
  std::uint64_t last_sequence;
  std::uint64_t payload_hash;  // XXH64 of the compressed payload, seed 0
  std::uint64_t header_hash;   // XXH64 of all before, seed 0
};
static_assert(sizeof(BlockHeader) == 56);

enum class EntryKind : std::uint32_t { kRecord = 0, kGap = 1, kClock = 2 };

struct EntryHeader {
  std::uint32_t lane;  // of a record; else 0
  std::uint32_t kind;
};

}  // namespace memopt::planner::recording
