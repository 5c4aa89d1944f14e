#include "agent/recording/stack_walker.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <stdexcept>

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

// Loaded globally, libunwind would take over exceptions.
TEST(StackWalker, ExceptionsAndGlobalSymbolsAreAsBefore) {
  stack_walker();
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "unw_backtrace"), nullptr);
  EXPECT_THROW(throw std::runtime_error("x"), std::runtime_error);
}

}  // namespace
}  // namespace memopt::agent
