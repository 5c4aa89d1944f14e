// What doctor's checks read of the system, without a program.
#include "tools/memoptctl/doctor/checks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memopt::tools {
namespace {

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

TEST(OptionsOfTheEnvironment, AreShownOrComplainedOf) {
  const char* const environment[] = {"HOME=/",
                                     "MEMOPT_LIMIT=8GB",
                                     "MEMOPT_HOST_LIMIT=64GiB",
                                     "MEMOPT_LOG=info",
                                     "MEMOPT_LIMTI=1",
                                     "MEMOPT_LOG_FILE=a\033b",
                                     nullptr};
  Report report;
  check_options(report, environment);
  ASSERT_EQ(report.findings().size(), 3u);
  EXPECT_EQ(report.count(Verdict::kWarning), 2u);
  EXPECT_EQ(report.findings()[0].text,
            "MEMOPT_LIMIT=8GB: expected a size (8GiB, 500M) or a part of the device (60%); it is ignored");
  EXPECT_FALSE(report.findings()[0].remedy.empty());
  EXPECT_EQ(report.findings()[1].text, "MEMOPT_LIMTI is not an option of memopt; it is ignored");
  EXPECT_TRUE(report.findings()[1].remedy.starts_with("did you mean MEMOPT_LIMIT? "));
  EXPECT_EQ(report.findings()[2].verdict, Verdict::kOk);
  EXPECT_EQ(report.findings()[2].text,
            "set in the environment: MEMOPT_HOST_LIMIT=64GiB, MEMOPT_LOG=info, MEMOPT_LOG_FILE=a?b");
}

TEST(OptionsOfTheEnvironment, NoneIsNoNews) {
  Report report;
  const char* const environment[] = {"HOME=/", "MEMOPTIMAL=1", nullptr};
  check_options(report, environment);
  check_options(report, nullptr);
  EXPECT_TRUE(report.findings().empty());
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

}  // namespace
}  // namespace memopt::tools
