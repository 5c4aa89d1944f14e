// The agent's end of the channel to the planner (shm/channel.h). One detached thread, memopt-link, with its own table
// of descriptors, finds or starts memoptd, makes the shared memory, and checks the plans that come.
//
// The program's threads never make a system call for the channel, but for a thread's first record (acquire_ring) and in
// synchronous mode (wait_processed). Nothing here throws or logs on standard output; whatever is missing, the program
// goes on, and link_status() says why there are no plans.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/plan/plan.h"
#include "agent/process/options.h"
#include "shm/channel.h"
#include "shm/ring.h"

namespace memopt::agent {

inline constexpr std::uint32_t kMaxLanes = shm::kMaxLanes;

struct LinkOptions {
  std::uint32_t wait_seconds = 0;      // that host threads will wait_processed() at most; 0: they will not
  bool record_only = false;            // recorded for a file: no plans are wanted, no planner is started
  std::size_t ring_bytes = 16u << 20;  // a power of two; halved when memory is short
  std::uint32_t chunk_bytes = 0;       // that plans may keep (shm::PlannedChunk); 0: none
  std::string planner;                 // path of memoptd; empty: the one beside this library
  std::string instance;                // of the planner, empty for the user's own
};
LinkOptions link_options(const Options& options);  // may throw std::bad_alloc

// Starts the thread; once per process (again after forget_link_after_fork()).
void start_link(const LinkOptions& options) noexcept;

// Tells the planner, and any later one, for what plans may swap, or that they may not (shm::kNoSwaps). Before the first
// time, none does. Plans that were made before may still come. At any time, before start_link() too.
void tell_swap_terms(const shm::SwapTermsBody& terms) noexcept;

// A ring for the calling thread, which alone writes it until release_ring(). Usually at once; waits at most 500 ms.
// False: no ring (too many threads, no memory, no link), see link_status(); asking again later may help.
bool acquire_ring(shm::RingWriter* ring) noexcept;

// At the end of a thread: lane and ring go to the next new thread.
void release_ring(const shm::RingWriter& ring) noexcept;

// The page shared with the planner; null until there is one. It never goes away again, except in a forked child.
shm::Control* link_control() noexcept;

// Are records being written? Said in that page, from its beginning on.
void tell_recording(bool on) noexcept;

// False once there will be no planner any more: recording is of no use then. One load.
bool link_alive() noexcept;

// For synchronous mode: waits until the planner has looked at every record up to `sequence`, and all that it sent
// before has arrived here (take_plan() finds it). False if there is no planner or it does not answer within `limit`;
// such a planner is not waited for again until it has caught up.
bool wait_processed(std::uint64_t sequence, std::chrono::milliseconds limit) noexcept;

// The newest verified plan, once; null if there is no new one (one relaxed load).
std::unique_ptr<const Plan> take_plan() noexcept;

// At the end of a program that is recorded for a file: waits until whoever records has what there is to be read, rings
// and all, which it may read when this process is gone. A program of a few milliseconds ends before its link is
// connected otherwise. Not a moment longer than there may be somebody: false at once if the program is not recorded for
// a file, if nobody listens or does any more, and in a forked child; false after `limit` if somebody does not answer.
bool hand_over_recording(std::chrono::milliseconds limit = std::chrono::seconds(5)) noexcept;

// Tell the planner what became of it. A plan that fails verification is refused by the link itself.
void plan_adopted(std::uint64_t generation) noexcept;
// `excess`: by so many bytes its slab was too large, 0 if it was refused for another reason.
void plan_refused(std::uint64_t generation, std::uint64_t excess = 0) noexcept;

// Bytes that PyTorch's caching allocator would have reserved by the last record, as the planner says; 0: not known.
std::uint64_t framework_reserved() noexcept;

struct LinkStatus {
  bool connected = false;
  bool given_up = false;            // there will be no planner any more
  pid_t planner = 0;                // its process, 0 if not connected
  std::string reason;               // why not connected, or what is missing although connected; empty: all is well
  std::string note;                 // the planner's latest: what it waits for, why there is no plan
  std::uint64_t dropped = 0;        // records that did not fit into a ring
  std::uint64_t lanes = 0;          // rings made so far
  std::uint64_t ring_bytes = 0;     // of each ring as it could be had
  std::uint64_t shared_bytes = 0;   // of all memory shared with the planner
  std::uint64_t refused_plans = 0;  // plans that failed verification
};
LinkStatus link_status();  // may throw std::bad_alloc

// In a forked child: the parent's thread, rings and connection are not here. Rings that threads held are gone, their
// memory not mapped.
void forget_link_after_fork() noexcept;

}  // namespace memopt::agent
