#include "agent/process/host_room.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace memopt::agent {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A root with the files that are read.
class HostRoomTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            ("host_room." + std::to_string(::getpid()) + "." + std::string(test->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_.string() + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void memory(std::uint64_t all, std::uint64_t available) {
    write("/proc/meminfo", "MemTotal:       " + std::to_string(all >> 10) +
                               " kB\nMemFree:          12345 kB\nMemAvailable:   " + std::to_string(available >> 10) +
                               " kB\nBuffers:           1 kB\n");
  }
  void group(std::uint64_t limit, std::uint64_t used) {
    write("/proc/self/cgroup", "0::/job\n");
    write("/sys/fs/cgroup/job/memory.max", std::to_string(limit) + "\n");
    write("/sys/fs/cgroup/job/memory.current", std::to_string(used) + "\n");
  }
  void lock_at_most(const std::string& bytes) {
    write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units\n"
          "Max processes             7                    7                    processes\n"
          "Max locked memory         " +
              bytes +
              "    unlimited            bytes\n"
              "Max address space         unlimited            unlimited            bytes\n");
  }
  void capabilities(const std::string& hexadecimal) {
    write("/proc/self/status", "Name:\tx\nCapPrm:\tffffffffffffffff\nCapEff:\t" + hexadecimal + "\nCapBnd:\t0\n");
  }
  HostRoom room(std::uint64_t locked = 0) const { return host_room(locked, root_.c_str()); }

  std::filesystem::path root_;
};

TEST_F(HostRoomTest, AnEighthOfTheMemoryIsLeftAloneOrFourGigabytes) {
  memory(16 * kGiB, 10 * kGiB);
  EXPECT_EQ(room().bytes, 8 * kGiB);
  EXPECT_STREQ(room().bound, "the host's free memory");
  memory(512 * kGiB, 10 * kGiB);
  EXPECT_EQ(room().bytes, 6 * kGiB);
  memory(16 * kGiB, kGiB);
  EXPECT_EQ(room().bytes, 0u);
}

TEST_F(HostRoomTest, ThisMachine) {
  const HostRoom here = host_room(0);
  EXPECT_LT(here.bytes, std::uint64_t{1} << 60);
  EXPECT_STRNE(here.bound, "");
}

TEST_F(HostRoomTest, WithoutProcTheKernelIsAsked) {
  const std::uint64_t all = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * 4096;
  EXPECT_LT(room().bytes, all);
  // A kernel before 3.14 tells no MemAvailable; and lines that are no such thing.
  write("/proc/meminfo", "MemTotal: 1048576 kB\nNoMemAvailable: 1048576 kB\nMemAvailable: much\n");
  EXPECT_LT(room().bytes, all);
  EXPECT_STREQ(room().bound, "the host's free memory");
}

TEST_F(HostRoomTest, TheControlGroupLessASixteenth) {
  memory(64 * kGiB, 60 * kGiB);
  group(8 * kGiB, 4 * kGiB);
  EXPECT_EQ(room().bytes, 4 * kGiB - 4 * kGiB / 16);
  EXPECT_STREQ(room().bound, "the control group's limit");
  group(kGiB, 4 * kGiB);
  EXPECT_EQ(room().bytes, 0u);
  group(100 * kGiB, 0);
  EXPECT_EQ(room().bytes, 56 * kGiB);
  EXPECT_STREQ(room().bound, "the host's free memory");
}

TEST_F(HostRoomTest, ALimitOfLockedMemoryThatWasSet) {
  memory(64 * kGiB, 60 * kGiB);
  capabilities("0000000000000000");
  for (const char* const text : {"65536", "8388608", "unlimited"}) {
    lock_at_most(text);
    EXPECT_EQ(room(kGiB).bytes, 56 * kGiB) << "the kernel's default, or none: " << text;
  }
  lock_at_most(std::to_string(100 * kMiB));
  EXPECT_EQ(room().bytes, 100 * kMiB);
  EXPECT_STREQ(room().bound, "the limit of locked memory (ulimit -l)");
  EXPECT_EQ(room(99 * kMiB).bytes, kMiB);
  EXPECT_EQ(room(101 * kMiB).bytes, 0u);
  // CAP_IPC_LOCK is bit 14.
  capabilities("0000000000004000");
  EXPECT_EQ(room().bytes, 56 * kGiB);
  capabilities("ffffffffffffbfff");
  EXPECT_EQ(room().bytes, 100 * kMiB);
}

TEST_F(HostRoomTest, ErrnoIsKept) {
  errno = E2BIG;
  room();
  EXPECT_EQ(errno, E2BIG);
}

}  // namespace
}  // namespace memopt::agent
