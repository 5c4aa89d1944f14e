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

enum class AccessKind : std::uint8_t { kRead, kWrite, kFree };

class Shadow {
 public:
  // Earlier access that is not ordered before the new one, and the bytes concerned.
  using Conflict =
      std::function<void(const Accessor& earlier, bool earlier_wrote, std::uint64_t begin, std::uint64_t end)>;

  void read(std::uint64_t begin, std::uint64_t end, const AccessorPtr& reader, const VectorClock& clock,
            const Conflict& conflict);
  void write(std::uint64_t begin, std::uint64_t end, const AccessorPtr& writer, const VectorClock& clock,
             const Conflict& conflict);
  void forget(std::uint64_t begin, std::uint64_t end, const VectorClock& clock, const Conflict& conflict);

  std::size_t segments() const { return segments_.size(); }

 private:
  struct Segment {
    std::uint64_t end = 0;
    AccessorPtr writer;                // may be null
    std::vector<AccessorPtr> readers;  // since the write; at most one per actor, none ordered before another
  };
  using Segments = std::map<std::uint64_t, Segment>;

  void split(std::uint64_t at);
  static void report_unordered(const Segment& segment, std::uint64_t begin, const VectorClock& clock,
                               const Conflict& conflict);
  static void add_reader(Segment& segment, const AccessorPtr& reader, const VectorClock& clock);
  Segments::iterator merge_with_previous(Segments::iterator segment);

  Segments segments_;  // by begin; disjoint
};

}  // namespace cudasim
