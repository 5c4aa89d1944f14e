#include "agent/memory/window.h"

#include "agent/memory/blocks.h"
#include "agent/memory/chunk_store.h"
#include "agent/order/stream_table.h"

namespace memopt::agent {
namespace {

// Its number stays 0, so that it is taken for no block.
constinit Block g_gone;

// Visits the runs of bytes without owner: begin and end of the chunks that lie in them as a whole, the last span, and
// when the bytes were used last.
template <typename Visit>
void for_each_idle_run(const OwnershipMap& map, std::uint64_t chunk_bytes, Visit&& visit) {
  for (Span* span = map.first(); span != nullptr;) {
    if (span->owner != nullptr) {
      span = span->next;
      continue;
    }
    const std::uint64_t begin = (span->begin + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    std::uint64_t end = span->end;
    Release uses = span->release;
    for (span = span->next; span != nullptr && span->owner == nullptr; span = span->next) {
      end = span->end;
      uses.add(span->release);
    }
    end = end / chunk_bytes * chunk_bytes;
    if (begin < end) visit(begin, end, uses, span);
  }
}

}  // namespace

bool is_gone(const Span& span) noexcept { return span.owner == &g_gone; }

Span* take_away(Window& window, std::uint64_t begin, std::uint64_t end, Span* hint) noexcept {
  Release former;
  if (window.space != nullptr) return window.space->take_at(begin, end, &g_gone, &former);
  Block* in_the_way = nullptr;
  return window.map.take(begin, end, &g_gone, hint, &former, &in_the_way);
}

std::uint64_t idle_bytes(const Window& window, std::uint64_t chunk_bytes) noexcept {
  std::uint64_t sum = 0;
  for_each_idle_run(window.map, chunk_bytes,
                    [&](std::uint64_t begin, std::uint64_t end, const Release&, Span*) { sum += end - begin; });
  return sum;
}

void await_also(const Release& uses, Release* awaited) noexcept {
  Release both = *awaited;
  both.add(uses);
  if (awaited->empty() || !both.everything()) *awaited = both;
}

void give_up_chunks(Window& window, ChunkStore& chunks, StreamTable& streams, std::vector<Chunk*>* freed,
                    Release* awaited) {
  const std::uint64_t chunk_bytes = chunks.chunk_bytes();
  for_each_idle_run(window.map, chunk_bytes,
                    [&](std::uint64_t begin, std::uint64_t end, const Release& uses, Span*& next) {
                      if (!streams.is_over(uses, true)) {
                        await_also(uses, awaited);
                        return;
                      }
                      make_room(freed, static_cast<std::size_t>((end - begin) / chunk_bytes));
                      // A span for each chunk, so that each can come back on its own.
                      std::uint64_t reached = begin;
                      for (; reached < end; reached += chunk_bytes) {
                        Span* const taken = take_away(window, reached, reached + chunk_bytes);
                        if (taken == nullptr) break;
                        next = taken->next;
                      }
                      window.gone_bytes += reached - begin;
                      // Refused (and said so): nothing is ever served from these bytes.
                      if (reached == begin || chunks.unmap(window.base + begin, reached - begin) != CUDA_SUCCESS)
                        return;
                      for (std::uint64_t at = begin; at < reached; at += chunk_bytes) {
                        Chunk*& chunk = window.chunks[static_cast<std::size_t>(at / chunk_bytes)];
                        if (window.kind == Window::Kind::kSlab) {
                          chunk->slab_slot = -1;
                        } else {
                          chunk->home = nullptr;
                        }
                        freed->push_back(chunk);
                        chunk = nullptr;
                      }
                    });
}

CUresult unmap_window(Window& window, ChunkStore& chunks) noexcept {
  const std::uint64_t chunk_bytes = chunks.chunk_bytes();
  for (std::size_t first = 0; first < window.chunks.size();) {
    std::size_t last = first;
    while (last < window.chunks.size() && window.chunks[last] != nullptr) ++last;
    if (last != first) {
      const CUresult result = chunks.unmap(window.base + first * chunk_bytes, (last - first) * chunk_bytes);
      if (result != CUDA_SUCCESS) return result;
    }
    first = last + 1;
  }
  return CUDA_SUCCESS;
}

}  // namespace memopt::agent
