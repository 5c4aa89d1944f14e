// Uses of several streams, one position a stream: what an operation must be behind, or what the host waits for.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "agent/order/streams.h"

namespace memopt::agent {

class UseSet {
 public:
  UseSet() noexcept {}  // not defaulted: `few_` is not cleared
  UseSet(UseSet&&) = default;
  UseSet& operator=(UseSet&&) = default;

  bool empty() const { return count_ == 0 && !everything_; }
  // Of any stream, beside those in the list.
  bool everything() const { return everything_; }
  void add_everything() noexcept { everything_ = true; }
  std::span<const StreamUse> uses() const {
    return many_.empty() ? std::span<const StreamUse>(few_, count_) : std::span<const StreamUse>(many_);
  }

  void add(StreamUse use) noexcept {
    StreamUse* const list = many_.empty() ? few_ : many_.data();
    for (std::size_t i = 0; i < count_; ++i) {
      if (list[i].slot != use.slot) continue;
      if (list[i].position < use.position) list[i] = use;
      return;
    }
    append(use);
  }
  // The stream is not in the set yet.
  void append(StreamUse use) noexcept {
    if (count_ < kFew) [[likely]] {
      few_[count_++] = use;
      return;
    }
    try {
      if (many_.empty()) many_.assign(few_, few_ + kFew);
      many_.push_back(use);
      ++count_;
    } catch (const std::bad_alloc&) {
      everything_ = true;  // there is no host memory for the list
    }
  }

 private:
  static constexpr std::size_t kFew = 8;

  std::size_t count_ = 0;
  bool everything_ = false;
  StreamUse few_[kFew];
  std::vector<StreamUse> many_;  // all of them, where there are more
};

}  // namespace memopt::agent
