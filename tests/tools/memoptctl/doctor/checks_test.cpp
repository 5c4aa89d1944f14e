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
