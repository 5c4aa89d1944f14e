// The physical space that a plan lays out: a linear window onto chunks. It is built while the program runs, by mapping
// chunks that the bootstrap allocator holds a second time, a slice at a time; at an iteration boundary it goes live,
// and what blocks of before still own is the slab's as soon as they are freed. From then on a planned allocation is a
// taking in its ownership map.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

#include "agent/memory/bootstrap.h"
#include "agent/memory/own_windows.h"
#include "agent/memory/switch_over.h"
#include "shm/plan.h"

namespace memopt::agent {

class Slab {
 public:
  Slab(const Driver& driver, StreamTable& streams, ChunkStore& chunks, Bootstrap& bootstrap)
      : driver_(driver), streams_(streams), chunks_(chunks), bootstrap_(bootstrap) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Without virtual memory management: one block of the driver's, made when it goes live, which can't grow.
  void use_driver_block() { driver_block_ = true; }

  // From now on at least `bytes` are wanted. `stays`: blocks (by number) whose chunks are not to be counted on, but for
  // those of `kept`, which lie where these say as far as that can be. False: the range of addresses has no such room.
  bool want(std::uint64_t bytes, std::function<bool(std::uint64_t)> stays,
            std::span<const shm::PlannedChunk> kept = {});
  // Does the slab have all that it keeps for blocks that stay where these say? Else they are in the way.
  bool keeps_only(std::span<const shm::PlannedChunk> kept) const noexcept;
  // Is one of these kept already, and elsewhere? No chunk lies in the slab twice.
  bool keeps_elsewhere(std::span<const shm::PlannedChunk> kept) const noexcept;
  // Could all that it keeps and that is not among these leave now? Else, if no block of it owns a byte there, what is
  // still to be over is added to `awaited`; `*owned`: one does.
  bool may_give_up_kept(std::span<const shm::PlannedChunk> but, Release* awaited, bool* owned) noexcept;
  // Those that it keeps and that are not among these are no longer the slab's, but for those of which a block of it
  // owns a byte or on which work goes on: that is added to `awaited`. What is free of them is free for others, where
  // their blocks are; in the slab their bytes are gone (refill).
  void give_up_kept(std::span<const shm::PlannedChunk> but, Release* awaited) noexcept;
  // Would the chunk that is mapped there for blocks that stay be one of the slab's chunks by a plan that keeps these?
  bool would_keep(std::uint64_t address, std::span<const shm::PlannedChunk> kept) const noexcept;

  // Maps up to `limit` more chunks; returns whether all that can be mapped now is.
  bool build(std::size_t limit) noexcept;

  // That are wanted and not mapped yet.
  std::size_t missing_chunks() const { return wanted_ > window_.chunks.size() ? wanted_ - window_.chunks.size() : 0; }

  // Makes everything that is wanted usable, what was gone of it included as far as chunks can be had and there is no
  // limit (refill() makes the rest); with `some_later`, where chunks are short, a few of the others only when refill()
  // does. CUDA_SUCCESS, or the driver's code: then the slab is as it was before
  // want(), with what had been live still live. `times`: where chunks in which blocks lie are to be lent; null: where
  // they were mapped.
  CUresult go_live(const SwitchTimes* times, bool some_later = false) noexcept;

  // Chunks in which blocks lie that were there before it went live: they are the slab's when these are freed.
  std::size_t lent_chunks() const noexcept { return bootstrap_.lent_chunks(); }
  // Not waited for any longer: they are gone, and refill() makes others.
  void give_up_lent() noexcept;

  // Gives back chunks beyond what is wanted, at most `limit`, from the end, as far as nobody owns them and their work
  // is over. Returns whether there is more to do.
  bool shorten(std::size_t limit) noexcept;

  // Memory is short. ----------------------------------------------------------------------------------------------
  // Forgets what has been mapped for a plan that is not live yet; go_live() makes all of it.
  void give_up_unfinished() noexcept { drop_beyond(0); }
  // Gives back the live chunks of which no block owns a byte, where work is over. Their bytes are gone: they can't be
  // taken until refill() has brought them back.
  // Something of what is to be over before the rest can go is added to `awaited`.
  void give_up_idle(Release* awaited) noexcept;
  // No plan needs it any more: likewise, with what is unfinished. True when all of it is gone: it is then as it was
  // before the first want().
  bool dissolve(Release* awaited) noexcept;
  // Gives back those of the chunks of `bytes` from `begin` on of which no block owns a byte, where work is over: they
  // are the caller's. May throw std::bad_alloc; what was given up till then is in `freed`.
  void give_up(std::uint64_t begin, std::uint64_t bytes, std::vector<Chunk*>* freed);
  // Likewise so many of all, from the end on. May throw std::bad_alloc.
  void give_up_some(std::size_t count, std::vector<Chunk*>* freed);
  // Likewise, for these bytes: of others, where no block is to come back. May throw std::bad_alloc.
  void give_up_unswapped(std::size_t count, std::uint64_t begin, std::uint64_t bytes, std::vector<Chunk*>* freed);
  // How much that is, once work is over, with what is unfinished.
  std::uint64_t idle_bytes() const noexcept;
  std::size_t gone_chunks() const {
    return window_.gone_bytes == 0 ? 0 : static_cast<std::size_t>(window_.gone_bytes / chunks_.chunk_bytes());
  }
  // Makes up to `limit` of them anew; returns whether all are there. Stops where the driver has no more.
  bool refill(std::size_t limit) noexcept;
  // Of the chunks of these bytes so many are gone; makes them anew, and returns whether all are there.
  std::size_t gone_chunks_at(std::uint64_t begin, std::uint64_t bytes) const noexcept;
  bool refill_at(std::uint64_t begin, std::uint64_t bytes) noexcept;
  // The driver's block, if no block of the program lies in it, which is then the caller's to free; 0 otherwise. The
  // slab is as it was before the first want().
  CUdeviceptr give_up_driver_block() noexcept;

  Window& window() { return window_; }
  // Of blocks that are swapped: other addresses of the same chunks.
  OwnWindows& own_windows() { return own_windows_; }
  const OwnWindows& own_windows() const { return own_windows_; }
  std::uint64_t live_bytes() const { return window_.map.bytes(); }
  bool covers(std::uint64_t address) const {
    return address - window_.base <= window_.map.bytes() && window_.base != 0;
  }
  bool is_driver_block() const { return driver_block_; }

  // Everything back to the driver.
  void release() noexcept;

 private:
  // For all the device has, but for no more than a quarter of all that there are.
  std::uint64_t addresses() const noexcept { return chunks_.share(chunks_.device_bytes(), 4); }
  CUresult make_driver_block() noexcept;
  bool add(Chunk* chunk) noexcept;
  struct Made {  // for the log
    std::size_t made = 0;
    std::size_t replaced = 0;
    std::size_t moved = 0;
  };
  bool can_fill() noexcept;
  Chunk* find_crossing_chunk(const SwitchTimes& times);
  CUresult fill(std::size_t slot, Chunk* chunk, Made* made);
  CUresult arrange(std::vector<std::size_t> crossing, const std::vector<std::size_t>& among,
                   const std::vector<std::size_t>& taken, const SwitchTimes& times, Made* made);
  void drop_gone_end() noexcept;
  std::vector<std::size_t> slots_to_make(std::size_t live) const;
  void give_parts_back(std::size_t slot) noexcept;
  void take_parts_away(std::size_t slot) noexcept;
  // Chunks that the plan keeps (slab_kept.cpp).
  struct Part {
    std::size_t slot = 0;
    std::uint64_t begin = 0;  // in the chunk
    std::uint64_t end = 0;
    Release uses;
  };
  Chunk* kept_chunk(std::size_t slot) noexcept;
  bool may_keep(const Chunk& chunk, std::size_t slot, const SwitchTimes* times) const;
  void take_kept(const std::vector<std::size_t>& slots, std::vector<Part>* free);
  void drop_kept(const std::vector<std::size_t>& slots) noexcept;
  void keep_parts(const std::vector<std::size_t>& slots, const std::vector<Part>& free) noexcept;
  bool is_among(std::span<const shm::PlannedChunk> kept, std::size_t slot) const noexcept;
  bool refill_slot(std::size_t slot) noexcept;
  // Of these bytes: the first, and the one behind the last.
  std::pair<std::size_t, std::size_t> slots_at(std::uint64_t begin, std::uint64_t bytes) const noexcept;
  CUresult move_to(const std::vector<Chunk*>& arranged) noexcept;
  void lend(const std::vector<std::size_t>& slots);
  void end_loan_of(std::size_t slot) noexcept;
  void drop_unfinished() noexcept;
  void drop_beyond(std::size_t count) noexcept;

  const Driver& driver_;
  StreamTable& streams_;
  ChunkStore& chunks_;
  Bootstrap& bootstrap_;
  Window window_;  // chunks beyond map.bytes() are mapped, but not live
  OwnWindows own_windows_{chunks_, window_};
  std::size_t wanted_ = 0;  // chunks
  std::uint64_t wanted_bytes_ = 0;
  bool driver_block_ = false;
  std::function<bool(std::uint64_t)> stays_;
  std::vector<std::size_t> remade_;  // slots of what is live that were gone: they have a chunk again, not live yet
  std::unordered_map<std::size_t, std::uint64_t> kept_;  // addresses of chunks that are wanted in slots
};

}  // namespace memopt::agent
