#include <gtest/gtest.h>

#include <string>

#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {
namespace {

constexpr pid_t kNobody = 0x3fffff;  // beyond any pid that is in use

Agent agent(pid_t pid, const std::string& status) {
  Agent made;
  made.pid = pid;
  made.status = nlohmann::json::parse(status);
  return made;
}

Process process(pid_t pid, bool driver = true) {
  Process made;
  made.pid = pid;
  made.command = "prog";
  made.memopt = true;
  made.driver = driver;
  return made;
}

TEST(Join, ShowsWhatTheAgentSays) {
  const auto rows = join({agent(kNobody, R"({"state": "passthrough", "reason": "counts", "executable": "/bin/x",
      "calls": {"total": 12}, "memory": {"live_bytes": 4096, "peak_bytes": 8192}, "stack_walker": {"kind": "libunwind"}})")},
                         {{process(kNobody)}, 0});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].command, "/bin/x");
  EXPECT_EQ(rows[0].state, "passthrough");
  EXPECT_EQ(rows[0].why, "counts");
  EXPECT_EQ(rows[0].calls, 12u);
  EXPECT_EQ(rows[0].bytes_live, 4096u);
  EXPECT_EQ(rows[0].bytes_live_peak, 8192u);
  EXPECT_EQ(rows[0].stack_walker, "libunwind");
  EXPECT_TRUE(rows[0].problems.empty());
}

TEST(Join, SurvivesMembersOfTheWrongType) {
  const auto rows = join({agent(kNobody, R"({"state": 3, "calls": [1], "memory": {"live_bytes": -5, "peak_bytes": 1.5},
      "stack_walker": "x", "problems": [{"code": "bypass"}, 7, {"text": "a\u001bb"}]})")},
                         {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].state, "");
  EXPECT_EQ(rows[0].calls, std::nullopt);
  EXPECT_EQ(rows[0].bytes_live, std::nullopt);
  EXPECT_EQ(rows[0].bytes_live_peak, std::nullopt);
  EXPECT_EQ(rows[0].problems, (std::vector<std::string>{"bypass", "", "a?b"}));
}

TEST(Join, NoCallSeenIsAProblem) {
  EXPECT_EQ(join({agent(kNobody, R"({"calls": {"total": 0}})")}, {})[0].problems.size(), 1u);
  const auto rows = join({}, {{process(5)}, 0});
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].problems.size(), 1u);
  EXPECT_NE(rows[0].problems[0].find("attached, but no call seen"), std::string::npos);
}

TEST(Join, WhatAFrameworksOwnAllocatorWouldHoldStandsBesideWhatIsHeld) {
  const std::string plan =
      R"("plan": {"footprint": 1331439862}, "frameworks": [{"name": "PyTorch", "text": "set", "visible": true)";
  EXPECT_EQ(
      join({agent(kNobody, "{" + plan + R"(, "route": "async", "reserved": 1513975972}]})")}, {})[0].frameworks,
      (std::vector<std::string>{
          "PyTorch: set", "PyTorch (async): its caching allocator would have reserved 1.4 GiB; memopt holds 1.2 GiB"}));
  for (const char* unknown :
       {R"(, "route": "async", "reserved": null}]})", R"(, "route": null, "reserved": 5}]})", "}]}"}) {
    EXPECT_EQ(join({agent(kNobody, "{" + plan + unknown)}, {})[0].frameworks, std::vector<std::string>{"PyTorch: set"});
  }
}

TEST(Join, ProcessesWithoutADriverAreNoNews) { EXPECT_TRUE(join({}, {{process(5, false)}, 0}).empty()); }

TEST(Join, KnowsHarmlessSilence) {
  Process off = process(5);
  off.disabled = true;
  Process child = process(6);
  child.parent = kNobody;
  const auto rows = join({agent(kNobody, R"({"calls": {"total": 1}})")}, {{off, child}, 0});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].state, "disabled");
  EXPECT_TRUE(rows[0].problems.empty());
  EXPECT_EQ(rows[1].state, "idle");
  EXPECT_TRUE(rows[1].problems.empty());
}

TEST(Join, SaysWhyAnAgentDidNotAnswer) {
  Agent silent;
  silent.pid = kNobody;
  silent.error = "it did not answer in time";
  Process contained = process(5);
  contained.other_network_namespace = true;
  const auto rows = join({silent}, {{contained}, 0});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NE(rows[0].problems.at(0).find("another network namespace"), std::string::npos);
  EXPECT_EQ(rows[1].problems.at(0), "no status: it did not answer in time");
}

TEST(Join, ReadsThePlan) {
  const auto rows = join({agent(kNobody, R"({"state": "deviating", "calls": {"total": 5}, "memory": {"peak_bytes": 9},
      "plan": {"iterations": 4, "iteration_at_live": 5, "footprint": 4096, "peak_load": 2048, "ratio": 2.0004,
               "deviations": 3, "note": "n\u001b", "planner_reason": "p", "dropped_events": 7}})")},
                         {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].iteration, 9u);
  EXPECT_EQ(rows[0].footprint, 4096u);
  EXPECT_EQ(rows[0].peak_load, 2048u);
  EXPECT_EQ(rows[0].deviations, 3u);
  EXPECT_EQ(rows[0].ratio, "2.000");
  ASSERT_EQ(rows[0].why_not.size(), 3u);
  EXPECT_EQ(rows[0].why_not[0], "n?");
  EXPECT_EQ(rows[0].why_not[1], "p");
  EXPECT_NE(rows[0].why_not[2].find("7 events were dropped"), std::string::npos);
  EXPECT_TRUE(rows[0].problems.empty());
}

TEST(Join, SaysAReasonOnce) {
  const char* text = R"({"plan": {"note": "no connection", "planner_reason": "no connection"}})";
  EXPECT_EQ(join({agent(kNobody, text)}, {}).at(0).why_not, std::vector<std::string>{"no connection"});
}

TEST(Join, SurvivesAPlanOfTheWrongType) {
  for (const char* plan : {"3", "[]", "null", R"({"iterations": "x", "ratio": "1.0", "footprint": -1, "note": 5})",
                           R"({"iterations": 1.5, "ratio": 1e308, "deviations": [1], "dropped_events": {}})"}) {
    const auto rows =
        join({agent(kNobody, (std::string(R"({"calls": {"total": 1}, "plan": )") + plan + "}").c_str())}, {});
    ASSERT_EQ(rows.size(), 1u) << plan;
    EXPECT_EQ(rows[0].iteration, std::nullopt) << plan;
    EXPECT_EQ(rows[0].footprint, std::nullopt) << plan;
    EXPECT_EQ(rows[0].deviations, std::nullopt) << plan;
    EXPECT_TRUE(rows[0].why_not.empty()) << plan;
    EXPECT_LE(rows[0].ratio.size(), 16u) << plan;
  }
}

std::vector<std::string> swaps_of(const std::string& swaps) {
  const auto rows = join({agent(kNobody, R"({"calls": {"total": 1}, "swaps": )" + swaps + "}")}, {});
  EXPECT_TRUE(rows.at(0).problems.empty()) << swaps;
  return rows.at(0).swaps;
}

TEST(Join, ReadsHowALimitIsKept) {
  EXPECT_EQ(swaps_of(R"({"limit": 6442450944, "held": 6421479424, "held_peak": 6442450944, "beyond": 0,
      "beyond_why": "", "away": 3435973836, "host": 4294967296, "copied_out": 128849018880,
      "copied_in": 127775277056, "swapped_out": 61440, "swapped_in": 60928, "pinned": 3, "pinned_bytes": 12582912,
      "pinned_why": "3 by\u001b so", "unscanned": "", "note": ""})"),
            (std::vector<std::string>{"limit 6.00 GiB: 5.98 GiB held, 3.20 GiB away; 120 GiB out, 119 GiB in; 3 blocks "
                                      "(12.0 MiB) may not leave: 3 by? so"}));
  EXPECT_EQ(
      swaps_of(R"({"limit": 1047552, "held": 0, "away": 512, "copied_out": 10480517, "copied_in": 104857599,
      "pinned": 1, "pinned_bytes": 512, "beyond": 2097152, "beyond_why": "what is in\u001b use",
      "note": "no\u001b room", "unscanned": "no kernel"})"),
      (std::vector<std::string>{"limit 1023 KiB: 0 B held, 512 B away; 9.99 MiB out, 100 MiB in; 1 block (512 B) "
                                "may not leave",
                                "the limit was passed by 2.00 MiB at most: what is in? use", "nothing leaves: no? room",
                                "addresses that kernels store in device memory are not looked for: no kernel"}));
  EXPECT_EQ(swaps_of(R"({"limit": 1048576, "device_full": true, "held": 1048576, "away": 0, "copied_out": 0,
      "copied_in": 0})"),
            (std::vector<std::string>{"device full at 1.00 MiB: 1.00 MiB held, 0 B away; 0 B out, 0 B in"}));
  // What an agent leaves out is not made up.
  EXPECT_EQ(swaps_of(R"({"limit": 1048576, "beyond": 1024})"),
            (std::vector<std::string>{"limit 1.00 MiB: - held, - away; - out, - in",
                                      "the limit was passed by 1.00 KiB at most"}));
}

TEST(Join, SurvivesSwapsOfTheWrongType) {
  for (const char* swaps :
       {"3", "[]", "null", "{}", R"({"limit": "8GiB", "note": "n"})", R"({"limit": -1, "beyond": 5})"}) {
    EXPECT_TRUE(swaps_of(swaps).empty()) << swaps;
  }
  EXPECT_EQ(swaps_of(R"({"limit": 1, "held": [], "beyond": 1.5, "beyond_why": "b", "pinned": "x", "note": {}})"),
            (std::vector<std::string>{"limit 1 B: - held, - away; - out, - in"}));
}

TEST(Join, KeepsTheWholeAnswer) {
  const auto rows = join({agent(kNobody, R"({"calls": {"total": 1}, "swaps": {"limit": 7, "more": [1]}})")}, {});
  EXPECT_EQ(rows.at(0).raw.at("swaps"), nlohmann::json::parse(R"({"limit": 7, "more": [1]})"));
}

TEST(Table, AlignsItsColumns) {
  StatusRow first;
  first.pid = 7;
  first.command = "größe";
  first.state = "passthrough";
  first.why = "counts";
  first.calls = 1234567;
  first.bytes_live = 64u << 20;
  StatusRow second;
  second.pid = 123456;
  second.command = "a program";
  second.state = "no call";
  second.problems = {"attached, but no call seen"};
  StatusRow third;
  third.pid = 8;
  third.command = "train";
  third.state = "planned";
  third.iteration = 12;
  third.bytes_live_peak = 3u << 20;
  third.peak_load = 2u << 20;
  third.footprint = 4u << 20;
  third.ratio = "2.000";
  third.deviations = 1;
  third.swaps = {"limit 4.00 MiB: 4.00 MiB held"};
  third.why_not = {"the iteration is short"};
  EXPECT_EQ(table({first, second, third}),
            "   PID  COMMAND    STATE        ITERATION    CALLS      LIVE  PEAK LOAD  FOOTPRINT  RATIO  DEVIATIONS  "
            "STACK WALKER\n"
            "     7  größe      passthrough          -  1234567  64.0 MiB          -          -      -           -  -\n"
            "        counts\n"
            "123456  a program  no call              -        -         -          -          -      -           -  -\n"
            "        problem: attached, but no call seen\n"
            "     8  train      planned             12        -         -    2.0 MiB    4.0 MiB  2.000           1  -\n"
            "        limit 4.00 MiB: 4.00 MiB held\n"
            "        why: the iteration is short\n");
}

}  // namespace
}  // namespace memopt::tools
