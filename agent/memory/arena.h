// The device memory that memopt serves: blocks for the program's cuMemAlloc, from physical chunks that the agent holds.
//
// Before there is a plan, a block of at least one chunk has its own window and chunks; smaller ones share (bootstrap).
// Under a plan, the mallocs of an iteration get places in the slab (follower.h). All windows lie in one range of
// addresses; live blocks never share an address. Who owns which physical bytes, and who used them last, is kept in
// ownership maps that are asked at every taking (ownership.h).
//
// One lock guards it all; it is held for a few instructions on the planned path and across driver calls on the cold
// ones.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/order/streams.h"
#include "agent/process/spin_lock.h"
#include "shm/status.h"

namespace memopt::agent {

// A live block of ours.
struct Block;

// Numbers of blocks (shm/record.h).
std::uint64_t block_number(const Block& block) noexcept;

extern int arena_lock_word;  // for ArenaLock only
class ArenaLock : public QuickGuard {
 public:
  ArenaLock() noexcept : QuickGuard(arena_lock_word) {}
};

// Could the address, or word, belong to a block of ours? One comparison; no lock. False for all while the arena is off.
extern std::uint64_t arena_range_begin, arena_range_bytes;
inline bool arena_may_own(std::uint64_t address) noexcept {
  return address - __atomic_load_n(&arena_range_begin, __ATOMIC_RELAXED) <
         __atomic_load_n(&arena_range_bytes, __ATOMIC_RELAXED);
}

// With ArenaLock held. ---------------------------------------------------------------------------------------------

// Begins an operation on a stream: everything used with the result has that position.
StreamUse begin_operation(StreamName stream) noexcept;

// The live blocks that an address means: the one it lies in, and the one that ends there. Returns how many (0 to 2).
std::size_t find_blocks(std::uint64_t address, Block* found[2]) noexcept;

// The operation `use` touches the block: it is put behind the former owners of the block's bytes (by a wait on the
// stream, before the operation is queued), and the block is known to be used by that stream.
void use_block(Block& block, StreamUse use) noexcept;

// find_blocks and use_block for each of several addresses, for which nobody needs to know the blocks. Returns whether
// there was one.
bool use_addresses(const std::uint64_t* addresses, std::size_t count, StreamUse use) noexcept;

// As use_block, for every live block: the operation cannot be read (a launch whose parameters are unknown, a graph).
void use_everything(StreamUse use) noexcept;

// Work is queued whose effect the host can see without a copy of its own or a wait (a copy to the host, a host
// function, a kernel that was given page-locked memory): a plain free will wait for it.
void host_visible(StreamUse use) noexcept;

// An address inside a block is stored where launches do not show it (payload of a copy to the device, module global).
// The block counts as used by every stream.
void escaped(Block& block) noexcept;

// Without the lock. ------------------------------------------------------------------------------------------------

// cuMemAlloc and cuMemFree as the program sees them. `handled` false: the call goes to the driver.
struct Served {
  bool handled = false;
  CUresult result = CUDA_SUCCESS;
};
Served arena_allocate(CUdeviceptr* address, std::size_t bytes, void* return_address) noexcept;
Served arena_free(CUdeviceptr address) noexcept;

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
// happens. False: nothing went back.
enum class Relief : std::uint8_t {
  kCached,  // what freed blocks left
  kAll,     // and what of the plan's memory no block lies in: the plan is then followed as far as that goes
};
bool arena_relieve(Relief relief, std::size_t wanted) noexcept;

// What a query about an address of ours is answered. False: not ours, ask the driver.
struct BlockExtent {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
  bool driver_made = false;     // the driver knows the block too, and what it is
  CUmemoryPool pool = nullptr;  // stream-ordered: of which pool
};
bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept;

// Bytes that the driver counts as used but that any allocation on the current device can have: added to cuMemGetInfo's
// free.
std::uint64_t arena_reserve_bytes() noexcept;

// The calling thread's current context may have changed (cuCtxSetCurrent, push, pop, ...).
void note_context_change() noexcept;
// The context is gone, and with it goes what we hold for it.
void note_context_destroyed(CUcontext context) noexcept;

// For status; may throw std::bad_alloc. `plan` is filled only where memory is served or recorded.
void read_arena(shm::Status* status);
// The line at the end of the process, if a plan went live.
void say_goodbye() noexcept;

void forget_arena_after_fork() noexcept;

}  // namespace memopt::agent
