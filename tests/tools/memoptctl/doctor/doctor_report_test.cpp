#include "tools/memoptctl/doctor/doctor_report.h"

#include <gtest/gtest.h>

#include "planner/json/tree.h"

namespace memopt::tools {
namespace {

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
