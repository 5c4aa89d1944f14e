#include "shm/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace memopt::shm {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

// A root with the files that memory_left() reads.
class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            ("memory_limit." + std::to_string(::getpid()) + "." + std::string(test->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_.string() + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void second(const std::string& group, const std::string& limit, const std::string& usage, const std::string& stat) {
    write("/sys/fs/cgroup" + group + "/memory.max", limit + "\n");
    write("/sys/fs/cgroup" + group + "/memory.current", usage + "\n");
    write("/sys/fs/cgroup" + group + "/memory.stat", stat);
  }
  MemoryLeft left() const { return memory_left(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(MemoryLimit, NothingIsLimitedWhereNothingCanBeRead) {
  EXPECT_EQ(left().bytes, kUnlimited);
  write("/proc/self/cgroup", "nonsense\n0:\n::::\n\n0::/gone\n3:memory:/gone\n");
  EXPECT_EQ(left().bytes, kUnlimited);
  EXPECT_EQ(left().file, "");
}

TEST_F(MemoryLimit, SecondVersion) {
  write("/proc/self/cgroup", "0::/user/job\n");
  second("/user/job", "max", "5000", "");
  EXPECT_EQ(left().bytes, kUnlimited);
  second("/user/job", "10000", "5000", "anon 1\ninactive_file 300\nactive_file 20\nfile 9999\n");
  EXPECT_EQ(left().bytes, 5320u);
  EXPECT_TRUE(left().file.ends_with("/sys/fs/cgroup/user/job/memory.max"));
}

TEST_F(MemoryLimit, WhatSlowsDownLimitsToo) {
  write("/proc/self/cgroup", "0::/job\n");
  second("/job", "max", "5000", "");
  write("/sys/fs/cgroup/job/memory.high", "9000\n");
  EXPECT_EQ(left().bytes, 4000u);
  EXPECT_TRUE(left().file.ends_with("/job/memory.high"));
  second("/job", "8000", "5000", "");
  EXPECT_EQ(left().bytes, 3000u);
  EXPECT_TRUE(left().file.ends_with("/job/memory.max"));
  write("/sys/fs/cgroup/job/memory.high", "max\n");
  EXPECT_EQ(left().bytes, 3000u);
}

TEST_F(MemoryLimit, GroupsAboveLimitToo) {
  write("/proc/self/cgroup", "0::/user/job\n");
  second("/user/job", "10000", "5000", "");
  second("/user", "7000", "6000", "");
  EXPECT_EQ(left().bytes, 1000u);
  // In a container: the mount is the group itself, whatever its path outside.
  second("", "600", "100", "");
  EXPECT_EQ(left().bytes, 500u);
}

TEST_F(MemoryLimit, BeyondTheLimitNothingIsLeft) {
  write("/proc/self/cgroup", "0::/job\n");
  second("/job", "1000", "5000", "inactive_file 30\n");
  EXPECT_EQ(left().bytes, 0u);
  // More of files than is used at all: read at different instants.
  second("/job", "1000", "500", "inactive_file 3000\n");
  EXPECT_EQ(left().bytes, 1000u);
}

TEST_F(MemoryLimit, FirstVersion) {
  write("/proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/a\n1:name=systemd:/a\n0::/a\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4096\n");
  write("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 7\n");
  EXPECT_GT(left().bytes, std::uint64_t{1} << 60);
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "100000\n");
  write("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 7\ntotal_inactive_file 96\n");
  EXPECT_EQ(left().bytes, 96000u);
}

TEST_F(MemoryLimit, NumbersAndNone) {
  write("/proc/self/cgroup", "0::/job\n");
  for (const char* const text : {"", "max", "-1", "12x", "18446744073709551616", " 1"}) {
    second("/job", text, "0", "");
    EXPECT_EQ(left().bytes, kUnlimited) << text;
  }
  second("/job", "0", "7", "");
  EXPECT_EQ(left().bytes, 0u);
}

TEST_F(MemoryLimit, TheGroupWithTheMemoryController) {
  const auto limited = [&](const std::string& group) {
    write("/sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes", "100\n");
    return left().bytes;
  };
  write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/b\n0::/c\n3:hugetlb,memory:/d:e\n");
  EXPECT_EQ(limited("/a"), kUnlimited);
  EXPECT_EQ(limited("/d:e"), 100u);
  write("/proc/self/cgroup", "4:memory:/b\n0::/c\n");
  EXPECT_EQ(left().bytes, kUnlimited);
  EXPECT_EQ(limited("/b"), 100u);
}

TEST_F(MemoryLimit, TheGroupThatLeavesLeastCounts) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/memory.max", "1000\n");
  write("/sys/fs/cgroup/a/memory.current", "300\n");
  write("/sys/fs/cgroup/memory.max", "5000\n");  // its use can't be read
  EXPECT_EQ(left().limit, 1000u);
  EXPECT_EQ(left().used, 300u);
  EXPECT_TRUE(left().file.ends_with("/a/memory.max"));
}

}  // namespace
}  // namespace memopt::shm
