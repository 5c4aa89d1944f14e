#include "tools/memoptctl/metrics/open_metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace memopt::tools {
namespace {

StatusRow row(pid_t pid, const std::string& command, const char* answer) {
  StatusRow made;
  made.pid = pid;
  made.command = command;
  made.state = "planned";
  made.raw = nlohmann::json::parse(answer);
  return made;
}

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(OpenMetrics, SaysWhatTheAnswerHas) {
  const std::string text = open_metrics(
      {{row(7, "/usr/bin/python3 train.py", R"({"attached_seconds": 2.5, "calls": {"total": 18446744073709551615},
      "plan": {"footprint": 4096, "own_ns_per_call": 50, "ratio": null}, "swaps": {"copied_out": 5, "copied_in": 6}})")},
       0});
  EXPECT_TRUE(has(text, R"(memopt_attached_seconds{pid="7",program="python3"} 2.5)")) << text;
  EXPECT_TRUE(has(text, R"(memopt_calls_total{pid="7",program="python3"} 18446744073709551615)")) << "not rounded";
  EXPECT_TRUE(has(text, R"(memopt_footprint_bytes{pid="7",program="python3"} 4096)"));
  EXPECT_TRUE(has(text, R"(memopt_own_seconds_per_call{pid="7",program="python3"} 5e-08)")) << text;
  EXPECT_TRUE(has(text, R"(memopt_copied_bytes_total{pid="7",program="python3",direction="out"} 5)"));
  EXPECT_TRUE(has(text, R"(memopt_copied_bytes_total{pid="7",program="python3",direction="in"} 6)"));
  EXPECT_TRUE(has(text, R"(memopt_state{pid="7",program="python3",memopt_state="planned"} 1)"));
  EXPECT_TRUE(has(text, R"(memopt_state{pid="7",program="python3",memopt_state="deviating"} 0)"));
  EXPECT_EQ(text.find("memopt_limit_bytes{"), std::string::npos) << "what is not said is no number";
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(OpenMetrics, NothingOfAProcessBreaksTheText) {
  const std::string text =
      open_metrics({{row(7, "a\"b\\c\nd{} x", R"({"attached_seconds": -1, "calls": "many", "plan": [1],
      "swaps": {"copied_out": 1e300, "held": null}})"),
                     row(8, "", "null")},
                    3});
  EXPECT_TRUE(has(text, R"(memopt_problems{pid="7",program="a\"b\\c\nd{}"} 0)")) << text;
  EXPECT_EQ(text.find("memopt_attached_seconds{"), std::string::npos);
  EXPECT_TRUE(has(text, "memopt_processes 2"));
}

TEST(OpenMetrics, NoProcessIsAlsoAnAnswer) {
  const std::string text = open_metrics({});
  EXPECT_TRUE(has(text, "memopt_processes 0"));
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

}  // namespace
}  // namespace memopt::tools
