#include "agent/memory/host_store.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "agent/order/captures.h"
#include "agent/order/current_context.h"
#include "agent/process/host_room.h"
#include "agent/process/kept_errno.h"

namespace memopt::agent {
namespace {

// Of what is held: so much more is made each time at least, so that it is made rarely.
constexpr std::uint64_t kPart = 8;
constexpr std::uint32_t kMostPause = 1023;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSmallPage = 4096;

// Guarded by the arena's lock.
constinit std::uint64_t g_generations = 0;

// The mapping's begin is a multiple of a huge page, without which the kernel gives none.
void* map_aligned(std::size_t bytes) noexcept {
  const std::size_t all = bytes + kHugePage;
  void* const mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (before != 0) munmap(begin, before);
  if (before != kHugePage) munmap(begin + before + bytes, kHugePage - before);
  return begin + before;
}

}  // namespace

// What making a step needs to know: the store itself may be gone meanwhile.
struct HostStore::Request {
  const Driver& driver;
  CUcontext context;
  const char* root;
  std::uint64_t piece_bytes;
  std::uint64_t held;
  std::uint64_t most;     // pieces, by what is to be held and registered at once
  std::uint64_t pieces;   // that are needed
  std::uint64_t desired;  // so that the next time is not soon
};

HostStore::HostStore(const Driver& driver, const Settings& settings) noexcept
    : driver_(driver), settings_(settings), generation_(++g_generations) {}

void HostStore::start(std::uint64_t piece_bytes, std::uint64_t limit, CUcontext context) noexcept {
  piece_bytes_ = piece_bytes;
  limit_ = limit;
  context_ = context;
}

HostPiece* HostStore::take() noexcept {
  HostPiece* const piece = first_;
  if (free_pieces() == 0) return nullptr;
  unlink(piece);
  return piece;
}

void HostStore::unlink(HostPiece* piece) noexcept {
  (piece->previous != nullptr ? piece->previous->next : first_) = piece->next;
  (piece->next != nullptr ? piece->next->previous : last_) = piece->previous;
  piece->next = piece->previous = nullptr;
  piece->free = false;
  --free_;
}

bool HostStore::take_run(std::size_t count, HostPiece** taken) noexcept {
  if (count == 0 || free_pieces() < count) return false;
  HostPiece* best = nullptr;
  std::size_t shortest = ~std::size_t{0};
  for (Step& step : steps_) {
    std::size_t length = 0;
    for (std::size_t i = 0; i <= step.pieces.size(); ++i) {
      if (i < step.pieces.size() && step.pieces[i].free) {
        ++length;
        continue;
      }
      if (length >= count && length < shortest) {
        shortest = length;
        best = &step.pieces[i - length];
      }
      length = 0;
    }
  }
  if (best == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) {
    unlink(&best[i]);
    taken[i] = &best[i];
  }
  return true;
}

void HostStore::give_back(HostPiece* piece, const Release& last_use) noexcept {
  piece->former = last_use;
  piece->next = nullptr;
  piece->previous = last_;
  piece->free = true;
  (last_ != nullptr ? last_->next : first_) = piece;
  last_ = piece;
  ++free_;
}

void HostStore::note(std::string_view why) noexcept {
  try {
    note_ = why;
  } catch (const std::bad_alloc&) {
  }
}

bool HostStore::grow(ArenaLock& lock, std::size_t pieces) noexcept {
  const std::uint64_t generation = generation_;
  while (free_pieces() < pieces) {
    if (growing_) {
      const Unlocked unlocked(lock);
      sched_yield();
    } else if (!grow_once(lock, pieces - free_pieces())) {
      break;
    }
    if (generation_ != generation) return false;
  }
  return generation_ == generation && free_pieces() >= pieces;
}

// At least one piece more, or false.
bool HostStore::grow_once(ArenaLock& lock, std::size_t pieces) noexcept {
  if (piece_bytes_ == 0) return false;
  // It would be an error that ends the capture.
  if (captures_are_open()) {
    note("no host memory is page-locked while a stream is being captured into a graph");
    return false;
  }
  const std::uint64_t most = std::max(settings_.most_at_once, piece_bytes_) / piece_bytes_;
  const std::uint64_t left = limit_ == 0 ? most : (limit_ - std::min(limit_, held_)) / piece_bytes_;
  if (left == 0) {
    note("as much host memory is page-locked as MEMOPT_HOST_LIMIT allows");
    return false;
  }
  if (pause_ != 0) {
    --pause_;
    return false;
  }
  try {
    steps_.reserve(steps_.size() + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const Request request{driver_,        context_,
                        settings_.root, piece_bytes_,
                        held_,          std::min(most, left),
                        pieces,         std::max<std::uint64_t>(pieces, held_ / kPart / piece_bytes_)};
  const std::uint64_t generation = generation_;
  bool refused = false;
  std::string why;
  Step step;
  growing_ = true;
  {
    const Unlocked unlocked(lock);
    step = make(request, &refused, &why);
  }
  if (generation_ != generation) {
    // Another thread may be growing what is there now.
    const Unlocked unlocked(lock);
    unmake(request.driver, step);
    return false;
  }
  growing_ = false;
  if (step.memory == nullptr) {
    if (refused) pause_ = std::exchange(last_pause_, std::min(2 * last_pause_ + 1, kMostPause));
    note_ = std::move(why);
    return false;
  }
  pause_ = last_pause_ = 0;
  note_.clear();
  held_ += step.bytes;
  auto* bytes = static_cast<std::byte*>(step.memory);
  for (HostPiece& piece : step.pieces) {
    piece.bytes = bytes;
    bytes += piece_bytes_;
    give_back(&piece, Release{});
  }
  steps_.push_back(std::move(step));
  return true;
}

// As many pieces as are desired; if these are not to be had, as are needed; if these are not, half as many, and so on.
HostStore::Step HostStore::make(const Request& request, bool* refused, std::string* why) noexcept {
  Step step;
  const HostRoom room = host_room(request.held, request.root);
  const std::uint64_t most = std::min(request.most, room.bytes / request.piece_bytes);
  const std::uint64_t needed = std::min(request.pieces, most);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (std::uint64_t count = std::min(request.desired, most); count != 0;) {
    result = make_exactly(request, static_cast<std::size_t>(count * request.piece_bytes), &step);
    if (result == CUDA_SUCCESS) return step;
    count = count > needed ? needed : count / 2;
  }
  *refused = most != 0;
  try {
    const std::uint64_t mebibytes = request.held >> 20;
    *why = most == 0 ? fmt::format("no more than {} MiB of host memory are page-locked: {} leaves no room for more",
                                   mebibytes, room.bound)
                     : fmt::format("the kernel or the driver page-locks no more than {} MiB of host memory (error {})",
                                   mebibytes, static_cast<int>(result));
  } catch (...) {
  }
  return step;
}

CUresult HostStore::make_exactly(const Request& request, std::size_t bytes, Step* step) noexcept {
  const KeptErrno kept;
  try {
    step->pieces.clear();
    step->pieces.resize(bytes / request.piece_bytes);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* const memory = map_aligned(bytes);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  madvise(memory, bytes, MADV_DONTFORK);
  madvise(memory, bytes, MADV_HUGEPAGE);
  for (std::size_t at = 0; at < bytes; at += kSmallPage) static_cast<volatile char*>(memory)[at] = 0;
  {
    // A capture may have been begun since.
    const BesideCaptures beside(request.driver);
    const CurrentContext current(request.driver, request.context);
    const CUresult result = request.driver.host_register(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    if (result != CUDA_SUCCESS) {
      munmap(memory, bytes);
      return result;
    }
  }
  step->memory = memory;
  step->bytes = bytes;
  return CUDA_SUCCESS;
}

void HostStore::unmake(const Driver& driver, const Step& step) noexcept {
  if (step.memory == nullptr) return;
  const KeptErrno kept;
  // Refused where the context is gone already: it is registered no more then.
  driver.host_unregister(step.memory);
  munmap(step.memory, step.bytes);
}

void HostStore::release() noexcept {
  generation_ = ++g_generations;
  for (const Step& step : steps_) unmake(driver_, step);
  steps_.clear();
  first_ = last_ = nullptr;
  free_ = kept_back_ = 0;
  held_ = 0;
  growing_ = false;
  pause_ = last_pause_ = 0;
}

}  // namespace memopt::agent
