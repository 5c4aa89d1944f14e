// A program of driver calls by several host threads, as the generator makes it and the runner executes it: one
// iteration, which is repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memopt::order {

// What stands in a block is one word again and again, which differs from iteration to iteration: base + step * number
// of the iteration. Closed under addition, so that the generator knows all contents beforehand.
struct Content {
  std::uint32_t base = 0;
  std::uint32_t step = 0;
  std::uint32_t in(std::uint32_t iteration) const { return base + step * iteration; }
};

enum class Kind : std::uint8_t {
  kAlloc,       // cuMemAlloc
  kFree,        // cuMemFree: waits for the device
  kAllocAsync,  // on the stream
  kFreeAsync,
  kMemset,
  kFill,           // a kernel writes
  kAdd,            // a kernel adds `source` to `block`
  kCopy,           // from `source` to `block`
  kCopyIn,         // from `slot` of pinned memory, written just before
  kCopyOut,        // to `slot`, compared at the end of the iteration
  kCopyOutNow,     // to pageable memory, by the call that waits; compared at once
  kCheckFunction,  // a host function compares `slot`
  kWaitFunction,   // a host function waits for `flag`
  kSetFlag,
  kCompareSlot,  // by the thread, which knows that the copy is over
  kRecord,
  kWaitEvent,
  kSyncEvent,
  kPollEvent,   // queries until it is over
  kQueryEvent,  // whatever the answer
  kQueryOver,   // the thread knows that it is over, and so must the query
  kElapsed,     // of two events that are over
  kSyncStream,
  kQueryStream,
  kSyncContext,
  kNewStream,  // destroys what the slot has, and creates another one
  kNewEvent,
};

struct Op {
  Kind kind{};
  int thread = 0;
  int stream = -1;
  int block = -1;
  int source = -1;
  int event = -1;
  int other_event = -1;
  int slot = -1;
  int flag = -1;
  Content content{};              // written, or expected
  std::uint32_t nanoseconds = 0;  // of device time that a kernel takes; 0: as its plug-in says
  // Calls of other threads that must have returned: thread and how many of its calls.
  std::vector<std::pair<int, int>> awaits{};
};

enum class StreamKind : std::uint8_t { kLegacy, kPerThread, kBlocking, kNonBlocking };

// Bytes that are allocated, and words that operations touch.
struct BlockShape {
  std::size_t bytes = 0;
  std::uint32_t words = 0;
  bool pooled = false;
};

struct Program {
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<StreamKind> streams;
  int events = 0;
  int slots = 0;  // of kSlotWords words each
  int flags = 0;
  std::vector<BlockShape> blocks;
  std::vector<Op> ops;  // in an order that is one of those possible; each thread's own come in it

  static constexpr std::uint32_t kSlotWords = 2048;
};

const char* name_of(Kind kind);
std::string describe(const Program& program, std::size_t op);  // for people

struct GeneratorOptions {
  int operations = 60;  // about; what orders them comes on top
  int most_threads = 4;
  bool host_functions = true;
  bool free_is_a_barrier = true;  // threads rely on cuMemFree having waited for the device
};
Program generate(std::uint64_t seed, const GeneratorOptions& options);

}  // namespace memopt::order
