// Who owns which bytes of a piece of memory, and who used the free ones last. Asked at every taking of bytes: what is
// owned cannot be taken, and what is taken comes with the uses that must be over, or ordered before, its first use.
//
// The map is a partition of [0, bytes) into spans, in a list. Takings repeat under a plan, so a caller keeps the span
// of its last taking as a hint; with it, and with the same neighbours as last time, taking and giving back cost a few
// loads. Without it a coarse table leads near the place: to a span that begins in the same 256 KiB, as a rule.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/order/streams.h"

namespace memopt::agent {

struct Block;

// Uses that are too many to tell one by one are told by the epoch in which they were announced (epoch-based
// reclamation, Fraser, Practical lock-freedom, 2004, section 5.2.3): they are over when all that had been announced
// when it ended is. One count for all contexts; for each it only rises, as its arena's lock orders what is done with
// it.
inline constinit std::atomic<std::uint64_t> g_use_epoch{1};
inline std::uint64_t end_use_epoch() noexcept { return g_use_epoch.fetch_add(1, std::memory_order_relaxed); }

// The last uses of bytes that nobody owns.
struct Release {
  static constexpr std::uint32_t kUses = 3;

  std::uint8_t count = 0;
  bool unordered = false;  // no event could be recorded on a stream: the host must wait before the bytes are taken
  std::uint64_t epoch : 48 = 0;  // not 0: of uses of any stream, too many to tell
  StreamUse uses[kUses]{};

  bool empty() const { return count == 0 && !everything() && !unordered; }
  bool everything() const { return epoch != 0; }
  void add_everything(const Release& other) noexcept {
    if (epoch < other.epoch) epoch = other.epoch;
  }
  // All that has been announced.
  void add_everything() noexcept { epoch = g_use_epoch.load(std::memory_order_relaxed) & 0xffff'ffff'ffffu; }

  void add(StreamUse use) noexcept {
    if (count != 0 && are_of_one_slot(uses[0], use)) [[likely]] {
      uses[0] = later_of(uses[0], use);
    } else {
      add_other(use);
    }
  }
  void add(const Release& other) noexcept {
    if (other.count != 0) add(other.uses[0]);
    for (std::uint32_t i = 1; i < other.count; ++i) add(other.uses[i]);
    add_everything(other);
    unordered = unordered || other.unordered;
  }

 private:
  void add_other(StreamUse use) noexcept;
};
static_assert(sizeof(Release) == 32);

struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Span* previous = nullptr;
  Span* next = nullptr;
  Block* owner = nullptr;
  Release release;  // of a span without owner
  bool linked = false;
};

class OwnershipMap {
 public:
  OwnershipMap() = default;
  OwnershipMap(const OwnershipMap&) = delete;
  OwnershipMap& operator=(const OwnershipMap&) = delete;
  ~OwnershipMap();

  std::uint64_t bytes() const { return bytes_; }

  // Appends free bytes whose last uses are `release`. Throws std::bad_alloc; then nothing has changed.
  void grow(std::uint64_t bytes, const Release& release);

  // Does nobody own a byte from `begin` on? Their last uses are then added to `uses`.
  bool is_free_from(std::uint64_t begin, Release* uses) const noexcept;
  // Cuts off the bytes from `bytes` on, which nobody owns.
  void shrink(std::uint64_t bytes) noexcept;

  // Makes [begin, end) the owner's, and adds the last uses of all of it to `former`. Null, and nothing has changed, if
  // a byte of it is owned; `*in_the_way` is then that owner. Also null when out of memory; `*in_the_way` is then null.
  Span* take(std::uint64_t begin, std::uint64_t end, Block* owner, Span* hint, Release* former,
             Block** in_the_way) noexcept {
    // The same bytes as last time, which nobody has divided since.
    if (hint == nullptr || !hint->linked || hint->begin != begin || hint->end != end || hint->owner != nullptr)
      return take_anew(begin, end, owner, hint, former, in_the_way);
    former->add(hint->release);
    hint->owner = owner;
    owned_bytes_ += end - begin;
    return hint;
  }

  // The span has no owner any more.
  void give_back(Span* span, const Release& release) noexcept {
    span->owner = nullptr;
    span->release = release;
    owned_bytes_ -= span->end - span->begin;
  }

  // The last uses of all free bytes of [begin, end) are also `release`.
  void add_release(std::uint64_t begin, std::uint64_t end, const Release& release) noexcept;

  // The span in which `offset` lies; null beyond the end.
  Span* find(std::uint64_t offset, Span* hint) noexcept {
    if (hint != nullptr && contains(hint, offset)) [[likely]]
      return hint;
    return search(offset);
  }

  // The smallest run of free bytes that is large enough, the lowest of several; false if there is none. Looks at a
  // thousand spans and no more: where there are more, each search goes on behind the one before it.
  bool find_free(std::uint64_t bytes, std::uint64_t* begin, std::uint64_t* end) noexcept;

  bool has_owner() const { return owned_bytes_ != 0; }
  std::uint64_t owned_bytes() const { return owned_bytes_; }
  // All last uses, of free spans. Walks it all.
  Release last_uses() const noexcept;

  Span* first() const { return first_; }
  bool consistent() const noexcept;  // for tests

 private:
  static constexpr unsigned kCoarseShift = 18;
  static constexpr std::size_t kMostWalked = 1024;  // spans

  static bool contains(const Span* span, std::uint64_t offset) noexcept {
    return span->linked && span->begin <= offset && offset < span->end;
  }

  Span* take_anew(std::uint64_t begin, std::uint64_t end, Block* owner, Span* hint, Release* former,
                  Block** in_the_way) noexcept;
  Span* search(std::uint64_t offset) noexcept;
  Span* make() noexcept;  // unlinked; null when out of memory
  void insert_behind(Span* span, Span* added) noexcept;
  void drop(Span* span) noexcept;

  std::uint64_t bytes_ = 0;
  std::uint64_t owned_bytes_ = 0;
  Span* first_ = nullptr;
  Span* last_ = nullptr;
  Span* spare_ = nullptr;
  Span* searched_ = nullptr;   // where find_free() goes on; null: at the beginning. Perhaps recycled since, never freed
  std::vector<Span*> coarse_;  // per 256 KiB: a span that was found from there; perhaps recycled since, never freed
  std::vector<Span*> slabs_;   // arrays of spans
};

}  // namespace memopt::agent
