// Which live blocks an address means, and what it means to use them (arena.h).
#include <algorithm>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"

namespace memopt::agent {
namespace {

// With the lock held.
Block* find_inside(Arena& arena, std::uint64_t address, Block** ends_here) noexcept {
  *ends_here = nullptr;
  const auto ends = [&](Block* block) { return block != nullptr && block->base + block->bytes == address; };
  if (arena.service == Arena::Service::kDriver && !arena.slab.covers(address)) {
    auto after = arena.driver_blocks.upper_bound(address);
    Block* inside = nullptr;
    if (after != arena.driver_blocks.begin()) {
      --after;
      if (address < after->first + after->second->bytes) {
        inside = after->second;
        if (after->first == address && after != arena.driver_blocks.begin()) --after;
      }
      if (after->second != inside && ends(after->second)) *ends_here = after->second;
    }
    return inside;
  }
  Window* const window =
      arena.service == Arena::Service::kDriver ? &arena.slab.window() : arena.chunks.window_at(address);
  if (window == nullptr || window->base == 0) return nullptr;
  const std::uint64_t offset = address - window->base;
  if (window->kind == Window::Kind::kOwn) {
    Block* const block = static_cast<OwnWindow*>(window)->block;
    if (block == nullptr) return nullptr;
    if (ends(block)) *ends_here = block;
    return offset < block->bytes ? block : nullptr;
  }
  if (offset >= window->map.bytes()) {
    Span* const last = offset == window->map.bytes() && offset != 0 ? window->find(offset - 1) : nullptr;
    if (last != nullptr && ends(last->owner)) *ends_here = last->owner;
    return nullptr;
  }
  Span* const span = window->find(offset);
  if (span->begin == offset && span->previous != nullptr && ends(span->previous->owner)) {
    *ends_here = span->previous->owner;
  }
  // Bytes that have no chunk any more have an owner that is no block.
  return span->owner != nullptr && span->owner->number != 0 ? span->owner : nullptr;
}

// An operation that touches blocks, and what is the same for all of them.
class Toucher {
 public:
  Toucher(Arena& arena, Operation& operation) noexcept
      : arena_(arena),
        operation_(operation),
        use_(operation.use),
        ticket_(operation.ticket),
        reuses_(arena.streams.reuses()),
        ready_(std::uint64_t{1} << std::min<std::uint64_t>(use_.slot, kReadySlots)),
        odd_(!is_queued() || is_captured()),
        limited_(arena_has_limit()) {}

  // Puts the operation behind the block's former owners, and makes it one of the block's uses.
  void touch(Block& block) noexcept {
    if (odd_) [[unlikely]] {
      if (!is_queued()) return;
      if (is_captured()) arena_keep_for_graph(arena_, block);
    }
    const bool ready = (block.ready & ready_) != 0 && (block.ready_at == reuses_ || block.ready == kAllStreams);
    if (!ready) [[unlikely]]
      wait_for_former_owners(block);
    block.uses.add(use_);
    if (limited_ && ticket_ != block.touched) [[unlikely]]
      block.history.note(ticket_ - block.touched, block.away != 0);
    block.touched = ticket_;
    if (block.away != 0) [[unlikely]]
      note_away(block);
  }

 private:
  bool is_queued() const noexcept { return use_.position != 0; }
  bool is_captured() const noexcept {
    return arena_.streams.capturing() && arena_.streams.is_capturing(static_cast<StreamSlot>(use_.slot));
  }

  [[gnu::cold, gnu::noinline]] void note_away(const Block& block) noexcept {
    std::uint32_t& count = operation_.away;
    for (std::uint32_t i = 0; i < count && i < Operation::kMostAway; ++i) {
      if (operation_.away_bases[i] == block.base) return;
    }
    if (count < Operation::kMostAway) operation_.away_bases[count] = block.base;
    ++count;
  }

  [[gnu::noinline]] void wait_for_former_owners(Block& block) noexcept {
    // It is ready when all waits have been issued, not before: another thread may use the stream.
    const auto slot = static_cast<StreamSlot>(use_.slot);
    if (!arena_.streams.add_needs(slot, block.former, &operation_.needs)) return;
    if (slot >= kReadySlots || slot == kOverflowSlot) return;
    if (block.ready_at != reuses_) block.ready = 0;
    block.ready |= ready_;
    block.ready_at = reuses_;
  }

  Arena& arena_;
  Operation& operation_;
  const StreamUse use_;
  const std::uint64_t ticket_;
  const std::uint64_t reuses_;
  const std::uint64_t ready_;  // the bit of Block::ready
  const bool odd_;             // not queued, or captured
  const bool limited_;
};

// The block that ends where this one begins; null if there is none.
inline Block* ends_before(const Block& block) noexcept {
  const Span* const before = block.span->previous;
  if (before == nullptr || before->owner == nullptr) return nullptr;
  return before->owner->base + before->owner->bytes == block.base ? before->owner : nullptr;
}

// Both blocks that the address can mean: found[0] is the one it lies in, if there is one.
inline std::size_t look_up(Arena& arena, std::uint64_t address, Block* found[2]) noexcept {
  Block* inside = arena.blocks.find(address);
  Block* ends_here = nullptr;
  if (inside != nullptr && inside->span != nullptr) [[likely]] {
    ends_here = ends_before(*inside);
  } else {
    inside = find_inside(arena, address, &ends_here);
  }
  std::size_t count = 0;
  if (inside != nullptr) found[count++] = inside;
  if (ends_here != nullptr) found[count++] = ends_here;
  return count;
}

// The block in which the address lies, with the lock held; null: none.
Block* block_around(std::uint64_t address) noexcept {
  Block* found[2];
  const std::size_t count = find_blocks(address, found);
  for (std::size_t i = 0; i < count; ++i) {
    if (address - found[i]->base < found[i]->bytes) return found[i];
  }
  return nullptr;
}

[[gnu::always_inline]] inline void begin_operation(Arena& arena, StreamName stream, Operation* operation) noexcept {
  // On a stream that does not exist nothing is queued: position 0 is over from the beginning.
  if (arena.known_streams.check(stream.handle) != CUDA_SUCCESS) [[unlikely]]
    return;
  operation->use = arena.streams.begin(stream, &operation->needs);
  operation->ticket = ++arena.tickets;
  announce_ticket(operation->ticket);
  operation->barrier = arena.streams.barrier();
}

// Is there nothing to do for an operation's order, as in the steady state?
inline bool is_in_order(const Arena& arena, const Operation& operation) noexcept {
  return !arena.limit_change.pending && operation.away == 0 && operation.needs.empty() && !arena.streams.is_full();
}

}  // namespace

std::uint64_t block_number(const Block& block) noexcept { return block.number; }

void begin_operation(StreamName stream, Operation* operation) noexcept {
  if (Arena* const now = arena()) begin_operation(*now, stream, operation);
}

std::size_t find_blocks(std::uint64_t address, Block* found[2]) noexcept {
  Arena* const now = arena();
  return now != nullptr && arena_may_own(address) ? look_up(*now, address, found) : 0;
}

void use_block(Block& block, Operation& operation) noexcept { Toucher(*arena(), operation).touch(block); }

void keep_for_graph(Block& block) noexcept { arena_keep_for_graph(*arena(), block); }

bool use_addresses(StreamName stream, bool begun, std::span<const std::uint64_t> addresses,
                   Operation* operation) noexcept {
  Arena* const now = arena();
  if (now == nullptr) return false;
  ArenaLock lock;
  for (int time = 1;; ++time) {
    if (!begun) begin_operation(*now, stream, operation);
    Toucher toucher(*now, *operation);
    bool any = false;
    for (const std::uint64_t address : addresses) {
      // The commonest word by far: the beginning of a block before which none ends.
      Block* const block = now->blocks.find(address);
      if (block != nullptr && block->span != nullptr && ends_before(*block) == nullptr) [[likely]] {
        toucher.touch(*block);
        any = true;
        continue;
      }
      Block* found[2];
      const std::size_t blocks = look_up(*now, address, found);
      for (std::size_t k = 0; k < blocks; ++k) toucher.touch(*found[k]);
      any = any || blocks != 0;
    }
    if (is_in_order(*now, *operation)) [[likely]]
      return any;
    if (!order_or_begin_again(lock, *operation, begun ? 0 : time)) return any;
  }
}

void use_everything(Operation& operation) noexcept {
  Arena* const now = arena();
  if (now == nullptr) return;
  Toucher toucher(*now, operation);
  now->blocks.for_each([&](Block& block) { toucher.touch(block); });
  use_freed_but_named(operation);
}

void use_freed_but_named(const Operation& operation) noexcept {
  if (arena() == nullptr || operation.use.position == 0) return;
  for (Block* const block : arena()->freed_but_named) block->uses.add(operation.use);
}

void order_operation(ArenaLock& lock, Operation& operation) noexcept {
  Arena* const now = arena();
  if (now == nullptr || is_in_order(*now, operation)) return;
  if (now->limit_change.pending) [[unlikely]] {
    const std::uint64_t releases = now->releases;
    arena_follow_limit(*now, lock);
    if (now->releases != releases) return;
  }
  if (operation.away != 0) [[unlikely]]
    arena_bring_back(*now, lock, operation);
  if (operation.begins_again) return;
  if (!operation.needs.empty()) [[unlikely]] {
    const auto slot = static_cast<StreamSlot>(operation.use.slot);
    const std::uint64_t releases = now->releases;
    now->streams.wait(lock, slot, operation.needs);
    operation.needs = UseSet();
    if (now->releases == releases) now->streams.is_behind_barrier(slot, operation.barrier);
  }
  if (now->streams.is_full()) [[unlikely]]
    now->streams.finish_all(lock);
}

bool order_or_begin_again(ArenaLock& lock, Operation& operation, int time) noexcept {
  const StreamUse use = operation.use;
  operation.times_begun = is_all_in_flight(use.slot, use.position) ? time : 0;
  order_operation(lock, operation);
  operation.times_begun = 0;
  if (!operation.begins_again) return false;
  operation.begins_again = false;
  // What it must be behind stays: these blocks are still its own.
  operation.away = 0;
  queued();
  arena_await_turn(lock);
  return true;
}

void host_visible(const Operation& operation, bool held_up) noexcept {
  Arena* const now = arena();
  if (now != nullptr && operation.use.position != 0) now->streams.host_visible(operation.use, held_up);
}

void escaped(ArenaLock& lock, Block& block) noexcept {
  if (block.escaped) return;
  // Seen by no launch from now on: here for as long as it lives.
  if (!arena_bring_back(*arena(), lock, block)) return;
  arena_keep_here(*arena(), block);
  arena_open_to_all(*arena(), lock, block);
}

void arena_keep_here(Arena& arena, Block& block) noexcept {
  block.escaped = true;
  arena_tell_escape(arena, block.number);
}

void arena_open_to_all(Arena& arena, ArenaLock& lock, Block& block) noexcept {
  if (block.ready == kAllStreams) return;
  const std::uint64_t number = block.number;
  const Release former = block.former;
  if (arena.streams.finish(lock, former) == CUDA_SUCCESS && block.number == number) block.ready = kAllStreams;
}

bool arena_block_at(std::uint64_t address, BlockExtent* extent) noexcept {
  if (!arena_may_own(address)) return false;
  ArenaLock lock;
  const Block* const block = block_around(address);
  if (block == nullptr) return false;
  *extent = {.base = block->base,
             .bytes = block->bytes,
             .number = block->number,
             .driver_made = block->window == nullptr,
             .pool = block->pool,
             .context = block->pool == nullptr ? arena()->context : nullptr,
             .sync_memops = block->sync_memops,
             .chunk = arena()->chunks.chunk_bytes()};
  return true;
}

void arena_note_sync_memops(std::uint64_t address, bool on) noexcept {
  if (!arena_may_own(address)) return;
  ArenaLock lock;
  if (Block* const block = block_around(address)) block->sync_memops = on;
}

bool arena_maps(std::uint64_t address) noexcept {
  if (!arena_may_own(address)) return false;
  const ArenaLock lock;
  const Arena* const now = arena();
  return now != nullptr && address - now->chunks.range_begin() < now->chunks.range_bytes();
}

bool arena_is_unused(std::uint64_t address) noexcept {
  if (!arena_may_own(address)) return false;
  ArenaLock lock;
  Block* const block = block_around(address);
  // The driver knows nothing of what is away.
  if (block != nullptr && block->away != 0) [[unlikely]]
    arena_bring_back(*arena(), lock, *block);
  return arena()->service == Arena::Service::kChunks && block == nullptr;
}

}  // namespace memopt::agent
