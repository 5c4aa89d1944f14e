// What is known of each byte: who wrote it last and who has read it since. An interval map, since neighbours mostly
// agree.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checker/checker.h"
#include "checker/vector_clock.h"

namespace cudasim {

// One operation as reports name it. Shared by all bytes that it touched.
struct Accessor {
  ActorId actor;
  std::uint64_t step;  // of its actor
  std::string operation;
  std::string actor_name;  // as it was then: actors are reused

  bool before(const VectorClock& clock) const { return clock.of(actor) >= step; }
};
using AccessorPtr = std::shared_ptr<const Accessor>;

// The last three are stream-ordered: what lies in a memory pool is given out and freed by queued operations.
enum class AccessKind : std::uint8_t { kRead, kWrite, kFree, kAllocate, kFreeInOrder, kReserve };

class Shadow {
 public:
  // Earlier access that is not ordered before the new one, or after which nothing may access, and the bytes concerned.
  using Conflict =
      std::function<void(const Accessor& earlier, AccessKind earlier_kind, std::uint64_t begin, std::uint64_t end)>;

  void read(std::uint64_t begin, std::uint64_t end, const AccessorPtr& reader, const VectorClock& clock,
            const Conflict& conflict);
  void write(std::uint64_t begin, std::uint64_t end, const AccessorPtr& writer, const VectorClock& clock,
             const Conflict& conflict);
  void forget(std::uint64_t begin, std::uint64_t end, const VectorClock& clock, const Conflict& conflict);

  // Bytes that are given out and freed by queued operations. From free_in_order() or reserve() up to the next
  // allocate() every access is a conflict, in whatever order; after allocate() those that are not ordered behind it.
  void allocate(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by, const VectorClock& clock,
                const Conflict& conflict);
  void free_in_order(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by, const VectorClock& clock,
                     const Conflict& conflict);
  void reserve(std::uint64_t begin, std::uint64_t end, const AccessorPtr& by);

  std::size_t segments() const { return segments_.size(); }

 private:
  struct Segment {
    std::uint64_t end = 0;
    AccessorPtr writer;                           // may be null
    std::vector<AccessorPtr> readers;             // since the write; at most one per actor, none ordered before another
    AccessKind writer_kind = AccessKind::kWrite;  // or kAllocate, kFreeInOrder, kReserve

    bool accessible() const { return writer_kind != AccessKind::kFreeInOrder && writer_kind != AccessKind::kReserve; }
  };
  using Segments = std::map<std::uint64_t, Segment>;

  void split(std::uint64_t at);
  void put(std::uint64_t begin, Segment segment);
  static void report_unordered(const Segment& segment, std::uint64_t begin, const VectorClock& clock,
                               const Conflict& conflict);
  static void add_reader(Segment& segment, const AccessorPtr& reader, const VectorClock& clock);
  Segments::iterator merge_with_previous(Segments::iterator segment);

  Segments segments_;  // by begin; disjoint
};

}  // namespace cudasim
