// What the agent tells the planner about the program: one record per operation, written into the ring of the thread
// that issued it (ring.h), stored unchanged in recordings. docs/formats/wire.md draws every record.
//
// A record is a RecordHeader and a body, a multiple of 8 bytes, little-endian, at most kMaxRecordBytes. `sequence` is
// the operation's place in the order over all threads: numbered without gaps from 1, so that a missing number is a lost
// record. A reader copies a record out of shared memory before it looks at it, and treats it as hostile
// (parse_record).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace memopt::shm {

// Grows with any change of ring.h, record.h, channel.h or plan.h that an older reader would misread.
inline constexpr std::uint32_t kWireVersion = 1;

inline constexpr std::size_t kMaxRecordBytes = 64 * 1024;

enum class RecordKind : std::uint8_t {
  kPad = 0,             // fills the end of a ring; no body, no sequence
  kMalloc = 1,          // MallocBody
  kFree = 2,            // FreeBody
  kLaunch = 3,          // LaunchBody, then `accesses` words (see Access)
  kCopy = 4,            // CopyBody
  kMemset = 5,          // MemsetBody
  kEventRecord = 6,     // EventBody
  kEventWait = 7,       // EventBody: the stream waits
  kSynchronize = 8,     // SynchronizeBody: the host waits
  kStreamCreate = 9,    // StreamBody
  kStreamDestroy = 10,  // StreamBody
  kHostFunction = 11,   // StreamBody
  kFunction = 12,       // NameBody, then text: names function `id` before its first launch
  kStack = 13,          // StackBody, then `frames` words (return addresses, innermost first): once per distinct hash
  kParameters = 14,   // ParametersBody, then bytes: of the launch with `sequence` - 1; only while recording for a file
  kModule = 15,       // NameBody with id = load base, text = path and build id: to find names for stacks later
  kKernelTime = 16,   // KernelTimeBody: measured device time of an earlier launch, copy or memset
  kState = 17,        // StateBody: what the follower did
  kClock = 18,        // ClockBody: ticks and nanoseconds of the same instant
  kEscape = 19,       // EscapeBody: the block's address is stored where uses are not seen
  kPythonFrame = 20,  // NameBody, then text: names place `id` of the program's Python code, "function (file:line)"
  // StackBody, then `frames` words (ids of kPythonFrame, innermost first): where the thread's Python is from here on.
  // No words: as written before under this hash; hash 0: in none. Both only while recording for a file.
  kPythonStack = 21,
};
inline constexpr std::uint8_t kLastRecordKind = 21;

// Flags of a header.
inline constexpr std::uint8_t kStreamOrdered = 1;  // kMalloc, kFree: on `stream`, not plain
inline constexpr std::uint8_t kForeign = 2;      // kMalloc, kFree: memory that the driver allocates (async pool, pitch)
inline constexpr std::uint8_t kBlindLaunch = 4;  // kLaunch: its parameters could not be read; it may touch anything
inline constexpr std::uint8_t kStays = 8;        // kMalloc: the block may not leave the device

struct RecordHeader {
  std::uint8_t kind;
  std::uint8_t flags;
  std::uint16_t words;     // size of header and body in 8-byte words
  std::uint32_t aux;       // kLaunch: function id; kCopy: CopyKind; kState: StateChange; kKernelTime: idle time; else 0
  std::uint64_t sequence;  // 0 for kPad
  std::uint64_t ticks;     // of the processor's time stamp counter (kClock gives nanoseconds)
};

// Blocks are named by numbers that are never used twice in a process; 0 is "no block of ours".
struct MallocBody {
  std::uint64_t block;
  std::uint64_t bytes;           // as the program asked
  std::uint64_t stack;           // hash of the call stack; 0 if it could not be walked
  std::uint64_t return_address;  // of the program's call into the driver
  std::uint64_t stream;
  std::uint64_t address;  // where it lies
};
struct FreeBody {
  std::uint64_t block;
  std::uint64_t stream;
};
struct LaunchBody {
  std::uint64_t stream;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;
  std::uint32_t accesses;
};
// A word of the list behind LaunchBody: block number, with what is known about the access in the highest bits. A
// launch counts as writing whatever it names unless proved otherwise.
inline constexpr std::uint64_t kAccessReads = std::uint64_t{1} << 63;   // known to read
inline constexpr std::uint64_t kAccessWrites = std::uint64_t{1} << 62;  // known to write
// The pointer is the beginning of one block and the end of another, and both are named so: which of them is meant is
// not known, and that they are neighbours is an accident of the layout.
inline constexpr std::uint64_t kAccessAmbiguous = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kAccessBlock = kAccessAmbiguous - 1;

enum class CopyKind : std::uint32_t { kToDevice = 1, kToHost = 2, kOnDevice = 3, kUnknown = 4 };
struct CopyBody {
  std::uint64_t stream;
  std::uint64_t to;    // block or 0
  std::uint64_t from;  // block or 0
  std::uint64_t bytes;
};
struct MemsetBody {
  std::uint64_t stream;
  std::uint64_t block;
  std::uint64_t bytes;
};
struct EventBody {
  std::uint64_t event;
  std::uint64_t stream;
};
struct StreamBody {
  std::uint64_t stream;
};
enum class Scope : std::uint64_t { kContext = 1, kStream = 2, kEvent = 3 };
struct SynchronizeBody {
  std::uint64_t scope;
  std::uint64_t object;
};
struct NameBody {
  std::uint64_t id;
  std::uint64_t length;  // bytes of text that follow, padded with zeros to a word
};
struct StackBody {
  std::uint64_t hash;
  std::uint64_t frames;
};
struct ParametersBody {
  std::uint64_t launch;  // sequence
  std::uint64_t length;
};
// Header's aux: nanoseconds for which its stream had nothing to do before, up to the launch, or kIdleUnknown.
struct KernelTimeBody {
  std::uint64_t launch;  // sequence of the launch, copy or memset
  std::uint64_t nanoseconds;
  std::uint64_t end;  // on the device's clock, of which differences mean something; 0: not known
};
inline constexpr std::uint32_t kIdleUnknown = ~std::uint32_t{0};
enum class StateChange : std::uint32_t {
  kLive = 1,        // a plan is followed from here on
  kDeviated = 2,    // a thread has left it
  kRestarted = 3,   // the same, and nothing was recorded for a while: what comes does not continue what was before
  kNewContext = 4,  // the context of all that came before is gone, and its blocks with it: the program begins anew
};
struct StateBody {
  std::uint64_t generation;  // of the plan
  std::uint64_t slab;        // address at which the plans' places begin; 0: there is none yet
};
struct ClockBody {
  std::uint64_t nanoseconds;  // CLOCK_MONOTONIC
};

// From here on the block may not leave the device. It may be gone by now: one that is allocated in its place in the
// next iteration will hardly be another.
struct EscapeBody {
  std::uint64_t block;
};

static_assert(sizeof(RecordHeader) == 24 && sizeof(MallocBody) == 48 && sizeof(LaunchBody) == 40);

// Size of a kind's fixed body, or nothing for a kind that does not exist.
constexpr std::optional<std::size_t> fixed_body_bytes(std::uint8_t kind) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPad:
      return 0;
    case RecordKind::kMalloc:
      return sizeof(MallocBody);
    case RecordKind::kFree:
      return sizeof(FreeBody);
    case RecordKind::kLaunch:
      return sizeof(LaunchBody);
    case RecordKind::kCopy:
      return sizeof(CopyBody);
    case RecordKind::kMemset:
      return sizeof(MemsetBody);
    case RecordKind::kEventRecord:
    case RecordKind::kEventWait:
      return sizeof(EventBody);
    case RecordKind::kSynchronize:
      return sizeof(SynchronizeBody);
    case RecordKind::kStreamCreate:
    case RecordKind::kStreamDestroy:
    case RecordKind::kHostFunction:
      return sizeof(StreamBody);
    case RecordKind::kFunction:
    case RecordKind::kModule:
    case RecordKind::kPythonFrame:
      return sizeof(NameBody);
    case RecordKind::kStack:
    case RecordKind::kPythonStack:
      return sizeof(StackBody);
    case RecordKind::kParameters:
      return sizeof(ParametersBody);
    case RecordKind::kKernelTime:
      return sizeof(KernelTimeBody);
    case RecordKind::kState:
      return sizeof(StateBody);
    case RecordKind::kClock:
      return sizeof(ClockBody);
    case RecordKind::kEscape:
      return sizeof(EscapeBody);
  }
  return std::nullopt;
}

// A record that was copied out of shared memory and found whole. Valid as long as the bytes it was parsed from.
struct RecordView {
  RecordHeader header;
  std::span<const std::byte> body;  // fixed body and what follows it

  RecordKind kind() const { return static_cast<RecordKind>(header.kind); }
  // The fixed body; `Body` must be the one of this kind.
  template <typename Body>
  Body as() const {
    static_assert(std::is_trivially_copyable_v<Body>);
    Body value;
    std::memcpy(&value, body.data(), sizeof(Body));
    return value;
  }
  // What follows a fixed body of type `Body`, as 64-bit word `index`.
  template <typename Body>
  std::uint64_t word_behind(std::size_t index) const {
    std::uint64_t value;
    std::memcpy(&value, body.data() + sizeof(Body) + index * sizeof(value), sizeof(value));
    return value;
  }
  template <typename Body>
  std::span<const std::byte> bytes_behind(std::size_t length) const {
    return body.subspan(sizeof(Body), length);
  }
};

namespace record_detail {

// Of header and fixed body, by kind.
inline constexpr auto kFixedBytes = [] {
  std::array<std::uint8_t, kLastRecordKind + 1> bytes{};
  for (std::uint8_t kind = 0; kind <= kLastRecordKind; ++kind) {
    bytes[kind] = static_cast<std::uint8_t>(sizeof(RecordHeader) + fixed_body_bytes(kind).value());
  }
  return bytes;
}();

// Bytes behind the fixed body, as the count in its second word says; ~0 for an impossible count.
inline std::uint64_t counted_bytes(RecordKind kind, const std::byte* body) {
  static_assert(offsetof(NameBody, length) == 8 && offsetof(StackBody, frames) == 8 &&
                offsetof(ParametersBody, length) == 8);
  std::uint64_t count;
  std::memcpy(&count, body + 8, sizeof(count));
  if (count > kMaxRecordBytes) return ~std::uint64_t{0};
  const bool words = kind == RecordKind::kStack || kind == RecordKind::kPythonStack;
  return words ? count * 8 : (count + 7) / 8 * 8;
}

}  // namespace record_detail

// Size of the first record of `bytes` (8-byte aligned lengths; the memory must no longer be shared). 0 if it is cut
// off, of an unknown kind, or if its counts do not agree with its size.
inline std::size_t checked_record_bytes(std::span<const std::byte> bytes) {
  constexpr auto bit = [](RecordKind kind) { return 1u << static_cast<unsigned>(kind); };
  constexpr std::uint32_t kCounted = bit(RecordKind::kStack) | bit(RecordKind::kFunction) | bit(RecordKind::kModule) |
                                     bit(RecordKind::kParameters) | bit(RecordKind::kPythonFrame) |
                                     bit(RecordKind::kPythonStack);
  if (bytes.size() < sizeof(RecordHeader)) return 0;
  RecordHeader header;
  std::memcpy(&header, bytes.data(), 8);
  if (header.kind > kLastRecordKind) return 0;
  const std::size_t size = std::size_t{header.words} * 8;
  const std::size_t fixed = record_detail::kFixedBytes[header.kind];
  if (size < fixed || size > bytes.size()) return 0;
  const std::byte* const body = bytes.data() + sizeof(RecordHeader);
  // The most frequent first.
  if (header.kind == static_cast<std::uint8_t>(RecordKind::kLaunch)) {
    std::uint32_t accesses;
    std::memcpy(&accesses, body + offsetof(LaunchBody, accesses), sizeof(accesses));
    return std::uint64_t{accesses} * 8 == size - fixed && size <= kMaxRecordBytes ? size : 0;
  }
  if (size == fixed && (kCounted >> header.kind & 1) == 0) return size;
  if (size > kMaxRecordBytes) return 0;
  if (header.kind == static_cast<std::uint8_t>(RecordKind::kPad)) return size;
  if ((kCounted >> header.kind & 1) == 0) return 0;
  return record_detail::counted_bytes(static_cast<RecordKind>(header.kind), body) == size - fixed ? size : 0;
}

// The record at `first`, which was checked.
inline RecordView view_record(const std::byte* first) {
  RecordView view;
  std::memcpy(&view.header, first, sizeof(RecordHeader));
  view.body = {first + sizeof(RecordHeader), std::size_t{view.header.words} * 8 - sizeof(RecordHeader)};
  return view;
}

// The first record of `bytes`; nothing if checked_record_bytes() says so.
inline std::optional<RecordView> parse_record(std::span<const std::byte> bytes) {
  if (checked_record_bytes(bytes) == 0) return std::nullopt;
  return view_record(bytes.data());
}

// Records that were checked and lie one behind the other. Valid as long as the bytes.
class RecordRun {
 public:
  class Iterator {
   public:
    explicit Iterator(const std::byte* at) : at_(at) {}
    RecordView operator*() const { return view_record(at_); }
    const std::byte* bytes() const { return at_; }
    Iterator& operator++() {
      std::uint16_t words;
      std::memcpy(&words, at_ + offsetof(RecordHeader, words), sizeof(words));
      at_ += std::size_t{words} * 8;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_;
  };

  // `bytes` end where a record ends.
  explicit RecordRun(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace memopt::shm
