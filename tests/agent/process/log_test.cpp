#include "agent/process/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace memopt::agent {
namespace {

std::string log_path() { return testing::TempDir() + "memopt-log-test-" + std::to_string(getpid()); }

// Before the first message: the options are read once. A variable that is none would be complained about.
const bool g_prepared = [] {
  unsetenv("MEMOPT_SHARED");
  return setenv("MEMOPT_LOG", "info", 1) == 0 && setenv("MEMOPT_LOG_FILE", log_path().c_str(), 1) == 0;
}();

TEST(Log, LevelsThatAreNotWantedAreNotWritten) {
  ASSERT_TRUE(g_prepared);
  EXPECT_TRUE(log_wants(LogLevel::kInfo));
  EXPECT_FALSE(log_wants(LogLevel::kDebug));
  EXPECT_FALSE(log_wants(LogLevel::kOff));
  log_write(LogLevel::kDebug, "not this one");
  log_write(LogLevel::kError, "but this one");
  std::ifstream file(log_path());
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "memopt[" + std::to_string(getpid()) + "] error: but this one\n");
}

// A child is made at any moment, also while other threads write: it can write itself, and comes to its end.
TEST(Log, AForkedChildWritesToo) {
  constexpr int kChildren = 200;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!over.load()) log(LogLevel::kInfo, "a thread writes {} of {}", std::string(300, 'x'), 17);
    });
  }
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // one that waits for a lock that is never given back is ended
      log(LogLevel::kInfo, "child {} writes", i);
      log_notice("a notice");
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (status != 0) break;
  }
  over.store(true);
  for (std::thread& thread : threads) thread.join();

  // No line is torn, and none is missing.
  const std::regex whole(
      "memopt\\[[0-9]+\\] info: (a thread writes x{300} of 17|child [0-9]+ writes)|memopt: a notice|"
      "memopt\\[[0-9]+\\] error: but this one");
  std::ifstream file(log_path());
  int children = 0;
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(std::regex_match(line, whole)) << line;
    children += line.find("] info: child ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(children, kChildren);
  std::remove(log_path().c_str());
}

}  // namespace
}  // namespace memopt::agent
