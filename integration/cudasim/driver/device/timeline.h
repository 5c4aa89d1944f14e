// When things happen: the timing model, and nothing of bytes.
//
// An operation is ready at the later of its issue and the ends of its predecessors. Each resource serves one operation
// at a time, in order of (ready, sequence); without a resource an operation starts when it is ready. Calls that come
// later may queue operations that are ready earlier, so starts are fixed only up to the time that somebody asks for. A
// start that was fixed stays.
#pragma once
#include <array>
#include <functional>
#include <set>

#include "device/operation.h"
#include "units.h"

namespace cudasim {

class Timeline {
 public:
  // `on_timed`: start and end of an operation have become known.
  Timeline(Counters& counters, std::function<void(Operation&)> on_timed);

  // `operation` waits for `predecessor`. Before add().
  static void link(Operation& predecessor, Operation& operation);
  // Its `ready` holds the issue time. The operation must outlive its timing.
  void add(Operation& operation);

  void advance(TimePoint until);            // fixes all starts up to and including `until`
  void settle(const Operation& operation);  // …and as far as is needed to know the end of this one
  TimePoint now() const { return now_; }

 private:
  struct Earlier {
    bool operator()(const Operation* a, const Operation* b) const {
      return a->ready != b->ready ? a->ready < b->ready : a->sequence < b->sequence;
    }
  };
  struct Server {
    std::set<Operation*, Earlier> waiting;
    TimePoint free_at{};
    Duration* busy = nullptr;  // in Counters
  };

  Server* server_of(const Operation& operation);
  bool start_next(TimePoint until);  // false: nothing starts by then
  void set_times(Operation& operation, TimePoint start);

  std::array<Server, 4> servers_;
  std::function<void(Operation&)> on_timed_;
  TimePoint now_{};
};

}  // namespace cudasim
