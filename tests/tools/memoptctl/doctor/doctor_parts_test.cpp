// The parts of doctor that need no program: what it reads of the system, and how it reports.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tools/memoptctl/doctor/doctor_report.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/run/limited_process.h"

namespace memopt::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};

TEST(Planner, WireVersionIsInTheSocketsName) {
  const std::string listing =
      "Num RefCount Protocol Flags Type St Inode Path\n"
      "0: 2 0 10000 0005 01 11 @memoptd-1000-7-doctor-55\n"
      "0: 2 0 10000 0005 01 12 @memoptd-1000-1\n"
      "0: 2 0 10000 0005 01 13 @memoptd-10-3-doctor-5\n";
  EXPECT_EQ(planner_wire_version(listing, 1000, "doctor-55"), 7);
  EXPECT_EQ(planner_wire_version(listing, 1000, "doctor-5"), -1);
  EXPECT_EQ(planner_wire_version(listing, 10, "doctor-5"), 3);
  EXPECT_EQ(planner_wire_version(listing, 0, "doctor-5"), -1);
  EXPECT_EQ(planner_wire_version("", 0, "x"), -1);
  EXPECT_EQ(planner_wire_version(" @memoptd-0-99999999999-x\n @memoptd-0-", 0, "x"), -1);
}

TEST(Program, InterpretersOfScripts) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(script_interpreter("#!/bin/sh"), (Words{"/bin/sh"}));
  EXPECT_EQ(script_interpreter("#! /usr/bin/env -S python3 -u"), (Words{"/usr/bin/env", "-S", "python3", "-u"}));
  EXPECT_EQ(script_interpreter("#!"), Words{});
  EXPECT_EQ(script_interpreter("echo"), Words{});
}

TEST(Program, IsFoundByPath) {
  EXPECT_EQ(find_program("sh", "/nonexistent:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_program("/", ""), "");
  EXPECT_EQ(find_program("no-such-program", "/bin:/usr/bin"), "");
}

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

TEST(Report, CountsAndPrints) {
  Report report;
  report.add("driver", Verdict::kOk, "fine");
  report.add("vmm", Verdict::kProblem, "none\x1b[2J", "buy one");
  EXPECT_EQ(report.count(Verdict::kProblem), 1u);
  EXPECT_EQ(report.count(Verdict::kWarning), 0u);
  const auto json = nlohmann::json::parse(report.json("1.2.3"));
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["findings"][1]["verdict"], "problem");
  EXPECT_EQ(json["findings"][1]["remedy"], "buy one");
  EXPECT_EQ(report.text().find('\x1b'), std::string::npos);
  EXPECT_NE(report.text().find("remedy: buy one"), std::string::npos);
}

}  // namespace
}  // namespace memopt::tools
