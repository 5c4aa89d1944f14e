// A ring of records in shared memory: one thread of the program writes, the planner reads. Neither ever waits for the
// other: a full ring drops the record, and the gap in the sequence numbers tells.
//
//   offset 0     RingHeader (4 KiB)
//   offset 4096  data, `capacity` bytes (a power of two)
//
// `head` and `tail` count bytes since the beginning and only grow. A record does not wrap: a kPad record fills the end.
// The reader believes nothing: it keeps its own tail and capacity, checks head against them, copies out, then parses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "shm/record.h"

namespace memopt::shm {

inline constexpr std::uint64_t kRingMagic = 0x31474e5254504d4d;  // "MMPTRNG1"
inline constexpr std::size_t kRingDataOffset = 4096;
inline constexpr std::size_t kMinRingCapacity = 2 * kMaxRecordBytes;
inline constexpr std::size_t kMaxRingCapacity = std::size_t{1} << 30;

struct RingHeader {
  std::uint64_t magic;
  std::uint32_t wire_version;
  std::uint32_t lane;  // number of the writing thread within its process, from 0
  std::uint64_t capacity;
  alignas(64) std::atomic<std::uint64_t> head;  // written by the program
  std::atomic<std::uint64_t> dropped;           // records that did not fit, written by the program
  alignas(64) std::atomic<std::uint64_t> tail;  // written by the planner
};
static_assert(sizeof(RingHeader) <= kRingDataOffset);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The writing side. Not thread-safe: one thread of the program owns it.
class RingWriter {
 public:
  RingWriter() = default;

  // `memory` is a fresh mapping of kRingDataOffset + capacity bytes, not yet shared.
  static RingWriter create(void* memory, std::size_t capacity, std::uint32_t lane) {
    auto* header = new (memory) RingHeader{};
    header->magic = kRingMagic;
    header->wire_version = kWireVersion;
    header->lane = lane;
    header->capacity = capacity;
    RingWriter writer;
    writer.header_ = header;
    writer.data_ = static_cast<std::byte*>(memory) + kRingDataOffset;
    writer.capacity_ = capacity;
    return writer;
  }

  explicit operator bool() const { return header_ != nullptr; }
  std::uint32_t lane() const { return header_->lane; }

  // Room for a record of `bytes` (a multiple of 8, at most kMaxRecordBytes), or null: full, and counted as dropped.
  // What is written there is seen by the reader only after commit(bytes).
  std::byte* reserve(std::size_t bytes) {
    const std::size_t at = static_cast<std::size_t>(head_ & (capacity_ - 1));
    const std::size_t to_end = capacity_ - at;
    const std::size_t pad = bytes <= to_end ? 0 : to_end;
    if (head_ + pad + bytes - tail_ > capacity_) [[unlikely]] {
      // Acquire pairs with the reader's release in RingReader: what it has read may be overwritten.
      tail_ = header_->tail.load(std::memory_order_acquire);
      // A reader that writes nonsense there can only make us drop.
      if (tail_ > head_ || head_ + pad + bytes - tail_ > capacity_) {
        tail_ = tail_ > head_ ? head_ - capacity_ : tail_;
        header_->dropped.store(header_->dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return nullptr;
      }
    }
    if (pad != 0) [[unlikely]] {
      // A multiple of 8, but perhaps too small for a whole header: kind and words are in its first word.
      RecordHeader filler{};
      filler.kind = static_cast<std::uint8_t>(RecordKind::kPad);
      // A pad longer than 16 bits of words is impossible: it is shorter than the record that did not fit.
      filler.words = static_cast<std::uint16_t>(pad / 8);
      std::memcpy(data_ + at, &filler, pad < sizeof(filler) ? pad : sizeof(filler));
      head_ += pad;
    }
    return data_ + (head_ & (capacity_ - 1));
  }

  void commit(std::size_t bytes) {
    head_ += bytes;
    // Release pairs with the acquire in RingReader::read.
    header_->head.store(head_, std::memory_order_release);
  }

  std::uint64_t dropped() const { return header_->dropped.load(std::memory_order_relaxed); }

 private:
  RingHeader* header_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;  // as last seen
};

// The reading side, in another process. Not thread-safe.
class RingReader {
 public:
  enum class State { kGood, kCorrupt };

  // `memory` is a mapping of `mapped_bytes`. Nothing (a reader that is false) unless magic, version and capacity fit
  // it.
  static RingReader open(void* memory, std::size_t mapped_bytes) {
    RingReader reader;
    if (memory == nullptr || mapped_bytes < kRingDataOffset + kMinRingCapacity) return reader;
    auto* header = static_cast<RingHeader*>(memory);
    const std::uint64_t capacity = header->capacity;
    if (header->magic != kRingMagic || header->wire_version != kWireVersion) return reader;
    if (capacity < kMinRingCapacity || capacity > kMaxRingCapacity || (capacity & (capacity - 1)) != 0 ||
        capacity + kRingDataOffset > mapped_bytes) {
      return reader;
    }
    reader.header_ = header;
    reader.data_ = static_cast<const std::byte*>(memory) + kRingDataOffset;
    reader.capacity_ = capacity;
    reader.lane_ = header->lane;
    // Where an earlier reader stopped; 0 in a fresh ring. read() checks it against head.
    reader.tail_ = header->tail.load(std::memory_order_acquire);
    reader.resumed_ = reader.tail_ != 0;
    if ((reader.tail_ & 7) != 0) return RingReader();
    return reader;
  }

  explicit operator bool() const { return header_ != nullptr; }
  std::uint32_t lane() const { return lane_; }
  State state() const { return state_; }
  bool resumed() const { return resumed_; }  // not from the ring's beginning
  std::size_t capacity() const { return capacity_; }
  // Bytes that wait to be read, by the writer's word; never more than the capacity.
  std::size_t waiting() const {
    const std::uint64_t bytes = header_->head.load(std::memory_order_relaxed) - tail_;
    return bytes > capacity_ ? capacity_ : static_cast<std::size_t>(bytes);
  }
  std::uint64_t dropped() const { return header_->dropped.load(std::memory_order_relaxed); }

  // Copies out what has been written, up to `limit` bytes (at least kMaxRecordBytes), and gives the room back. What
  // comes is cut where the writer's lengths say that a record ends, without pads; each record is still to be parsed.
  // Empty: nothing new for now (ask again: the ring may just have wrapped), or corrupt (state()).
  std::span<const std::byte> read(std::vector<std::byte>& buffer, std::size_t limit) {
    if (state_ == State::kCorrupt) return {};
    const std::uint64_t head = header_->head.load(std::memory_order_acquire);
    if (head < tail_ || head - tail_ > capacity_ || (head & 7) != 0) {
      state_ = State::kCorrupt;
      return {};
    }
    const std::size_t at = static_cast<std::size_t>(tail_ & (capacity_ - 1));
    std::size_t bytes = static_cast<std::size_t>(head - tail_);
    if (bytes > capacity_ - at) bytes = capacity_ - at;
    if (bytes > limit) bytes = limit / 8 * 8;
    if (bytes == 0) return {};
    if (buffer.size() < bytes) buffer.resize(bytes);
    std::memcpy(buffer.data(), data_ + at, bytes);
    // Cut at a record's end, walking the copy by its own lengths. A pad, at the end of the ring only, is swallowed.
    std::size_t whole = 0;
    std::size_t pad = 0;
    while (whole + 8 <= bytes) {
      RecordHeader header{};
      std::memcpy(&header, buffer.data() + whole, 8);
      const std::size_t size = std::size_t{header.words} * 8;
      if (size == 0 || size > kMaxRecordBytes) {
        state_ = State::kCorrupt;
        return {};
      }
      if (whole + size > bytes) break;
      if (header.kind == static_cast<std::uint8_t>(RecordKind::kPad)) {
        pad = size;
        break;
      }
      whole += size;
    }
    if (whole + pad == 0 && bytes >= kMaxRecordBytes) state_ = State::kCorrupt;
    tail_ += whole + pad;
    // Release pairs with the acquire in RingWriter::reserve.
    header_->tail.store(tail_, std::memory_order_release);
    return std::span<const std::byte>(buffer).first(whole);
  }

 private:
  RingHeader* header_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint32_t lane_ = 0;
  std::uint64_t tail_ = 0;
  State state_ = State::kGood;
  bool resumed_ = false;
};

}  // namespace memopt::shm
