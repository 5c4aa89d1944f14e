#include "agent/recording/call_stacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "agent/recording/loaded_modules.h"
#include "agent/recording/recorder.h"
#include "agent/stacks/stack_walker.h"
#include "tests/agent/fake_link.h"

namespace memopt::agent {
namespace {

using shm::RecordKind;

class CallStacks : public testing::Test {
 protected:
  void SetUp() override {
    test::reset_link();
    test::read_records();
    start_recording(false);
  }
  void TearDown() override { stop_recording(); }
};

// As a hook: what calls it is the program.
[[gnu::noinline]] std::uint64_t hook() {
  const std::uint64_t hash = call_stack(__builtin_return_address(0));
  asm volatile("");  // no tail call
  return hash;
}
[[gnu::noinline]] std::uint64_t one_way() {
  const std::uint64_t hash = hook();
  asm volatile("" ::"r"(hash));
  return hash;
}
[[gnu::noinline]] std::uint64_t another_way() {
  const std::uint64_t hash = hook();
  asm volatile("nop" ::"r"(hash));
  return hash;
}
[[gnu::noinline]] std::uint64_t deep(int depth) {
  const std::uint64_t hash = depth == 0 ? hook() : deep(depth - 1);
  asm volatile("" ::"r"(hash));
  return hash;
}

// Each thread has the program's first call stack to ask for.
[[noreturn]] void ask_together() {
  constexpr int kThreads = 4, kWalks = 20;
  std::atomic<int> there{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k) {
    threads.emplace_back([&] {
      for (++there; there < kThreads;) {
      }
      void* frames[32];
      for (int walk = 0; walk < kWalks; ++walk) stack_walker().walk(frames, 32);
    });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(0);
}

// In processes of their own, which have none yet. Where each thread made one, some ended by SIGSEGV.
TEST(StackWalkerOfThreads, OneOfThemMakesIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "libunwind does not go with ThreadSanitizer";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kProcesses = 100;
  for (int i = 0; i < kProcesses; ++i) ASSERT_EXIT(ask_together(), testing::ExitedWithCode(0), "") << i;
}

TEST_F(CallStacks, TheSamePlaceHasTheSameHashAndIsWrittenOnce) {
  std::vector<std::uint64_t> hashes;
  for (int i = 0; i < 1000; ++i) hashes.push_back(one_way());
  for (const std::uint64_t hash : hashes) EXPECT_EQ(hash, hashes.front());
  EXPECT_NE(hashes.front(), 0u);
  const auto stacks = test::records_of_kind(test::read_records(), RecordKind::kStack);
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].view().as<shm::StackBody>().hash, hashes.front());
}

TEST_F(CallStacks, DifferentPlacesHaveDifferentHashes) {
  const std::uint64_t here = one_way();
  const std::uint64_t there = another_way();
  EXPECT_NE(here, there);
}

TEST_F(CallStacks, TheFirstFrameIsTheProgramsCall) {
  one_way();
  const auto records = test::read_records();
  const auto stacks = test::records_of_kind(records, RecordKind::kStack);
  ASSERT_EQ(stacks.size(), 1u);
  const std::uint64_t innermost = stacks[0].view().word_behind<shm::StackBody>(0);
  const auto function = reinterpret_cast<std::uint64_t>(&one_way);
  EXPECT_GT(innermost, function);
  EXPECT_LT(innermost, function + 200);
}

TEST_F(CallStacks, LongStacksAreCut) {
  if (stack_walker().status().kind != "libunwind") GTEST_SKIP() << "libunwind.so.8 is not installed";
  const std::uint64_t hash = deep(500);
  EXPECT_NE(hash, 0u);
  const auto stacks = test::records_of_kind(test::read_records(), RecordKind::kStack);
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].view().as<shm::StackBody>().frames, kMaxStackFrames);
}

TEST_F(CallStacks, ModulesAreWrittenBeforeTheStacksThatNeedThem) {
  one_way();
  const auto records = test::read_records();
  const auto modules = test::records_of_kind(records, RecordKind::kModule);
  const auto stacks = test::records_of_kind(records, RecordKind::kStack);
  ASSERT_FALSE(modules.empty());
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_LT(modules.back().view().header.sequence, stacks[0].view().header.sequence);
  bool has_program = false;
  bool has_libc = false;
  for (const auto& module : modules) {
    const auto view = module.view();
    const auto text = view.bytes_behind<shm::NameBody>(view.as<shm::NameBody>().length);
    const std::string path(reinterpret_cast<const char*>(text.data()), text.size());
    has_program |= path.starts_with("/proc/self/exe\n");
    has_libc |= path.find("/libc.so.6\n") != std::string::npos;
  }
  EXPECT_TRUE(has_program);
  EXPECT_TRUE(has_libc);
}

TEST_F(CallStacks, AnotherRecordingIsToldAgain) {
  const auto write = [] { one_way(); };
  write();
  EXPECT_EQ(test::records_of_kind(test::read_records(), RecordKind::kStack).size(), 1u);
  stop_recording();
  start_recording(false);
  write();
  const auto records = test::read_records();
  EXPECT_EQ(test::records_of_kind(records, RecordKind::kStack).size(), 1u);
  EXPECT_FALSE(test::records_of_kind(records, RecordKind::kModule).empty());
}

TEST_F(CallStacks, ThreadsAgree) {
  std::vector<std::uint64_t> hashes(8);
  const auto body = [&](std::size_t i) {
    for (int k = 0; k < 200; ++k) hashes[i] = one_way();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < hashes.size(); ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t hash : hashes) EXPECT_EQ(hash, hashes[0]);
  EXPECT_EQ(test::records_of_kind(test::read_records(), RecordKind::kStack).size(), 1u);
}

TEST_F(CallStacks, AnAddressThatTheWalkMissesStandsAlone) {
  const auto nowhere = reinterpret_cast<void*>(0x10);
  const std::uint64_t hash = call_stack(nowhere);
  EXPECT_NE(hash, 0u);
  const auto stacks = test::records_of_kind(test::read_records(), RecordKind::kStack);
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].view().as<shm::StackBody>().frames, 1u);
}

TEST(LoadedModules, PlacesAreRelative) {
  LoadedModules& list = modules();
  list.refresh();
  const auto address = reinterpret_cast<std::uint64_t>(&one_way);
  const ModulePlace place = list.place_of(address);
  const ModulePlace next = list.place_of(address + 1);
  EXPECT_NE(place.module, 0u);
  EXPECT_EQ(place.module, next.module);
  EXPECT_EQ(place.offset + 1, next.offset);
  const ModulePlace libc = list.place_of(reinterpret_cast<std::uint64_t>(&std::fopen));
  EXPECT_NE(libc.module, place.module);
  EXPECT_EQ(list.place_of(1).module, 0u);
  EXPECT_FALSE(list.refresh()) << "nothing was unloaded";
}

}  // namespace
}  // namespace memopt::agent
