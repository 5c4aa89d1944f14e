#include "agent/process/clean_stack.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kAddress = 0x7123'4567'89AB'CDEF;
constexpr int kWords = 512;  // 4 KiB

// The compiler is not to see that these are never set, or never read.
[[gnu::noinline]] void leave_addresses() {
  std::uint64_t words[kWords];
  for (std::uint64_t& word : words) word = kAddress;
  asm volatile("" : : "r"(words) : "memory");
}

[[gnu::noinline]] int found_addresses() {
  std::uint64_t words[kWords];
  asm volatile("" : : "r"(words) : "memory");
  int count = 0;
  for (const std::uint64_t word : words) count += word == kAddress ? 1 : 0;
  return count;
}

[[gnu::noinline]] void call(bool wanted) {
  const CleanStack clean(wanted);
  leave_addresses();
}

TEST(CleanStack, HasNothingOfACallAfterwards) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer lays out frames of its own";
#endif
  call(false);
  ASSERT_GT(found_addresses(), kWords / 2) << "what a call leaves is found at all";
  call(true);
  EXPECT_EQ(found_addresses(), 0);
}

}  // namespace
}  // namespace memopt::agent
