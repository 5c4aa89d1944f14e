#include "agent/memory/arena_graphs.h"

#include <algorithm>
#include <vector>

#include "agent/memory/arena.h"
#include "agent/memory/arena_state.h"
#include "agent/order/arena_lock.h"
#include "agent/process/kept_errno.h"

namespace memopt::agent {
namespace {

template <typename Function>
void with_names(const Function& function) noexcept {
  if (arena() == nullptr) return;
  const KeptErrno kept;
  ArenaLock lock;
  function(arena()->graph_names);
}

GraphNames::Captures named(const Block& block) noexcept { return {block.named_first, block.named_last}; }

// Freed by the program while a graph named it, which none does any more.
void give_back_named(Arena& arena, ArenaLock& lock, Block* block) noexcept {
  block->kept = false;
  if (block->window != nullptr) {
    arena_give_back_named(arena, lock, block);
    return;
  }
  const CUdeviceptr address = block->base;
  arena.driver_bytes -= block->bytes;
  const std::uint64_t releases = arena.releases;
  {
    const Unlocked unlocked(lock);
    driver().mem_free(address);
  }
  if (arena.releases == releases) arena.blocks.drop(block);
}

// The lock is given back for driver calls: one at a time, looked for anew.
void release_what_none_names(Arena& arena, ArenaLock& lock) noexcept {
  arena.blocks.for_each([&](Block& block) {
    if (block.kept && !arena.graph_names.hold(named(block))) block.kept = false;
  });
  while (true) {
    const auto found = std::find_if(arena.freed_but_named.begin(), arena.freed_but_named.end(),
                                    [&](const Block* block) { return !arena.graph_names.hold(named(*block)); });
    if (found == arena.freed_but_named.end()) return;
    Block* const block = *found;
    arena.freed_but_named.erase(found);
    const std::uint64_t releases = arena.releases;
    give_back_named(arena, lock, block);
    if (arena.releases != releases) return;
  }
}

}  // namespace

void arena_keep_for_graph(Arena& arena, Block& block) noexcept {
  const std::uint64_t now = arena.graph_names.now();
  if (!block.kept) block.named_first = now;
  block.kept = true;
  block.named_last = now;
}

void note_capture_names(CUstream stream) noexcept {
  with_names([&](GraphNames& names) { names.begin(stream); });
}

void note_captured(CUstream stream, CUgraph graph) noexcept {
  if (graph == nullptr) return;
  with_names([&](GraphNames& names) { names.captured(stream, graph); });
}

void note_capture_names_ended(CUstream stream) noexcept {
  if (arena() == nullptr) return;
  const KeptErrno kept;
  ArenaLock lock;
  arena()->graph_names.end(stream);
  // It may have come to no graph, or to one that is gone already.
  release_what_none_names(*arena(), lock);
}

void note_graph_made(const void* from, const void* to) noexcept {
  with_names([&](GraphNames& names) { names.made(from, to); });
}

void note_graph_added(const void* from, const void* into) noexcept {
  with_names([&](GraphNames& names) { names.added(from, into); });
}

void note_graph_beyond_sight(const void* from) noexcept {
  with_names([&](GraphNames& names) { names.lose_track(from); });
}

GraphNames::Captures begin_destroying_graph(const void* graph) noexcept {
  GraphNames::Captures captures;
  with_names([&](GraphNames& names) { captures = names.forget(graph); });
  return captures;
}

void graph_destroyed(const void* graph, GraphNames::Captures captures, CUresult result) noexcept {
  if (captures.last == 0 || arena() == nullptr) return;
  const KeptErrno kept;
  ArenaLock lock;
  if (result != CUDA_SUCCESS) {
    arena()->graph_names.restore(graph, captures);
    return;
  }
  release_what_none_names(*arena(), lock);
}

}  // namespace memopt::agent
