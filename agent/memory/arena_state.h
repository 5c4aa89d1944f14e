// The arena's parts and what state they are in; for arena*.cpp only. Guarded by ArenaLock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/blocks.h"
#include "agent/memory/bootstrap.h"
#include "agent/memory/chunk_store.h"
#include "agent/memory/copy_rates.h"
#include "agent/memory/follower.h"
#include "agent/memory/graph_names.h"
#include "agent/memory/host_store.h"
#include "agent/memory/memory_pools.h"
#include "agent/memory/page_runs.h"
#include "agent/memory/slab.h"
#include "agent/order/in_flight.h"
#include "agent/order/known_streams.h"
#include "agent/order/stream_table.h"
#include "agent/process/driver.h"
#include "shm/channel.h"
#include "shm/record.h"

namespace memopt::agent {

// A plan that is not used. The program is watched all the same: while it keeps to that iteration there is nothing to
// record, and when it leaves it there is again.
struct DeclinedPlan {
  std::unique_ptr<FollowedPlan> plan;  // null: there is none, or one is on its way (Arena::next), which is watched then
  std::uint64_t generation = 0;        // of the last one of that iteration
  std::uint64_t calm_iterations = 0;   // since the program left it
  std::uint64_t calm_needed = 0;       // of them, until nothing is recorded any more
  std::uint64_t needs = 0;             // device bytes, where the limit is why it is not used; 0: something else is
};

// What the planner is told once the lock is free.
struct StateReport {
  shm::StateChange change{};     // 0: nothing
  std::uint64_t generation = 0;  // of the plan that it is about
};

// Where a lane is in the plans. By the lane's number, so that a thread that takes over the lane of one that has ended
// goes on where that one was: programs start threads per iteration.
struct LaneState {
  std::uint64_t serial = 0;  // of the arena's plans that the positions are about
  LanePosition live;
  LanePosition next;  // in the plan that is on its way, or that was declined
};

// What keeping to a limit has cost so far.
struct SwapSums {
  std::uint64_t out_bytes = 0;
  std::uint64_t in_bytes = 0;
  std::uint64_t limit = 0;  // the last one; 0: there was none
  bool by_device = false;   // it was the device's memory, which was full
  std::uint64_t out_pages = 0;
  std::uint64_t in_pages = 0;
  std::uint64_t beyond = 0;  // by how many bytes the limit was passed at most
  std::string beyond_why;
  std::string note;       // why nothing leaves
  std::string told_note;  // the last that was logged
  bool told = false;      // that the limit was reached
  bool refused = false;   // the driver has not unmapped what had left: nothing leaves any more
};

// A page of the region that is here and has been copied to host memory, or is being copied.
struct CopiedPage {
  std::size_t page;
  StreamUse copy;
};

struct CopiedAhead {
  std::vector<CopiedPage> pages;  // in the order in which they are to leave
  std::size_t most = 4;           // beyond those that are needed at once
};

// A block, or pages, whose place was another's when it was to be taken again.
struct LateReturn {
  SwappedMalloc::Instance block;
  bool counted = false;
};

// What a plan's swaps have done so far.
struct PlannedSwaps {
  std::uint64_t out = 0;
  std::uint64_t in = 0;
  std::uint64_t out_bytes = 0;
  std::uint64_t in_bytes = 0;
  std::uint64_t left_out = 0;           // of blocks that had to stay
  std::uint64_t late_returns = 0;       // whose place was another block's, up to the next operation at least
  std::uint64_t unplanned_returns = 0;  // touched while away
  std::uint64_t too_early = 0;          // of those: into their places, which they leave again at once
  std::uint64_t beside = 0;             // of those: into chunks beside the slab
  // How long an iteration took by the plan, the last time that it was measured, and was expected to. 0: it was not yet.
  std::uint64_t takes_ns = 0;
  std::uint64_t expected_ns = 0;
  bool told = false;             // that one was left out
  std::vector<LateReturn> late;  // blocks that are to come back as soon as their places are free
  // Blocks that have come back to their places before their time, as they were touched: they leave again behind that
  // operation, or blocks that the plan has there meanwhile would be served elsewhere, and others for them.
  std::vector<SwappedMalloc::Instance> early;
};

// Looking for addresses that kernels store in device memory (arena_scan.cpp).
struct ScanState {
  // Until it is ready (AddressScan::is_ready).
  enum class Kernel : std::uint8_t { kNone, kBeingMade, kFailed };

  Kernel kernel = Kernel::kNone;
  bool looking = false;  // a thread looks at all that is on the device: nothing leaves meanwhile
  Release reading;       // that work; what is freed meanwhile is behind it
  bool missed = true;    // something on the device has not been looked at
  bool due = false;      // what has been found is to be read when an iteration begins
  std::string why;
};

// A plan has been left for good, and what its slab had serves the program: what that needs is known after some
// iterations, and what is held beyond goes back.
struct Settling {
  std::uint64_t until = 0;   // so many mallocs of the program; 0: nothing settles
  std::uint64_t in_use = 0;  // bytes of chunks in which blocks lie, at most, so far
  std::uint32_t looks = 0;   // at that: a program may allocate nothing any more
};

// The limit has changed, or a plan has been left for good: until what is held is below it, plans that need more have
// been left, and their slab has gone.
struct LimitChange {
  // Tries in a row after which the limit counts as passed.
  static constexpr std::uint32_t kPassed = 12;

  bool pending = false;     // more is held than the limit
  bool is_new = false;      // since it was changed
  bool dissolving = false;  // the slab, which no plan needs any more
  bool gone = false;  // there is none any more, and no plan has gone live since: what is held is less than is needed
  std::uint32_t vain = 0;  // tries in a row at which nothing could be given up
  std::uint32_t rest = 0;  // calls until the next one
  Settling settling{};
};

// Whether the program keeps to a plan with pages.
struct RunWatch {
  bool due = false;              // pages are to be made runs, or all of it given up for good
  std::uint32_t followed = 0;    // boundaries of the live plan
  std::uint32_t incomplete = 0;  // of these in a row, at which not all that the plan has were runs
  std::uint64_t returns = 0;     // that were not as planned, until the last boundary
  std::uint32_t off = 0;         // iterations in which many were, not counting those behind a switch
};

// Whether iterations by a plan that swaps take longer than on demand, by the device's clock: than they did when it was
// made (FollowedPlan::otherwise_ns), or than they do now, which is tried before it is left for good. Likewise where
// they take much longer than expected, and something comes back at other times than planned in most of them: what went
// wrong in one iteration may go on for ever, as it is in the way of the next; taken up again, the plan begins anew.
struct PaceWatch {
  std::uint64_t begun = 0;  // iterations since this began
  // At which the time that is being taken begins and ends; 0: it does not yet.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool left = false;          // the program has left the plan meanwhile
  std::uint64_t returns = 0;  // up to `first`, of what came back at other times than planned
  std::uint32_t slow = 0;     // times in a row that were longer
  // The plan that has been left to try it on demand, and how long an iteration took by it; 0: none has.
  std::uint64_t generation = 0;
  std::uint64_t planned_ns = 0;
  bool due = false;  // the plan is to be left
};

// By a plan so many chunks more may be held than without it, or than natively: the slab ends in one, and so do the
// blocks beside it.
inline constexpr std::uint64_t kSpareChunks = 2;

// Whether a plan without swaps is kept to, and is a gain: some iterations at a time, since it went live.
struct GainWatch {
  std::uint64_t begun = 0;  // iterations, by their plan or not
  // When the first of these began.
  std::uint64_t mallocs = 0;
  std::uint64_t beside = 0;
  std::uint64_t held = 0;   // at most, in them
  std::uint64_t above = 0;  // in so many of the last ones, in a row, more than by the framework's own allocator
  bool due = false;         // the plan is to be left
};

// What goes on when memory is served in another context, because the first one is gone.
struct ArenaSums {
  std::uint64_t serial = 0;    // changes with plan and next
  std::uint64_t releases = 0;  // how often everything was given back: no window is older
  std::uint64_t peak_bytes = 0;
  std::uint64_t footprint_peak = 0;  // of contexts that are gone
  std::uint64_t footprint_before = 0;
  std::uint64_t footprint_at_end = 0;  // when the last context that had a plan went
  std::uint64_t iterations = 0;
  std::uint64_t iteration_at_live = 0;
  std::uint64_t deviations = 0;
  std::uint64_t displaced = 0;
  std::uint64_t unplaced = 0;  // of these: for which the plan has no place
  bool restarted = false;      // there was such a context
  SwapSums swaps;
  PlannedSwaps planned_swaps;
  // For what plans swap (arena_terms.cpp).
  std::optional<CopyRates> copy_rates;  // once they were measured
  bool terms_told = false;              // the planner was told of a limit
};

// Before what other threads have announced is queued, or another one's turn is over: some tenths of a second, for they
// may be held up by the thread that waits. Then the limit is passed. Tests have others.
inline constexpr int kMostPauses = 4096;

struct Arena : ArenaSums {
  enum class Service : std::uint8_t {
    kNotStarted,
    kChunks,  // from chunks of ours
    kDriver,  // by the driver's cuMemAlloc, only noted: no virtual memory management, or only recording
    kNone,    // allocation is left to the driver
  };
  enum class Phase : std::uint8_t { kNoPlan, kBuilding, kArmed, kLive };

  explicit Arena(const Driver& functions)
      : driver(functions),
        streams(functions),
        known_streams(functions),
        chunks(functions),
        pools(functions),
        bootstrap(chunks, streams),
        slab(functions, streams, chunks, bootstrap),
        host(functions) {}

  const Driver& driver;
  StreamTable streams;
  KnownStreams known_streams;
  ChunkStore chunks;
  MemoryPools pools;
  Bootstrap bootstrap;
  Slab slab;
  std::vector<std::unique_ptr<PageRun>> runs;  // pages that a plan has in the slab
  std::uint64_t runs_made = 0;
  RunWatch run_watch;
  PaceWatch pace_watch;
  GainWatch gain_watch;
  HostStore host;
  CopiedAhead copied_ahead;
  AddressScan scan;
  ScanState scans;
  std::vector<std::uint64_t> escaped;  // blocks, by number, whose address is stored: the planner is to be told
  BlockIndex blocks;
  GraphNames graph_names;
  std::vector<Block*> freed_but_named;            // by the program; a graph that lives may still use their bytes
  std::map<std::uint64_t, Block*> driver_blocks;  // Service::kDriver: all blocks, by address

  Service service = Service::kNotStarted;
  std::string why;  // not kChunks
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUresult failure = CUDA_SUCCESS;  // that the context has not survived
  bool synchronous = false;
  bool record_only = false;

  Phase phase = Phase::kNoPlan;
  std::unique_ptr<FollowedPlan> plan;  // live
  std::unique_ptr<FollowedPlan> next;  // being built, or armed
  std::array<LaneState, shm::kMaxLanes> lanes;
  bool planned = false;                  // a plan has been live
  bool left_for_good = false;            // the last one, as it was not kept to
  bool known_beyond = false;             // the program has left its first plan, and come back to it, or to another one
  bool housekeeping = false;             // something is to be given back, a little at each boundary
  std::uint32_t wait_for_memory = 0;     // iterations until what the plan lacks is tried for again
  std::uint32_t relief_pause = 0;        // how many they were the last time
  std::uint32_t wait_for_chunks = 0;     // beginnings at which chunks of the slab that it does not keep may be in use
  std::uint32_t wait_for_known = 0;      // beginnings at which it waits for one where mostly blocks live that it knows
  std::uint32_t wait_for_lanes = 0;      // beginnings at which an armed plan waits for threads that are not in step yet
  std::uint32_t loans = 0;               // boundaries until blocks of before the switch are not waited for any longer
  std::uint32_t rest = 0;                // iterations until more is given back: the last time it could not be
  std::uint32_t last_rest = 0;           // how many they were
  std::uint64_t calm_iterations = 0;     // since the last deviation
  std::uint64_t calm_needed = 4;         // of them, until nothing is recorded any more
  std::uint64_t beside_before = 0;       // this iteration
  std::uint64_t deviations_at_live = 0;  // when the plan went live
  std::uint64_t plan_needs = 0;          // device bytes under the plan that is live, when all else has gone
  std::uint64_t next_needs = 0;          // and under the one that is being built
  std::uint64_t kept_iterations = 0;     // under the plan, in a row: without deviation, with every block in its place
  std::uint64_t held_of_late = 0;        // at most, from the boundary before the last to the last
  DeclinedPlan declined;
  LimitChange limit_change;
  std::string abandoned;  // why the last plan was not installed; empty when one is live that came later

  // Sums for status.
  std::uint64_t live_bytes = 0;
  std::uint64_t driver_bytes = 0;  // Service::kDriver: of live blocks
  std::uint64_t driver_peak = 0;   // of these and the slab
  std::uint64_t vmm_calls_at_live = 0;
  std::uint64_t host_waits_at_live = 0;
  std::uint64_t waits_at_live = 0;
  std::uint64_t mallocs = 0;
  std::uint64_t tickets = 0;  // operations so far
  std::uint64_t over = 0;     // all up to that one are over
  int most_pauses = kMostPauses;
  bool deviating = false;   // the main lane, now
  bool refill_due = false;  // chunks of the slab have served others: it has them again when an iteration begins
  StateReport to_report;
  std::size_t wanted_pieces = 0;  // of host memory, for the plan that is being built

  bool pages_stay = false;          // plans are not to have pages of blocks that stay: host memory is short
  bool terms_due = false;           // the planner does not know the limit yet
  bool asks_again = false;          // the program's framework has a pool of its own (arena_full.cpp)
  std::uint64_t refused_bytes = 0;  // to it, the last time
};

// Block::ready of a block that every stream may touch.
inline constexpr std::uint64_t kAllStreams = ~std::uint64_t{0};
inline constexpr StreamSlot kReadySlots = 63;  // have a bit of their own

// Blocks so far that lay beside a plan which has a place for them, or knows nothing of them.
inline std::uint64_t beside_plan(const Arena& arena) noexcept { return arena.displaced - arena.unplaced; }

inline bool is_ready(const Arena& arena, const Block& block, StreamSlot slot) noexcept {
  const std::uint64_t bit = block.ready >> (slot < kReadySlots ? slot : kReadySlots) & 1;
  return bit != 0 && (block.ready_at == arena.streams.reuses() || block.ready == kAllStreams);
}

// Iterations without deviation after which nothing is recorded any more.
inline constexpr std::uint64_t kCalm = 4;
// With planned swaps so many: by then nearly all operations have been measured, and better swaps may be planned.
inline constexpr std::uint64_t kCalmWithSwaps = 16;
// What then deviates, or lies beside its place each time, may be a part of something longer, which is seen only if it
// is recorded for longer: so many times, each time.
inline constexpr std::uint64_t kCalmGrowth = 4;
inline constexpr std::uint64_t kMostCalm = 4096;

// Of bytes, for people. May throw std::bad_alloc.
std::string in_units(std::uint64_t bytes);
inline double in_ms(std::uint64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) / 1e6; }

extern Arena* the_arena;
// Nothing will be served, or the context has failed: the driver answers, and no lock is taken.
extern bool arena_refused;
// Null before the first call. Acquire pairs with the release in make_arena: who sees the arena sees what it was made
// of.
inline Arena* arena() noexcept { return __atomic_load_n(&the_arena, __ATOMIC_ACQUIRE); }
// Makes it, if there is none; without the lock. Null: out of memory.
Arena* make_arena() noexcept;

// Called with the lock held. -------------------------------------------------------------------------------------

// What a call of the driver's in the arena's context returned (note_failure).
void arena_failed(Arena& arena, CUresult result) noexcept;
// Service::kDriver: pointers into [base, base + bytes] may be ours from now on.
void arena_widen_range(std::uint64_t base, std::uint64_t bytes) noexcept;
// The block lies where the driver put it, and is listed. False: out of host memory.
bool arena_note_driver_block(Arena& arena, Block& block) noexcept;
// Memory for the block outside the plan; `from_slab`: rather in free bytes of the slab than in new chunks. Gives the
// lock back where it waits.
CUresult arena_serve_dynamically(Arena& arena, ArenaLock& lock, Block& block, bool from_slab) noexcept;
// The limit is reached, or the device is full: copies blocks to the host that have not been used for longest, until so
// many chunks are free (Bootstrap::free_chunks). Returns how many more are; 0: nothing can leave. Gives the lock back,
// and waits for work on what is to leave.
// `only`: pages of the region that may leave; all, where there is none.
std::size_t arena_send_away(Arena& arena, ArenaLock& lock, std::size_t chunks,
                            const std::function<bool(std::size_t)>& only = {}) noexcept;
// What is in the way of room is announced by other threads and not queued yet: the calling one goes on shortly after,
// for as long as it may.
struct Pauses {
  int count = 0;
  bool gave_way = false;  // the last time it might not, as another thread's turn comes first
  StuckInFlight stuck;
};
// Likewise, but returns as soon as some are: the caller takes them before it gives the lock back, or another thread
// may.
std::size_t arena_send_some_away(Arena& arena, ArenaLock& lock, std::size_t chunks, Pauses* pauses) noexcept;
// For a block that is being made: other threads' operations that are in flight are waited for, as far as they get on.
std::size_t arena_send_away_for_block(Arena& arena, ArenaLock& lock, std::size_t chunks) noexcept;
// As often as that it may (Pauses). Gives the lock back.
bool arena_pause_for_others(const Arena& arena, ArenaLock& lock, Pauses* pauses) noexcept;
void arena_pause(ArenaLock& lock) noexcept;
// The calling thread waits for room, and may begin its operation again: before that, one whose turn comes first takes
// what it needs.
bool arena_gives_way() noexcept;
// The calling thread's operation, which is to begin again, is in flight no more: waits until its turn has come, or the
// one whose turn it is seems to be held up. Gives the lock back.
void arena_await_turn(ArenaLock& lock) noexcept;
// What has been copied to the host and has not left is copied again when it is to leave.
void arena_forget_copies(Arena& arena) noexcept;
// The block's pages that have been copied stay; waits for copies of them. Gives the lock back.
void arena_keep_copied(Arena& arena, ArenaLock& lock, const Block& block) noexcept;
// So many chunks are free, or could be made: blocks leave for it, and what is idle is waited for. False: there are not
// as many. Gives the lock back.
bool arena_free_chunks(Arena& arena, ArenaLock& lock, std::size_t count) noexcept;
// What the operation touches comes back: it is behind the copies then (Operation::needs). Where that can't be, its
// thread is told (take_refusal).
void arena_bring_back(Arena& arena, ArenaLock& lock, Operation& operation) noexcept;
// Likewise for a block that nothing is queued for; the host waits. False: it is away still, or gone.
bool arena_bring_back(Arena& arena, ArenaLock& lock, Block& block) noexcept;
// Waits until none of the block's bytes is being copied. Null: the block that lay there is gone meanwhile.
Block* arena_settled(Arena& arena, ArenaLock& lock, Block* block) noexcept;
// What the plan holds for nothing now, so many chunks of it where that will do, is given up, and made anew later;
// false: nothing. Gives the lock back, and may wait.
bool arena_take_from_slab(Arena& arena, ArenaLock& lock, std::size_t count) noexcept;
// The program wants it so: what is idle goes back to the driver, as far as work on it is over, and what has been mapped
// for a plan that is not live yet is mapped when it goes live, if it does.
void arena_trim(Arena& arena) noexcept;
// Where the program has left a plan that does not swap, as that of a loop within its iteration: up to so many chunks of
// the slab that are idle serve before any block leaves. False: none.
bool arena_take_left(Arena& arena, std::size_t count) noexcept;
// The bytes of the slab have all their chunks afterwards: of what is free, of what is held for nothing elsewhere, in
// the slab or beside it, and of what leaves for it. `swaps`: it is for a block that can leave again, and nothing leaves
// where another has some of these bytes. Gives the lock back, and may wait.
bool arena_make_place(Arena& arena, ArenaLock& lock, std::uint64_t begin, std::uint64_t bytes, bool swaps) noexcept;
// A place of the malloc's that lacks chunks of the slab has them afterwards, and the plan is the same: it may be free
// now. Gives the lock back, and may wait.
bool arena_refill_places(Arena& arena, ArenaLock& lock, const FollowedMalloc& malloc) noexcept;
// So many chunks for a block that comes back beside its place; they are the caller's. Gives the lock back, and may
// wait.
CUresult arena_take_chunks(Arena& arena, ArenaLock& lock, std::size_t count, std::vector<Chunk*>* taken) noexcept;

// What plans may swap for, said to the planner: before the link to it is started, where there is a limit by then, and
// when it has changed (Arena::terms_due); what the program does is then recorded, where the planner may have a better
// plan for it. Copies are measured the first time: gives the lock back, and waits.
void arena_tell_first_terms(Arena& arena, ArenaLock& lock) noexcept;
void arena_tell_terms(Arena& arena, ArenaLock& lock) noexcept;
// What is idle and over goes back to the driver (Relief; kBlocks as kAll); returns by how many bytes less is held.
// Something of what the rest waits for goes to `awaited`. Gives the lock back where memory is the driver's.
std::uint64_t arena_give_back(Arena& arena, ArenaLock& lock, Relief relief, Release* awaited) noexcept;
// Blocks leave for host memory, so that the driver has so many bytes (0: not known) more for another call. False: none.
// Called without the lock.
bool arena_relieve_by_swapping(std::size_t wanted) noexcept;
// Before something leaves the device for the first time, or where a launch was not looked at: looks for addresses in
// all that is there. True: the lock was given back. Waits for all work.
bool arena_scan_before_leaving(Arena& arena, ArenaLock& lock) noexcept;
// What launches that are over have stored: blocks whose address is among it stay from now on. True: there are such, and
// the lock was given back.
bool arena_read_scans(Arena& arena, ArenaLock& lock) noexcept;
// Are there any that have not been read?
bool arena_has_scans() noexcept;
// The block, which is on the device, stays there.
void arena_keep_here(Arena& arena, Block& block) noexcept;
// From now on any stream may use the block without our knowing: its former users are waited for.
void arena_open_to_all(Arena& arena, ArenaLock& lock, Block& block) noexcept;
// The planner is to be told that the block stays, when the next malloc is recorded.
void arena_tell_escape(Arena& arena, std::uint64_t number) noexcept;
// The context goes, and the kernel with it.
void arena_end_scans(Arena& arena) noexcept;
void forget_scans_after_fork() noexcept;
// A plan is followed: launches that are neither recorded nor suspect are looked at no more.
void arena_scan_less(Arena& arena) noexcept;
// Host memory can be had for what leaves the device.
void arena_start_swapping(Arena& arena) noexcept;

// Planned swaps (planned_swaps.cpp). --------------------------------------------------------------------------------
// The block has been given its place of the slab: it lies there by addresses of its own, where there are some.
void arena_enter_window(Arena& arena, Block& block, SwappedMalloc& swapped, const FollowedPlace& place) noexcept;
// It is freed, or was not to be had; what used it last.
void arena_leave_window(Arena& arena, Block& block, const Release& uses) noexcept;
// Host memory for the blocks of the plan's mallocs that it swaps, in pieces.
std::size_t arena_window_pieces(const Arena& arena, const FollowedPlan& plan) noexcept;
// A plan has gone live.
void arena_begin_swaps(Arena& arena) noexcept;
// The lane's thread makes a malloc of a plan that swaps / has left the plan.
void arena_begin_points(Arena& arena, LaneState& lane, FollowedMalloc& malloc) noexcept;
void arena_stop_points() noexcept;
// Behind so many mallocs off the plan the thread is where it was, as a rule: its operations still count.
inline constexpr std::uint32_t kPointsCounted = 2;
// The lane's thread, which had left the plan (LanePosition::left), is back behind so many of its mallocs: blocks are
// where the plan has them then, as far as they can. Gives the lock back.
void arena_catch_up(Arena& arena, ArenaLock& lock, LaneState& lane, std::uint64_t skipped) noexcept;
// What is due behind the malloc itself. Gives the lock back.
void arena_look_at_points(Arena& arena, ArenaLock& lock) noexcept;
// The calling thread makes a malloc: where it is the plan's next, all that was due before it. Gives the lock back.
void arena_finish_points(Arena& arena, ArenaLock& lock, std::uint64_t bytes, std::uint64_t return_address) noexcept;
// As arena_bring_back(), for one that has a window of its own, is away, and of which no copy is being queued. What
// touches it is behind `copies` then.
CUresult arena_bring_back_window(Arena& arena, ArenaLock& lock, Block& block, Release* copies) noexcept;

// Likewise for pages that are a run and away; where their place is another's, they are ordinary pages afterwards, and
// away still.
CUresult arena_bring_back_run(Arena& arena, ArenaLock& lock, PageRun& run, Release* copies) noexcept;
// Of what the plan swaps, blocks and pages, that which was used least lately leaves, and the slab gives up its chunks
// until there is memory for them again. Returns how many are free for it; 0: none can leave. Gives the lock back, and
// waits.
std::size_t arena_give_up_planned(Arena& arena, ArenaLock& lock) noexcept;
// The block that it was, if it lives; or the one that stands for pages.
Block* arena_find_swapped(Arena& arena, const SwappedMalloc::Instance& instance) noexcept;
// Such a block leaves, unless it has to stay. Gives the lock back; it may be gone afterwards.
void arena_send_out(Arena& arena, ArenaLock& lock, Block& block, bool from_beside = false) noexcept;
// It may not leave now, or for as long as it lives.
bool arena_must_stay(Arena& arena, const Block& block) noexcept;
// It comes back to its place. False: that is another's, for now. Likewise.
bool arena_try_bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept;
// The same now, or as soon as its place is free (planned_points.cpp).
void arena_bring_in(Arena& arena, ArenaLock& lock, Block& block) noexcept;

// Pages that plans have in the slab (planned_pages.cpp). -----------------------------------------------------------
// Those that are as the plan has them; null: they are not.
PageRun* arena_run_of(Arena& arena, const FollowedPages& pages) noexcept;
// Of those that the plan has, and that are no runs yet: for how many host memory is needed, so that they can leave.
std::size_t arena_pages_to_leave(Arena& arena, const FollowedPlan& plan) noexcept;
// Runs that the plan does not have, or has elsewhere, are ordinary pages afterwards, and away. Null: all of them. Gives
// the lock back, and waits for copies.
void arena_leave_runs(Arena& arena, ArenaLock& lock, const FollowedPlan* plan) noexcept;
// All that lies beside the slab and can leave does. Gives the lock back, and waits.
void arena_send_everything(Arena& arena, ArenaLock& lock) noexcept;
// What is to be runs leaves, as far as it can. Gives the lock back, and waits.
void arena_send_pages(Arena& arena, ArenaLock& lock, const FollowedPlan& plan) noexcept;
// The plan has gone live: its pages that are away become runs, and come back. Gives the lock back.
void arena_begin_runs(Arena& arena, ArenaLock& lock) noexcept;
// The run, which is away and of which no copy is being queued, is ordinary pages afterwards. The driver's code; then it
// is as it was. Gives the lock back, and waits for its last copy.
CUresult arena_end_run(Arena& arena, ArenaLock& lock, PageRun& run) noexcept;
// At a boundary of a plan with pages: are some of them no runs, and is it time to try again, or does the program not
// keep to such plans (RunWatch::due)?
void arena_watch_runs(Arena& arena) noexcept;
// At a boundary of a plan that is to be faster than on demand: is it (PaceWatch)?
void arena_watch_pace(Arena& arena) noexcept;
// An iteration begins, and the plan is slower than on demand: it is left, for a trial at first. Before a malloc is
// followed. False: it is not.
bool arena_leave_slow_plan(Arena& arena) noexcept;
// An iteration begins by a plan without swaps, or the program leaves it: is it kept to, and a gain?
void arena_watch_gain(Arena& arena) noexcept;
// Likewise: a plan that is not kept to, and for which more is held than before, is left for good. May wait, and give
// the lock back meanwhile.
bool arena_leave_vain_plan(Arena& arena, ArenaLock& lock) noexcept;
// The plan has been left for a trial: an iteration begins, on demand. It is taken up again where that is no faster, or
// the planner is told that it is not used.
void arena_try_on_demand(Arena& arena) noexcept;
// Without an answer, as the program has left the iteration.
void arena_end_trial(Arena& arena) noexcept;
// An iteration begins, and the slab lacks something: pages leave that are no runs, as far as they can, and what they
// had, or what other blocks have that are not planned, is the slab's again. Or the plan is left, and the planner told
// to leave blocks that stay where they are. Before a malloc is followed. Gives the lock back, and waits.
void arena_complete_slab(Arena& arena, ArenaLock& lock) noexcept;

// A capture names the block, which stays for as long as a graph may use it (arena_graphs.cpp).
void arena_keep_for_graph(Arena& arena, Block& block) noexcept;
// The bytes of one that was freed, and that no graph names any more, are free behind its uses. May give the lock back.
void arena_give_back_named(Arena& arena, ArenaLock& lock, Block* block) noexcept;

// What the program does is recorded, if it is not; it does not continue what was recorded before.
void arena_record_anew(Arena& arena) noexcept;
// Reads the options. Called when memory begins to be served.
void arena_limit(Arena& arena) noexcept;
// The limit has changed (LimitChange::pending): plans that need more are left, one that needed more is taken up again,
// and a part of what is held beyond the limit is given up: what is idle, and blocks that leave for host memory. For
// threads of the program, before they allocate or queue. Gives the lock back, and may wait.
void arena_follow_limit(Arena& arena, ArenaLock& lock) noexcept;
// The plan is left, and its slab given up bit by bit.
void arena_leave_plan(Arena& arena) noexcept;
// Its part about plans.
void arena_fit_plans(Arena& arena) noexcept;
// More may be held than the limit: by how much, and why, is kept for status.
void arena_note_beyond(Arena& arena) noexcept;
// Beyond the limit nothing stays that is idle.
void arena_keep_limit(Arena& arena) noexcept;
// The plan that is being built, or armed, is not used, and the planner told. `needs`: device bytes, where the limit is
// why.
void arena_abandon(Arena& arena, std::string why, std::uint64_t needs = 0) noexcept;
// Takes up a plan that has come, and goes on with what is being built.
void arena_look_for_plan(Arena& arena) noexcept;
// A plan has come: begin to build what it needs.
void arena_adopt(Arena& arena, const Plan& plan) noexcept;
// A little more of what is being built; armed when it is there.
void arena_build(Arena& arena) noexcept;
// Makes some of the host memory that it lacks (Arena::wanted_pieces). Gives the lock back.
void arena_make_pieces(Arena& arena, ArenaLock& lock) noexcept;
// A lane of the plan that is armed begins its part of an iteration: from here on the plan is followed, if all of its
// lanes can, or given up if it can't be. Gives the lock back where blocks have to leave for it first.
void arena_go_live(Arena& arena, ArenaLock& lock, const FollowedLane& lane) noexcept;
// At the beginning of each iteration: a little of what is to be tidied up.
void arena_at_boundary(Arena& arena, const FollowedLane& lane) noexcept;
// Memory was short: at the beginning of an iteration, makes again what of the slab was given up.
void arena_look_for_memory(Arena& arena) noexcept;
// There is no memory for the plan that is armed: it is tried for again some iterations later. False: it can't be.
bool arena_postpone(Arena& arena) noexcept;
// Device bytes held for the program, as far as it is served here; and the most that ever were.
std::uint64_t arena_footprint(const Arena& arena) noexcept;
std::uint64_t arena_footprint_peak(const Arena& arena) noexcept;
// Which addresses may be ours (arena_may_own), and whether hooks ask at all (arena_is_on).
void arena_set_range(std::uint64_t begin, std::uint64_t bytes) noexcept;
void arena_switch_on(bool on) noexcept;
// Everything back to the driver; work on it is over.
void arena_release_all(Arena& arena) noexcept;
void arena_deviated(Arena& arena, const LanePosition& at) noexcept;
// What a malloc that is not the plan's next one means for the lane, by what the follower has said of it. `begins`: an
// iteration has begun. False: the plan is another one by now. Gives the lock back where swaps are made up for.
bool arena_off_plan(Arena& arena, ArenaLock& lock, LaneState& lane, Step step, bool* begins) noexcept;
// A malloc of a lane that is in the plan that was declined: it is the first of an iteration, or has left it.
void arena_keeps_to_declined(Arena& arena) noexcept;
void arena_left_declined(Arena& arena) noexcept;

}  // namespace memopt::agent
