// exhaustive_plans SEED COUNT LAYOUT: COUNT random tiny problems and the best plans for them, a line each: JSON with
// the problem and its plans as memopt-plan-1, and what the plans are said to cost. For tests that judge and try to beat
// them with tools that share no code with the search.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "planner/swap/files/plan_file.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"
#include "tests/planner/swap/exhaustive/tiny_problems.h"

namespace {

using nlohmann::json;
using namespace memopt::swap;

json file_of(const Problem& problem, Decisions decisions) {
  std::ostringstream text;
  write_plan({.problem = problem, .decisions = std::move(decisions), .comment = {}, .spelling = {}}, text);
  return json::parse(text.str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "expected SEED COUNT LAYOUT\n");
    return 2;
  }
  const bool layout = std::string(argv[3]) == "layout";
  testing::TinyProblems problems(std::stoull(argv[1]));
  for (std::uint64_t left = std::stoull(argv[2]); left > 0; --left) {
    Problem problem = problems.next(layout, layout ? 3000 : 300);
    if (!layout) problem.limit = *problem.limit / 3;
    json line = {{"problem", file_of(problem, {})}, {"plans", json::array()}};
    for (const auto& plan : testing::exhaustive(problem).plans) {
      line["plans"].push_back(
          {{"footprint", plan.footprint}, {"added_ns", plan.added_ns}, {"plan", file_of(problem, plan.decisions)}});
    }
    std::cout << line.dump() << '\n';
  }
}
