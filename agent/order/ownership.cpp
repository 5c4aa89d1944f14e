#include "agent/order/ownership.h"

#include <algorithm>
#include <new>

namespace memopt::agent {
namespace {

// Most windows have one block and one span.
constexpr std::size_t kSpansAtFirst = 4;
constexpr std::size_t kMostSpansAtOnce = 256;

}  // namespace

void Release::add_other(StreamUse use) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (uses[i].slot != use.slot) continue;
    if (use.position > uses[i].position) uses[i] = use;
    return;
  }
  if (count == kUses) {
    add_everything();
    return;
  }
  uses[count++] = use;
}

OwnershipMap::~OwnershipMap() {
  for (Span* const array : slabs_) delete[] array;
}

Span* OwnershipMap::make() noexcept {
  if (spare_ == nullptr) {
    const std::size_t count = std::min(kSpansAtFirst << std::min<std::size_t>(2 * slabs_.size(), 6), kMostSpansAtOnce);
    Span* const array = new (std::nothrow) Span[count];
    if (array == nullptr) return nullptr;
    try {
      slabs_.push_back(array);
    } catch (...) {
      delete[] array;
      return nullptr;
    }
    for (std::size_t i = count; i-- > 0;) {
      array[i].next = spare_;
      spare_ = &array[i];
    }
  }
  Span* const span = spare_;
  spare_ = span->next;
  return span;
}

void OwnershipMap::drop(Span* span) noexcept {
  span->linked = false;
  span->owner = nullptr;
  span->next = spare_;
  spare_ = span;
}

void OwnershipMap::grow(std::uint64_t bytes, const Release& release) {
  if (bytes == 0) return;
  coarse_.resize(((bytes_ + bytes) >> kCoarseShift) + 1, nullptr);
  Span* const span = make();
  if (span == nullptr) throw std::bad_alloc();
  *span = {bytes_, bytes_ + bytes, last_, nullptr, nullptr, release, true};
  if (last_ != nullptr) last_->next = span;
  if (first_ == nullptr) first_ = span;
  last_ = span;
  bytes_ += bytes;
}

bool OwnershipMap::is_free_from(std::uint64_t begin, Release* uses) const noexcept {
  for (const Span* span = last_; span != nullptr && span->end > begin; span = span->previous) {
    if (span->owner != nullptr) return false;
    uses->add(span->release);
  }
  return true;
}

void OwnershipMap::shrink(std::uint64_t bytes) noexcept {
  while (last_ != nullptr && last_->begin >= bytes) {
    Span* const cut = last_;
    last_ = cut->previous;
    drop(cut);
  }
  if (last_ != nullptr) {
    last_->end = std::min(last_->end, bytes);
    last_->next = nullptr;
  } else {
    first_ = nullptr;
  }
  bytes_ = std::min(bytes_, bytes);
}

[[gnu::noinline]] Span* OwnershipMap::search(std::uint64_t offset) noexcept {
  if (offset >= bytes_) return nullptr;
  const std::size_t own = static_cast<std::size_t>(offset >> kCoarseShift);
  // An entry is of use if its span is not another one by now: it lies there, or begins there.
  const auto near = [&](std::size_t coarse) -> Span* {
    Span* const span = coarse_[coarse];
    if (span == nullptr || !span->linked) return nullptr;
    return span->begin >> kCoarseShift == coarse || contains(span, offset) ? span : nullptr;
  };
  Span* span = near(own);
  for (std::size_t coarse = own; span == nullptr && coarse-- > 0;) span = near(coarse);
  if (span == nullptr) span = first_;
  while (span->begin > offset) span = span->previous;
  while (span->end <= offset) span = span->next;
  coarse_[own] = span;
  return span;
}

void OwnershipMap::insert_behind(Span* span, Span* added) noexcept {
  added->previous = span;
  added->next = span->next;
  added->linked = true;
  if (span->next != nullptr) {
    span->next->previous = added;
  } else {
    last_ = added;
  }
  span->next = added;
}

Span* OwnershipMap::take_anew(std::uint64_t begin, std::uint64_t end, Block* owner, Span* hint, Release* former,
                              Block** in_the_way) noexcept {
  *in_the_way = nullptr;
  Span* const head = find(begin, hint);
  if (head == nullptr || end > bytes_ || begin >= end) return nullptr;
  if (head->owner != nullptr) {
    *in_the_way = head->owner;
    return nullptr;
  }
  if (head->begin == begin && head->end == end) {
    former->add(head->release);
    head->owner = owner;
    owned_bytes_ += end - begin;
    return head;
  }
  Release uses = head->release;
  Span* tail = head;
  while (tail->end < end) {
    tail = tail->next;
    if (tail->owner != nullptr) {
      *in_the_way = tail->owner;
      return nullptr;
    }
    uses.add(tail->release);
  }
  // What is left over on either side keeps its span where there are two; only a span that is cut out of the middle of
  // one needs more of them.
  const bool keeps_left = head->begin < begin;
  const bool keeps_right = tail->end > end;
  Span* taken = head;
  Span* right = nullptr;
  if (keeps_left) {
    taken = head->next;
    if (head == tail || (keeps_right && taken == tail)) {
      taken = make();
      if (taken == nullptr) return nullptr;
      taken->linked = false;
    }
  }
  if (keeps_right && head == tail) {
    right = make();
    if (right == nullptr) {
      if (taken != head) drop(taken);
      return nullptr;
    }
    right->begin = end;
    right->end = head->end;
    right->owner = nullptr;
    right->release = head->release;
    insert_behind(head, right);
  }
  if (keeps_left) {
    head->end = begin;
    if (!taken->linked) insert_behind(head, taken);
  }
  taken->begin = begin;
  taken->end = end;
  taken->owner = owner;
  for (Span* span = taken->next; span != nullptr && span->begin < end;) {
    if (span->end > end) {
      span->begin = end;
      break;
    }
    Span* const next = span->next;
    taken->next = next;
    if (next != nullptr) {
      next->previous = taken;
    } else {
      last_ = taken;
    }
    drop(span);
    span = next;
  }
  former->add(uses);
  owned_bytes_ += end - begin;
  // Where the next search from here begins.
  if (head != hint) coarse_[static_cast<std::size_t>(begin >> kCoarseShift)] = taken;
  return taken;
}

void OwnershipMap::add_release(std::uint64_t begin, std::uint64_t end, const Release& release) noexcept {
  for (Span* span = find(begin, nullptr); span != nullptr && span->begin < end; span = span->next) {
    // A span that reaches beyond is held back as a whole: more than necessary, never less.
    if (span->owner == nullptr) span->release.add(release);
  }
}

bool OwnershipMap::find_free(std::uint64_t bytes, std::uint64_t* begin, std::uint64_t* end) noexcept {
  std::uint64_t best = ~std::uint64_t{0};
  Span* span = searched_ != nullptr && searched_->linked ? searched_ : first_;
  std::size_t walked = 0;
  for (; span != nullptr && walked < kMostWalked; ++walked) {
    if (span->owner != nullptr) {
      span = span->next;
      continue;
    }
    const std::uint64_t from = span->begin;
    std::uint64_t to = span->end;
    for (span = span->next; span != nullptr && span->owner == nullptr; span = span->next, ++walked) to = span->end;
    if (to - from >= bytes && to - from < best) {
      best = to - from;
      *begin = from;
      *end = to;
      if (best == bytes) return true;
    }
  }
  searched_ = span;
  return best != ~std::uint64_t{0};
}

Release OwnershipMap::last_uses() const noexcept {
  Release all;
  for (const Span* span = first_; span != nullptr; span = span->next) {
    if (span->owner == nullptr) all.add(span->release);
  }
  return all;
}

bool OwnershipMap::consistent() const noexcept {
  std::uint64_t at = 0;
  std::uint64_t owned = 0;
  const Span* previous = nullptr;
  for (const Span* span = first_; span != nullptr; span = span->next) {
    if (!span->linked || span->begin != at || span->end <= span->begin || span->previous != previous) return false;
    if (span->owner != nullptr) owned += span->end - span->begin;
    at = span->end;
    previous = span;
  }
  return at == bytes_ && previous == last_ && owned == owned_bytes_;
}

}  // namespace memopt::agent
