#include "agent/stacks/stack_walker.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>

#include "agent/stacks/readable_memory.h"

namespace memopt::agent {
namespace {

TEST(StackWalker, SaysWhatItUsesAndWhy) {
  const shm::StackWalkerStatus& status = stack_walker().status();
#ifdef __SANITIZE_THREAD__
  EXPECT_EQ(status.kind, "frame-pointers");
  return;
#endif
  void* const system = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  EXPECT_EQ(status.kind, system != nullptr ? "libunwind" : "frame-pointers");
  EXPECT_FALSE(status.detail.empty());
  if (system != nullptr) dlclose(system);
}

TEST(StackWalker, AFolderWithoutTheLibraryIsNoObstacle) {
  EXPECT_EQ(StackWalker("/nonexistent").status().kind, stack_walker().status().kind);
}

// What threads have that come while another one loads libunwind.
TEST(StackWalker, WithoutLibunwindThereAreFramePointers) {
  const StackWalker meanwhile;
  EXPECT_EQ(meanwhile.status().kind, "frame-pointers");
  EXPECT_FALSE(meanwhile.status().detail.empty());
  void* frames[8];
  EXPECT_GT(meanwhile.walk(frames, 8), 0);
  meanwhile.forget_code();
}

// Loaded globally, libunwind would take over exceptions.
TEST(StackWalker, ExceptionsAndGlobalSymbolsAreAsBefore) {
  stack_walker();
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "unw_backtrace"), nullptr);
  EXPECT_THROW(throw std::runtime_error("x"), std::runtime_error);
}

// Its pipe would take two numbers, and later be whatever file the program has under them.
TEST(StackWalker, TakesNoDescriptor) {
  const auto next = [] {
    const int descriptor = dup(0);
    close(descriptor);
    return descriptor;
  };
  const int before = next();
  void* frames[32];
  const int count = stack_walker().walk(frames, 32);
  EXPECT_GT(count, 0);
  EXPECT_EQ(next(), before);
  // What lies between is still told apart: a walk from here ends as it did.
  EXPECT_EQ(StackWalker("").walk(frames, 32), count);
  EXPECT_EQ(next(), before);
}

TEST(StackWalker, ReadableMemory) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  errno = 7;
  EXPECT_TRUE(is_readable(pages));
  EXPECT_TRUE(is_readable(pages + page - 1));
  EXPECT_FALSE(is_readable(pages + page));
  EXPECT_FALSE(is_readable(nullptr));
  EXPECT_FALSE(is_readable(reinterpret_cast<void*>(std::uintptr_t{1} << 62)));
  EXPECT_TRUE(is_readable(&page));
  EXPECT_EQ(errno, 7);
  munmap(pages, 2 * page);
}

}  // namespace
}  // namespace memopt::agent
