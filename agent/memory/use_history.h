// When a block is used next, from when it was used before.
//
// Programs that repeat iterations use a block at the same distances each time, counted in operations. So the distances
// of its last uses are kept. Where they have come in the same order before, the next one is what came then: of all
// earlier places, the one is taken whose distances agree with the latest for longest (as in prediction by partial
// matching, Cleary and Witten, 1984, of the longest context). With these, what is used last of all can leave (Belady, A
// study of replacement algorithms, 1966), where an order by last uses has all leave in turn that a loop uses.
//
// Not thread-safe: guarded by the arena's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace memopt::agent {

class UseHistory {
 public:
  void clear() noexcept { count_ = next_ = 0; }

  // It is used, so many operations after the last time. `was_away`: it had left; what was expected by then and is far
  // from true is not relied upon again soon.
  void note(std::uint64_t distance, bool was_away) noexcept {
    if (was_away && next_ != 0 && next_ != kUnknown && distance / 3 < next_ / 4) count_ = 0;
    distances_[count_ % kKept] = static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, kLongest));
    // What was overwritten is not looked at: only that there were kKept.
    if (++count_ == 4 * kKept) count_ = 3 * kKept;
    next_ = 0;
  }

  // So many operations after its last use; 0: not known.
  std::uint64_t next() noexcept {
    if (next_ == 0) next_ = find_next();
    return next_ == kUnknown ? 0 : next_;
  }

  // What the order of leaving goes by, `age` operations after its last use: the larger, the sooner it leaves. Of
  // what nothing is known is expected that it takes as long again as it has taken; what is overdue is no longer known.
  std::uint64_t until_next(std::uint64_t age) noexcept {
    const std::uint64_t distance = next();
    return distance == 0 || age > distance + distance / 8 ? age : distance - std::min(age, distance);
  }

 private:
  static constexpr std::uint32_t kKept = 16;
  static constexpr std::uint64_t kLongest = 0xffff'fff0;
  static constexpr std::uint32_t kUnknown = 0xffff'ffff;

  // The i-th last one, from 1.
  std::uint32_t last(std::uint32_t i) const noexcept { return distances_[(count_ - i) % kKept]; }
  // Operations that began again are counted again.
  static bool are_alike(std::uint32_t a, std::uint32_t b) noexcept {
    return std::max(a, b) - std::min(a, b) <= std::max(a, b) / 16;
  }

  std::uint32_t find_next() const noexcept {
    const std::uint32_t there = std::min(count_, kKept);
    std::uint32_t longest = 0;
    std::uint32_t next = kUnknown;
    for (std::uint32_t back = 1; back < there; ++back) {
      std::uint32_t length = 0;
      while (back + length < there && are_alike(last(1 + length), last(1 + length + back))) ++length;
      if (length <= longest) continue;
      longest = length;
      next = last(back);
    }
    return next;
  }

  std::uint32_t distances_[kKept] = {};
  std::uint32_t count_ = 0;  // of the ring
  std::uint32_t next_ = 0;   // 0: to be found
};

}  // namespace memopt::agent
