// Leaves nothing of a call of ours on the program's stack.
//
// Programs make the parameters of a launch on the stack, and members that they do not set are what calls before have
// left there. Our calls and the driver's hold addresses of blocks in their frames: later launches would name these
// blocks by accident, and other ones when memopt records than when it follows a plan. Where blocks may be away, each of
// these is brought back for nothing. So the stack below a hook's caller is cleared before the hook returns.
#pragma once

#include <cstddef>
#include <cstring>

namespace memopt::agent {

class CleanStack {
 public:
  // More than what launches are made of by frames that lie as deep as ours; less than what our own calls take now and
  // then, so that no stack is too small for it.
  static constexpr std::size_t kBytes = std::size_t{8} << 10;

  explicit CleanStack(bool wanted) noexcept : wanted_(wanted) {}
  ~CleanStack() {
    if (wanted_) [[unlikely]]
      clear();
  }
  CleanStack(const CleanStack&) = delete;
  CleanStack& operator=(const CleanStack&) = delete;

 private:
  [[gnu::noinline]] static void clear() noexcept {
    unsigned char dead[kBytes];
    explicit_bzero(dead, sizeof(dead));
  }

  const bool wanted_;
};

}  // namespace memopt::agent
