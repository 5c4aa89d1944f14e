#include "tools/memoptctl/status/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

// A /proc of the test's own.
class Processes : public testing::Test {
 protected:
  void SetUp() override {
    proc_ = fs::path(testing::TempDir()) / ("proc-" + std::to_string(::getpid()));
    fs::remove_all(proc_);
    fs::create_directories(proc_ / "self/ns");
    fs::create_symlink("net:[1]", proc_ / "self/ns/net");
  }
  void TearDown() override { fs::remove_all(proc_); }

  void add(int pid, std::string_view maps, std::string_view command = "prog\0", std::string_view environment = "",
           const char* network = "net:[1]") {
    const fs::path folder = proc_ / std::to_string(pid);
    fs::create_directories(folder / "ns");
    std::ofstream(folder / "maps") << maps;
    std::ofstream(folder / "cmdline") << command;
    std::ofstream(folder / "environ") << environment;
    std::ofstream(folder / "stat") << pid << " (a ) S 9 (b) S 77 1 1\n";
    fs::create_symlink(network, folder / "ns/net");
  }
  Scan scan() const { return scan_processes(proc_.string()); }

  fs::path proc_;
};

constexpr std::string_view kMemopt = "7f00-7f01 r-xp 00000000 08:01 1   /opt/m/lib/libmemopt.so\n";
constexpr std::string_view kDriver =
    "7f02-7f03 r-xp 00000000 08:01 2   /usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06\n";
constexpr std::string_view kDeleted = "7f00-7f01 r-xp 00000000 08:01 1   /opt/m/lib/libmemopt.so.0.1.0 (deleted)\n";
constexpr std::string_view kNeither =
    "7f00-7f01 r-xp 00000000 08:01 1   /opt/libmemopt.so.old\n"
    "7f02-7f03 rw-p 00000000 00:00 0   [heap]\n"
    "7f04-7f05 rw-p 00000000 00:00 0 \n"
    "7f06-7f07 r--p 00000000 08:01 3   /opt/libcudart.so.13\n";

TEST_F(Processes, OthersAndThoseThatAreGoneAreOutOfReach) {
  add(30, kNeither);
  const auto why = [this](int pid, uid_t user) { return why_out_of_reach(pid, user, proc_.string()); };
  EXPECT_EQ(why(30, ::getuid()), "");
  EXPECT_EQ(why(30, 0), "");
  EXPECT_NE(why(30, ::getuid() + 1).find("another user's"), std::string::npos);
  EXPECT_EQ(why(31, 0), "there is no such process");
}

TEST_F(Processes, FindsThoseWithMemopt) {
  add(30, std::string(kMemopt) + std::string(kDriver), "python3\0train.py\0"sv);
  add(20, kDeleted);
  add(10, kDriver);
  add(11, kNeither);
  add(12, "");
  fs::create_directories(proc_ / "12x");  // no number
  fs::create_directories(proc_ / "13");   // gone meanwhile
  const Scan found = scan();
  ASSERT_EQ(found.processes.size(), 2u);
  EXPECT_EQ(found.processes[0].pid, 20);
  EXPECT_FALSE(found.processes[0].driver);
  EXPECT_EQ(found.processes[1].pid, 30);
  EXPECT_TRUE(found.processes[1].driver);
  EXPECT_EQ(found.processes[1].command, "python3 train.py");
  EXPECT_EQ(found.processes[1].parent, 77);
  EXPECT_EQ(found.unreadable, 0u);
}

TEST_F(Processes, CleansTheCommand) {
  add(30, kMemopt, "a\x1b[31mb\0\n\0"sv);
  add(31, kMemopt, "");
  const Scan found = scan();
  EXPECT_EQ(found.processes.at(0).command, "a?[31mb ?");
  EXPECT_EQ(found.processes.at(1).command, "?");
}

TEST_F(Processes, KnowsWhyThereMayBeNoSocket) {
  add(30, kMemopt, "a", "HOME=/\0MEMOPT_DISABLE=1\0A=b\0"sv);
  add(31, kMemopt, "a", "XMEMOPT_DISABLE=1\0MEMOPT_DISABLE=0\0"sv);
  add(32, kMemopt, "a", "", "net:[2]");
  const Scan found = scan();
  EXPECT_TRUE(found.processes.at(0).disabled);
  EXPECT_FALSE(found.processes.at(1).disabled);
  EXPECT_FALSE(found.processes.at(1).other_network_namespace);
  EXPECT_TRUE(found.processes.at(2).other_network_namespace);
}

TEST_F(Processes, CountsThoseThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  add(30, kMemopt);
  fs::permissions(proc_ / "30/maps", fs::perms::none);
  EXPECT_EQ(scan().unreadable, 1u);
  EXPECT_TRUE(scan().processes.empty());
}

TEST_F(Processes, SurvivesWithoutProc) {
  fs::remove_all(proc_);
  EXPECT_TRUE(scan().processes.empty());
  EXPECT_EQ(command_of(30, proc_.string()), "?");
}

TEST(RealProc, HasThisProcess) {
  EXPECT_NE(command_of(::getpid()).find("memoptctl_test"), std::string::npos);
  for (const Process& process : scan_processes().processes) EXPECT_NE(process.pid, ::getpid());
}

}  // namespace
}  // namespace memopt::tools
