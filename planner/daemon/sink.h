// Where the operations of one program go: to the planner in memoptd, into a file in `memoptctl record`, into a test.
//
// A sink is used by one thread at a time, the one of its program's connection; sinks of different programs run at the
// same time. What a sink throws ends its connection, not the server.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shm/channel.h"
#include "shm/record.h"

namespace memopt::planner {

// Who is at the other end. Strings come from the program: printable is what a reader makes of them.
struct ProgramInfo {
  pid_t pid = 0;         // as the kernel says
  pid_t pid_inside = 0;  // as the agent sees itself (pid namespaces)
  bool synchronous = false;
  std::uint32_t wait_seconds = shm::kUsualWait;  // that it waits at most, if it is
  bool record_only = false;
  std::uint64_t chunk_bytes = 0;  // that it keeps for plans; 0: none
  bool caching_is_off = false;    // a framework's allocator: what it would have reserved is wanted
  std::string version;            // of its agent
  std::string path;               // of its executable
};

// Ticks of the program's clock and nanoseconds (CLOCK_MONOTONIC) of the same instant.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t nanoseconds = 0;
  friend bool operator==(const ClockPair&, const ClockPair&) = default;
};

class Sink {
 public:
  virtual ~Sink() = default;

  // The program's agent carries swaps out, on these terms, which are valid; or does so no more (shm::kNoSwaps). Between
  // records; the last ones hold.
  virtual void swap_on(const shm::SwapTermsBody& /*terms*/) {}

  // The next record, in the order of all threads (header.sequence grows by one unless gap() was called between). The
  // view is valid during the call; header and body lie one behind the other.
  virtual void record(std::uint32_t lane, const shm::RecordView& record) = 0;

  // The same for several at once: `run` holds records of one lane, numbered without a hole.
  virtual void records(std::uint32_t lane, const shm::RecordRun& run) {
    for (const shm::RecordView& each : run) record(lane, each);
  }

  // Records are missing here: dropped by a full ring, or written before this server was there.
  virtual void gap() = 0;

  // At the points of shm::next_check_point: a plan to be sent, if there is a new one. Points are passed over while an
  // asynchronous program's rings run full.
  virtual std::optional<std::vector<std::byte>> check_point() { return std::nullopt; }

  // A better plan than the last, which came without a record: asked several times a second, unless the program waits
  // for every answer.
  virtual std::optional<std::vector<std::byte>> improved() { return std::nullopt; }

  // A sentence for the program's status; sent when it changes. Asked after each check point.
  virtual std::string note() { return {}; }

  // The number under which the last plan was sent; each is larger than the one before.
  virtual void sent(std::uint64_t /*generation*/) {}

  // Bytes that the framework's own allocator would have reserved by now, 0: not known. Asked now and then.
  virtual std::uint64_t framework_reserved() { return 0; }

  // What the agent did with a plan.
  virtual void adopted(std::uint64_t /*generation*/) {}
  // By `excess` bytes the places of that plan came to too much; 0: it was refused for another reason.
  virtual void refused(std::uint64_t /*generation*/, std::uint64_t /*excess*/) {}

  // The program's clock, at the beginning (if already known) and whenever the agent refreshed it.
  virtual void clock(const ClockPair& /*clock*/) {}

  // Nothing has come for a while: a good moment to write out what is buffered.
  virtual void idle() {}

  // The program is gone and everything it wrote has been delivered. No call follows.
  virtual void closed() {}

  // Instead of closed(): what the program wrote makes no sense from here on, and is not read.
  virtual void broken(const std::string& /*why*/) { closed(); }
};

// Makes the sink of a new program. Null: the program is refused, with `*why` sent to it. Calls do not overlap.
using SinkFactory = std::function<std::unique_ptr<Sink>(const ProgramInfo& program, std::string* why)>;

}  // namespace memopt::planner
