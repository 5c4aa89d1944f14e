// Streams, and the order between them: an event and a wait wherever work needs what another stream did, unless that is
// ordered already. A vector clock for each stream knows.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

namespace replay {

// A piece of work: the number of it in its stream.
struct Work {
  unsigned stream = 0;
  std::uint64_t number = 0;  // 0: none
};

// Of one thread; not thread-safe.
class Streams {
 public:
  // `legacy`: the one stream is the legacy default stream, as programs without streams have it.
  Streams(unsigned count, bool legacy);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  unsigned count() const { return static_cast<unsigned>(lanes_.size()); }
  CUstream handle(unsigned stream) const { return lanes_[stream].handle; }

  // What is issued next on `stream` runs after `work`.
  void order_after(unsigned stream, Work work);
  // The work that is issued on `stream` now.
  Work issue(unsigned stream) { return {stream, ++lanes_[stream].issued}; }
  Work last(unsigned stream) const { return {stream, lanes_[stream].issued}; }
  // The host waits for all work, in one call.
  void synchronize();

 private:
  struct Lane {
    CUstream handle = nullptr;
    CUevent event = nullptr;
    std::uint64_t issued = 0;
    std::vector<std::uint64_t> seen;  // of each stream, the last work that comes before what is issued here next
  };

  std::vector<Lane> lanes_;
};

}  // namespace replay
