// Happens-before checker: vector clocks over streams and host threads, shadow over physical device bytes and pinned
// host bytes. Two accesses to the same byte, at least one a write, neither ordered before the other by declared edges,
// are a race; both operations are named in the report. FIFO order within a copy engine is no declared edge. Source of
// the idea: FastTrack (Flanagan and Freund 2009), with byte ranges in place of variables.
//
// Threads: called with the driver's lock held.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "access_log.h"
#include "units.h"

namespace cudasim {

class Memory;
struct Counters;

// An actor is one line of program order: a stream or a host thread.
enum class ActorId : std::uint32_t {};

class VectorClock;  // checker/vector_clock.h

class Checker {
 public:
  Checker(bool enabled, Memory& memory, Counters& counters);
  ~Checker();

  bool enabled() const;
  ActorId add_actor(std::string name);
  // A new actor under an old number. Only right when every earlier step of the number is ordered before whatever comes
  // on it.
  void rename_actor(ActorId actor, std::string name);

  // The accesses of one piece of work (or of one host access) of `actor` at `clock`; reports races with earlier ones.
  void check(ActorId actor, const VectorClock& clock, const std::string& operation, const AccessLog& log);

  // The same by bytes instead of addresses.
  void check_bytes(ActorId actor, const VectorClock& clock, const std::string& operation,
                   std::span<const ByteRange> reads, std::span<const ByteRange> writes);

  // Bytes given back (freed, unregistered): what was known of them is forgotten. A free that was not ordered after the
  // last access is a race too.
  void forget(ActorId actor, const VectorClock& clock, const std::string& operation, std::span<const ByteRange> ranges);

  // Bytes that queued operations give out and free (memory pools). An access that is not ordered behind the allocation
  // or not ordered before the free is a race like any other; one behind the free, or to bytes that nobody has
  // allocated, is reported as well, both operations named.
  void allocate(ActorId actor, const VectorClock& clock, const std::string& operation,
                std::span<const ByteRange> ranges);
  void free_in_order(ActorId actor, const VectorClock& clock, const std::string& operation,
                     std::span<const ByteRange> ranges);
  // Bytes that have come into a pool: nobody's up to the first allocate().
  void reserve(ActorId actor, const VectorClock& clock, const std::string& operation,
               std::span<const ByteRange> ranges);

  std::uint64_t races() const;
  const std::string& last_race() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cudasim
