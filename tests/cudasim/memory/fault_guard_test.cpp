#include "memory/fault_guard.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cudasim {
namespace {

// Two pages: the first may be written, the second may not be touched.
class FaultGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* got = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(got, MAP_FAILED);
    pages = static_cast<char*>(got);
    ASSERT_EQ(mprotect(pages + kSize / 2, kSize / 2, PROT_NONE), 0);
    bad = pages + kSize / 2;
  }
  void TearDown() override { munmap(pages, kSize); }

  static constexpr std::size_t kSize = 8192;
  char* pages = nullptr;
  volatile char* bad = nullptr;
};

TEST_F(FaultGuardTest, SaysNothingWhenNothingHappens) {
  int runs = 0;
  EXPECT_EQ(FaultGuard::run([&] { pages[0] = static_cast<char>(++runs); }), std::nullopt);
  EXPECT_EQ(runs, 1);
}

TEST_F(FaultGuardTest, GivesTheAddressAndEndsTheBody) {
  bool after = false;
  for (int i = 0; i < 3; ++i) {  // and again: the handler stays
    const auto fault = FaultGuard::run([&] {
      bad[5] = 1;
      after = true;
    });
    EXPECT_EQ(fault, reinterpret_cast<std::uintptr_t>(bad + 5));
  }
  EXPECT_FALSE(after);
}

TEST_F(FaultGuardTest, InnerRunsKeepTheirFaults) {
  bool went_on = false;
  const auto outer = FaultGuard::run([&] {
    EXPECT_EQ(FaultGuard::run([&] { bad[1] = 1; }), reinterpret_cast<std::uintptr_t>(bad + 1));
    went_on = true;
    bad[2] = 1;
  });
  EXPECT_TRUE(went_on);
  EXPECT_EQ(outer, reinterpret_cast<std::uintptr_t>(bad + 2));
}

TEST_F(FaultGuardTest, AnExceptionPassesAndTheGuardIsLeft) {
  EXPECT_THROW(FaultGuard::run([] { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_EQ(FaultGuard::run([&] { bad[3] = 1; }), reinterpret_cast<std::uintptr_t>(bad + 3));
}

TEST_F(FaultGuardTest, ThreadsAreApart) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(FaultGuard::run([&] { bad[t] = 1; }), reinterpret_cast<std::uintptr_t>(bad + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(FaultGuardTest, ABusErrorCountsToo) {
  const int file = memfd_create("short", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  void* got = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);  // behind the end of the file
  ASSERT_NE(got, MAP_FAILED);
  EXPECT_EQ(FaultGuard::run([&] { *static_cast<volatile char*>(got); }), reinterpret_cast<std::uintptr_t>(got));
  munmap(got, 4096);
  close(file);
}

// What happens outside of run() is somebody else's: each case in a process of its own.
using FaultGuardDeathTest = FaultGuardTest;

[[noreturn]] void leave(int code) { _exit(code); }

TEST_F(FaultGuardDeathTest, OutsideTheDefaultActionIsTaken) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    signal(SIGSEGV, SIG_DFL);
    static_cast<void>(FaultGuard::run([&] { bad[0] = 1; }));
    bad[0] = 1;
  };
  EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(FaultGuardDeathTest, ASignalThatWasSentIsNoFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    signal(SIGSEGV, SIG_DFL);
    static_cast<void>(FaultGuard::run([] { raise(SIGSEGV); }));
    leave(0);
  };
  EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(FaultGuardDeathTest, AnIgnoredSignalStaysIgnoredButAFaultKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    signal(SIGSEGV, SIG_IGN);
    static_cast<void>(FaultGuard::run([] {}));
    raise(SIGSEGV);
    bad[0] = 1;
    leave(0);
  };
  EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGSEGV), "");
}

volatile char* g_bad = nullptr;

TEST_F(FaultGuardDeathTest, AnEarlierHandlerGetsSignalInfoAndMask) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    g_bad = bad;
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    sigaddset(&action.sa_mask, SIGUSR1);
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      const bool right = signal == SIGSEGV && info->si_addr == const_cast<char*>(g_bad + 9) && context != nullptr &&
                         sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGSEGV) == 1;
      leave(right ? 42 : 1);
    };
    sigaction(SIGSEGV, &action, nullptr);
    static_cast<void>(FaultGuard::run([&] { bad[0] = 1; }));
    bad[9] = 1;
  };
  EXPECT_EXIT(die(), ::testing::ExitedWithCode(42), "");
}

sigjmp_buf g_back;

TEST_F(FaultGuardDeathTest, AnEarlierHandlerMayJumpOutAgainAndAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    struct sigaction action {};
    action.sa_handler = [](int) { siglongjmp(g_back, 1); };
    sigaction(SIGSEGV, &action, nullptr);
    static_cast<void>(FaultGuard::run([&] { bad[0] = 1; }));
    volatile int jumps = 0;
    if (sigsetjmp(g_back, 1) != 0) jumps = jumps + 1;
    if (jumps < 5) bad[0] = 1;
    leave(FaultGuard::run([&] { bad[0] = 1; }) ? 40 + jumps : 1);
  };
  EXPECT_EXIT(die(), ::testing::ExitedWithCode(45), "");
}

struct sigaction g_before;
volatile int g_order = 0;

// A handler that came after ours and hands on what is not its own: ours comes first again, each is asked once, and the
// end is the default action.
TEST_F(FaultGuardDeathTest, ALaterHandlerThatHandsOnDoesNotGoRound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto die = [&] {
    struct sigaction first {};
    first.sa_handler = [](int) { leave(g_order == 1 ? 43 : 1); };
    sigaction(SIGSEGV, &first, nullptr);
    static_cast<void>(FaultGuard::run([&] { bad[0] = 1; }));
    struct sigaction later {};
    later.sa_flags = SA_SIGINFO;
    later.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      g_order = g_order + 1;
      g_before.sa_sigaction(signal, info, context);
    };
    sigaction(SIGSEGV, &later, &g_before);
    if (!FaultGuard::run([&] { bad[0] = 1; })) leave(2);  // ours again, although the other was installed last
    if (g_order != 0) leave(3);
    bad[0] = 1;
    leave(4);
  };
  EXPECT_EXIT(die(), ::testing::ExitedWithCode(43), "");
}

}  // namespace
}  // namespace cudasim
