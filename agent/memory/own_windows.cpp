#include "agent/memory/own_windows.h"

#include <algorithm>
#include <functional>
#include <new>

namespace memopt::agent {
namespace {

// None of them null.
bool lie_side_by_side(const std::vector<HostPiece*>& pieces, std::uint64_t bytes) noexcept {
  const auto adjoin = [bytes](const HostPiece* one, const HostPiece* next) {
    return one->bytes + bytes == next->bytes;
  };
  return std::adjacent_find(pieces.begin(), pieces.end(), std::not_fn(adjoin)) == pieces.end();
}

}  // namespace

OwnWindows::~OwnWindows() = default;

std::size_t OwnWindows::first_slot(const OwnWindow& window) const noexcept {
  return static_cast<std::size_t>(window.place / chunks_.chunk_bytes());
}

void OwnWindows::begin_plan() noexcept {
  for (const auto& window : windows_) {
    window->wanted = window->borrowed;
    window->joined = false;
  }
}

OwnWindow* OwnWindows::open(std::uint64_t place, std::uint64_t bytes) noexcept {
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  const auto count = static_cast<std::size_t>((bytes + chunk_bytes - 1) / chunk_bytes);
  for (const auto& there : windows_) {
    if (there->borrowed || there->wanted || there->place != place || there->chunks.size() != count) continue;
    if (there->block != nullptr || there->beside) continue;
    there->wanted = true;
    there->stays = false;
    return there.get();
  }
  try {
    auto made = std::make_unique<OwnWindow>();
    made->kind = Window::Kind::kOwn;
    made->wanted = true;
    made->place = place;
    made->chunks.assign(count, nullptr);
    made->bytes = count * chunk_bytes;
    windows_.reserve(windows_.size() + 1);
    made->base = chunks_.reserve(made->bytes);
    if (made->base == 0) return nullptr;
    chunks_.set_window(made->base, made->bytes, made.get());
    windows_.push_back(std::move(made));
    return windows_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

OwnWindow* OwnWindows::borrow(std::uint64_t base, std::size_t chunks, std::uint64_t place) noexcept {
  try {
    auto made = std::make_unique<OwnWindow>();
    made->kind = Window::Kind::kOwn;
    made->borrowed = true;
    made->wanted = true;
    made->base = base;
    made->place = place;
    made->chunks.assign(chunks, nullptr);
    made->bytes = chunks * chunks_.chunk_bytes();
    made->pieces.assign(chunks, nullptr);
    windows_.push_back(std::move(made));
    return windows_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

CUresult OwnWindows::return_borrowed(OwnWindow* window) noexcept {
  if (const CUresult result = unmap(*window); result != CUDA_SUCCESS) return result;
  const auto at = std::find_if(windows_.begin(), windows_.end(), [&](const auto& one) { return one.get() == window; });
  std::swap(*at, windows_.back());
  windows_.pop_back();
  return CUDA_SUCCESS;
}

bool OwnWindows::is_mapped(const OwnWindow& window) const noexcept {
  const std::size_t first = first_slot(window);
  if (window.beside || first + window.chunks.size() > slab_.chunks.size()) return false;
  for (std::size_t i = 0; i < window.chunks.size(); ++i) {
    if (window.chunks[i] == nullptr || window.chunks[i] != slab_.chunks[first + i]) return false;
  }
  return true;
}

CUresult OwnWindows::unmap(OwnWindow& window) noexcept {
  const CUresult result = unmap_window(window, chunks_);
  if (result != CUDA_SUCCESS) return result;
  for (Chunk*& chunk : window.chunks) {
    if (chunk != nullptr && !window.beside) --chunk->aliases;
    chunk = nullptr;
  }
  return CUDA_SUCCESS;
}

CUresult OwnWindows::map_run(OwnWindow& window, std::size_t first, const std::vector<Chunk*>& chunks) noexcept {
  const CUresult result = chunks_.map(window.base + first * chunks_.chunk_bytes(), chunks);
  if (result != CUDA_SUCCESS) return result;
  std::copy(chunks.begin(), chunks.end(), window.chunks.begin() + static_cast<std::ptrdiff_t>(first));
  return CUDA_SUCCESS;
}

CUresult OwnWindows::map(OwnWindow& window) noexcept {
  const std::size_t first = first_slot(window);
  if (first + window.chunks.size() > slab_.chunks.size()) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = slab_.chunks.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(window.chunks.size());
  if (std::find(begin, end, nullptr) != end) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult result = unmap(window); result != CUDA_SUCCESS) return result;
  try {
    const CUresult result = map_run(window, 0, {begin, end});
    if (result != CUDA_SUCCESS) return result;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (Chunk* const chunk : window.chunks) ++chunk->aliases;
  return CUDA_SUCCESS;
}

CUresult OwnWindows::map_beside(OwnWindow& window, const std::vector<Chunk*>& chunks) noexcept {
  if (const CUresult result = unmap(window); result != CUDA_SUCCESS) return result;
  const CUresult result = map_run(window, 0, chunks);
  window.beside = result == CUDA_SUCCESS;
  return result;
}

CUresult OwnWindows::unmap_beside(OwnWindow& window, std::vector<Chunk*>* freed) {
  make_room(freed, window.chunks.size());
  const std::vector<Chunk*> chunks = window.chunks;
  if (const CUresult result = unmap(window); result != CUDA_SUCCESS) return result;
  freed->insert(freed->end(), chunks.begin(), chunks.end());
  window.beside = false;
  return CUDA_SUCCESS;
}

bool OwnWindows::take_pieces(OwnWindow& window, HostStore& host) noexcept {
  const std::size_t count = window.chunks.size();
  const auto missing = static_cast<std::size_t>(std::count(window.pieces.begin(), window.pieces.end(), nullptr)) +
                       count - window.pieces.size();
  if (missing == 0 && (window.joined || lie_side_by_side(window.pieces, chunks_.chunk_bytes()))) return true;
  window.joined = true;
  try {
    window.pieces.reserve(count);
    std::vector<HostPiece*> run(count);
    if (host.take_run(count, run.data())) {
      for (HostPiece* const piece : window.pieces) {
        if (piece != nullptr) host.give_back(piece, piece->former);
      }
      window.pieces.swap(run);
      return true;
    }
  } catch (const std::bad_alloc&) {
    return missing == 0;
  }
  if (missing == 0) return true;
  if (host.free_pieces() < missing) return false;
  window.pieces.resize(count);
  for (HostPiece*& piece : window.pieces) {
    if (piece == nullptr) piece = host.take();
  }
  return true;
}

void OwnWindows::unmap_chunk(Chunk* chunk) noexcept {
  if (chunk->aliases == 0) return;
  const std::uint64_t chunk_bytes = chunks_.chunk_bytes();
  for (const auto& window : windows_) {
    if (window->beside) continue;
    for (std::size_t i = 0; i < window->chunks.size(); ++i) {
      if (window->chunks[i] != chunk) continue;
      // Refused (and said so): nothing is ever served there, as it is not mapped onto the slab.
      if (chunks_.unmap(window->base + i * chunk_bytes, chunk_bytes) != CUDA_SUCCESS) continue;
      window->chunks[i] = nullptr;
      --chunk->aliases;
    }
  }
}

void OwnWindows::close(OwnWindow& window) noexcept {
  if (window.borrowed) return;
  chunks_.set_window(window.base, window.bytes, nullptr);
  chunks_.unreserve(window.base, window.bytes);
}

bool OwnWindows::tidy_up(StreamTable& streams, HostStore& host, std::vector<Chunk*>* freed) {
  bool more = false;
  for (std::size_t i = 0; i < windows_.size();) {
    OwnWindow& window = *windows_[i];
    if (window.moving || (window.wanted && !window.beside)) {
      ++i;
      continue;
    }
    if (window.block != nullptr || !streams.is_over(window.last_uses, true)) {
      more = true;
      ++i;
      continue;
    }
    if (window.beside) make_room(freed, window.chunks.size());
    const std::vector<Chunk*> beside = window.beside ? window.chunks : std::vector<Chunk*>();
    if (unmap(window) != CUDA_SUCCESS) {
      ++i;  // refused, and said so
      continue;
    }
    freed->insert(freed->end(), beside.begin(), beside.end());
    window.beside = false;
    if (window.wanted) {
      ++i;
      continue;
    }
    for (HostPiece* const piece : window.pieces) host.give_back(piece, piece->former);
    close(window);
    std::swap(windows_[i], windows_.back());
    windows_.pop_back();
  }
  return more;
}

void OwnWindows::release() noexcept {
  for (const auto& window : windows_) {
    unmap_window(*window, chunks_);
    for (Chunk* const chunk : window->chunks) {
      if (chunk == nullptr) continue;
      if (window->beside) {
        chunks_.release(chunk);
      } else {
        --chunk->aliases;
      }
    }
    close(*window);
  }
  windows_.clear();
}

}  // namespace memopt::agent
