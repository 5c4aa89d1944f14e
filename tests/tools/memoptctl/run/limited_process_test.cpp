#include "tools/memoptctl/run/limited_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

namespace memopt::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};

LimitedCommand shell(const std::string& text, milliseconds limit = kLong) {
  LimitedCommand command{{"/bin/sh", "-c", text}};
  command.limit = limit;
  return command;
}

TEST(LimitedProcess, OutputAndExitCode) {
  LimitedProcess process(shell("echo out; echo err >&2; cat; exit 7"));
  process.finish();
  EXPECT_EQ(process.output(), "out\n");
  EXPECT_EQ(process.errors(), "err\n");
  EXPECT_EQ(process.exit_code(), 7);
  EXPECT_FALSE(process.ok());
  EXPECT_EQ(process.how_it_ended(), "exit code 7");
}

TEST(LimitedProcess, DeathBySignal) {
  LimitedProcess process(shell("kill -SEGV $$"));
  process.finish();
  EXPECT_EQ(process.exit_code(), 128 + SIGSEGV);
  EXPECT_TRUE(process.how_it_ended().starts_with("killed by signal 11"));
}

TEST(LimitedProcess, ThatHangsIsEnded) {
  LimitedProcess process(shell("trap '' TERM INT HUP; echo begun; while :; do sleep 1000; done", milliseconds(300)));
  process.finish();
  EXPECT_TRUE(process.timed_out());
  EXPECT_NE(::kill(process.pid(), 0), 0) << "it is still there";
  EXPECT_EQ(process.how_it_ended(), "no answer within 1 s");
}

TEST(LimitedProcess, ThatLeavesItsOutputOpenIsNotWaitedFor) {
  LimitedProcess process(shell("sleep 1000 & echo done"));
  process.finish();
  EXPECT_EQ(process.output(), "done\n");
  EXPECT_TRUE(process.ok());
  ::kill(-process.pid(), SIGKILL);
}

TEST(LimitedProcess, EnvironmentIsAsWanted) {
  LimitedCommand command = shell("echo $A-$B-${HOME-none}");
  command.environment = {{"A", "1"}, {"HOME", std::nullopt}};
  LimitedProcess process(command);
  process.finish();
  EXPECT_EQ(process.output(), "1--none\n");
  command.command = {"/usr/bin/env"};
  command.empty_environment = true;
  LimitedProcess bare(command);
  bare.finish();
  EXPECT_EQ(bare.output(), "A=1\n");
}

TEST(LimitedProcess, ThatIsNotThere) {
  LimitedProcess process({{"/nonexistent/program"}});
  process.finish();
  EXPECT_EQ(process.start_error(), ENOENT);
  EXPECT_FALSE(process.ok());
}

TEST(LimitedProcess, LongOutputIsCutAtItsBeginning) {
  LimitedProcess process(shell("head -c 3000000 /dev/zero | tr '\\0' x; echo end"));
  process.finish();
  EXPECT_TRUE(process.output().ends_with("xend\n"));
  EXPECT_LE(process.output().size(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace memopt::tools
