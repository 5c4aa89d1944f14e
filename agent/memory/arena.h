// The device memory that memopt serves: blocks for the program's cuMemAlloc, from physical chunks that the agent holds.
//
// Before there is a plan, a block of at least one chunk has its own window and chunks; smaller ones share (bootstrap).
// Under a plan, the mallocs of an iteration get places in the slab (follower.h). All windows lie in one range of
// addresses; live blocks never share an address. Who owns which physical bytes, and who used them last, is kept in
// ownership maps that are asked at every taking (ownership.h).
//
// One lock guards it all (order/arena_lock.h).
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/order/arena_lock.h"
#include "agent/order/streams.h"
#include "agent/order/use_set.h"
#include "agent/scan/address_scan.h"
#include "shm/status.h"

namespace memopt::agent {

// A live block of ours.
struct Block;

// Numbers of blocks (shm/record.h).
std::uint64_t block_number(const Block& block) noexcept;

// Could the address, or word, belong to a block of ours? One comparison; no lock. False for all while the arena is off.
// It changes while other threads read it: with the new begin they see the new length, and an old begin with a new
// length is too much rather than too little.
extern std::uint64_t arena_range_begin, arena_range_bytes;
inline bool arena_may_own(std::uint64_t address) noexcept {
  const std::uint64_t begin = __atomic_load_n(&arena_range_begin, __ATOMIC_ACQUIRE);
  return address - begin < __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED);
}

// Is there memory to serve or to follow? Before the first allocation, with MEMOPT_PLAN=0 and after the context has gone
// there is not.
extern bool arena_on;
inline bool arena_is_on() noexcept { return __atomic_load_n(&arena_on, __ATOMIC_ACQUIRE); }

// Is there a limit on what is held of the device?
extern bool arena_limited;
inline bool arena_has_limit() noexcept { return __atomic_load_n(&arena_limited, __ATOMIC_RELAXED); }

// With ArenaLock held. ---------------------------------------------------------------------------------------------

// An operation that is about to be queued: everything that it uses has the position `use`; what it must be behind is
// gathered in `needs`.
struct Operation {
  static constexpr std::uint32_t kMostAway = 128;

  StreamUse use;
  UseSet needs;
  std::uint64_t barrier = 0;  // that it is behind when it has been ordered
  std::uint64_t ticket = 0;   // counts all operations
  // Nothing can leave for it, as what others have queued since it was announced counts as in flight until it is queued,
  // or as an older operation has room first: it is to be announced again. How often it was, where that can be done;
  // else 0.
  int times_begun = 0;
  bool begins_again = false;
  // Blocks that it touches and that are not on the device; more than there is room for are looked for by the ticket.
  std::uint32_t away = 0;
  std::uint64_t away_bases[kMostAway];
};

// Begins an operation on a stream: behind the plain frees so far.
void begin_operation(StreamName stream, Operation* operation) noexcept;
// Orders an operation (order_operation). `time`: it has touched all of its blocks since it began, with the lock held,
// for the so many-th time; 0: it has not. True: it has to begin again, and to touch them again; it is not announced any
// more.
bool order_or_begin_again(ArenaLock& lock, Operation& operation, int time) noexcept;

// The live blocks that an address means: the one it lies in, and the one that ends there. Returns how many (0 to 2).
std::size_t find_blocks(std::uint64_t address, Block* found[2]) noexcept;

// The operation touches the block: it must be behind the former owners of the block's bytes, and the block is known to
// be used by the operation's stream.
void use_block(Block& block, Operation& operation) noexcept;

// A capture does so: the block's bytes are its own for as long as a graph may name them, even after it is freed.
void keep_for_graph(Block& block) noexcept;

// As use_block, for every live block: the operation cannot be read (a launch or a graph whose parameters are unknown).
void use_everything(Operation& operation) noexcept;
// A graph may use what the program has freed while it named it.
void use_freed_but_named(const Operation& operation) noexcept;

// Brings back what the operation touches and is away, and puts it behind what it needs: by waits on its stream, before
// it is queued. The lock is given back meanwhile.
void order_operation(ArenaLock& lock, Operation& operation) noexcept;
// What the operation that the calling thread has just ordered is to return without being queued: there is no memory for
// blocks that it touches. CUDA_SUCCESS: it is to be queued. Asked once.
CUresult take_refusal() noexcept;

// Work is queued whose effect the host can see without a copy of its own or a wait (a copy to the host, a host
// function, a kernel that was given page-locked memory): a plain free will wait for it. `held_up`: it may itself wait
// for a thread of the program.
void host_visible(const Operation& operation, bool held_up) noexcept;

// An address inside a block is stored where launches do not show it (payload of a copy to the device, module global).
// The block counts as used by every stream, and its former users are waited for; the lock is given back meanwhile.
void escaped(ArenaLock& lock, Block& block) noexcept;

// The launch behind which this operation stands names the block, which is looked at for addresses behind it, if it is
// due (is_scanned; scan/address_scan.h).
void scan_block(const Block& block, const Operation& operation, StreamName stream, std::uint32_t function) noexcept;

// Without the lock. ------------------------------------------------------------------------------------------------

// Behind which launches device memory is looked at for addresses that they have stored: none, as nothing leaves; those
// of functions behind which there was one, and what is recorded; all.
enum class ScanMode : std::uint8_t { kOff, kSuspects, kAll };
extern ScanMode scan_mode;
inline bool is_scanned(bool recorded, std::uint32_t function) noexcept {
  const ScanMode mode = __atomic_load_n(&scan_mode, __ATOMIC_RELAXED);
  if (mode == ScanMode::kOff) [[likely]]
    return false;
  return recorded || mode == ScanMode::kAll || is_suspect(function);
}
// A launch can't be looked at: all that is there is, before something leaves.
void scan_missed() noexcept;
// The calling thread has made a launch, or has not: what is due behind it.
extern constinit thread_local bool scans_due __attribute__((tls_model("initial-exec")));
void queue_due_scans() noexcept;
void forget_due_scans() noexcept;

// The whole way of an operation whose blocks the caller need not know: begin_operation, unless it has begun;
// find_blocks and use_block for each of the addresses; order_operation. Returns whether there was a block.
bool use_addresses(StreamName stream, bool begun, std::span<const std::uint64_t> addresses,
                   Operation* operation) noexcept;

// cuMemAlloc and cuMemFree as the program sees them. `handled` false: the call goes to the driver.
struct Served {
  bool handled = false;
  CUresult result = CUDA_SUCCESS;
};
Served arena_allocate(CUdeviceptr* address, std::size_t bytes, void* return_address) noexcept;
Served arena_free(CUdeviceptr address) noexcept;
// The driver frees nothing for a thread without a current context, or whose context is gone, whatever the address: its
// code then. To be asked before arena_free() where arena_may_own() says that the address may be ours.
CUresult arena_free_refusal() noexcept;

// cuMemAllocAsync and cuMemFreeAsync, likewise; `pool` null: the device's current one. The allocation has its place in
// the order of `stream`, before everything that the program orders behind it: the wait for former users of the bytes
// goes there, and no other stream is made to wait. The free has its place in the order of its own stream, behind all
// uses: it waits for nothing, and whoever gets the bytes next waits for that place alone.
Served arena_allocate_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, StreamName stream,
                            void* return_address) noexcept;
Served arena_free_async(CUdeviceptr address, StreamName stream) noexcept;
// Memory that is served by the driver but followed by us (there is no virtual memory management, or everything is only
// recorded): the driver has made this block. False: it is not followed.
bool arena_note_async(CUdeviceptr address, std::size_t bytes, StreamName stream, void* return_address) noexcept;

// The program's pools (memory_pools.h).
void note_pool_created(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept;
void note_pool_destroyed(CUmemoryPool pool) noexcept;
void note_pool_access(CUmemoryPool pool, CUdevice device) noexcept;  // another device's: it is no longer served
void note_current_pool_changed() noexcept;
// Our part in what a pool answers about its use; a high watermark that the program sets back; memory beyond `keep`
// bytes that it wants back.
void arena_pool_use(CUmemoryPool pool, CUmemPool_attribute attribute, std::uint64_t* value) noexcept;
void arena_pool_reset(CUmemoryPool pool, CUmemPool_attribute attribute) noexcept;
void arena_pool_trim(CUmemoryPool pool, std::size_t keep) noexcept;

// A call of the driver's found the device full: what is held for no block goes back to the driver, work on it being
// waited for. `wanted`: bytes that the call is about, 0 if that is not known; if so many can't come together, nothing
// idle goes. False: nothing went back.
enum class Relief : std::uint8_t {
  kCached,  // what freed blocks left
  kAll,     // and what of the plan's memory no block lies in: the plan is then followed as far as that goes
  kBlocks,  // and blocks that live, which leave for host memory; here the limit is what is left then
};
bool arena_relieve(Relief relief, std::size_t wanted) noexcept;

// The device is full, and an allocation of so many bytes that arena_allocate() would serve is about to be refused: true
// where blocks may leave for host memory instead from now on. It is to be asked for again then.
bool arena_begin_swapping(std::size_t bytes) noexcept;

// What a query about an address of ours is answered. False: not ours, ask the driver.
struct BlockExtent {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
  bool driver_made = false;     // the driver knows the block too, and what it is
  CUmemoryPool pool = nullptr;  // stream-ordered: of which pool
  CUcontext context = nullptr;  // plain: in which it was allocated
  bool sync_memops = false;     // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, as the program set it
  std::uint64_t chunk = 0;      // the driver knows its memory in pieces of so many bytes
};
bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept;
// The program has set that attribute of the block in which the address lies.
void arena_note_sync_memops(std::uint64_t address, bool on) noexcept;
// The address lies in memory of ours and in no block: to the program it is no address of the device. Asked before the
// driver is: a block that is away comes back.
bool arena_is_unused(std::uint64_t address) noexcept;
// The address lies in a range of addresses that memopt has reserved, and maps: with a block or without.
bool arena_maps(std::uint64_t address) noexcept;

// Bytes that the driver counts as used but that any allocation on the current device can have: added to cuMemGetInfo's
// free.
std::uint64_t arena_reserve_bytes() noexcept;

// The context is gone, and with it goes what we hold for it.
void note_context_destroyed(CUcontext context) noexcept;

// What a call of the driver's returned. After an error that the context does not survive (an illegal address, say), it
// is the driver that answers allocations and frees, as natively.
void note_failure(CUresult result) noexcept;
inline CUresult noted(CUresult result) noexcept {
  if (result != CUDA_SUCCESS) [[unlikely]]
    note_failure(result);
  return result;
}

// A limit (shm::is_new_limit) in the place of the one that holds; no call of the driver is made. What is held comes
// below it at the program's next allocations, frees and operations. May throw std::bad_alloc.
struct NewLimit {
  std::string error;        // why it was not accepted; empty: it was
  std::uint64_t limit = 0;  // device bytes, 0: there is none
  std::uint64_t held = 0;
};
NewLimit arena_set_limit(std::string_view text);

// For status; may throw std::bad_alloc. `plan` is filled only where memory is served or recorded.
void read_arena(shm::Status* status);
// The line at the end of the process, if a plan went live.
void say_goodbye() noexcept;

void forget_arena_after_fork() noexcept;

}  // namespace memopt::agent
