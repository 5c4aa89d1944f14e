#include "tools/memoptctl/doctor/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/json/tree.h"
#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kLongestText = 600;

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "unknown";
}

void Report::add(std::string check, Verdict verdict, std::string text, std::string remedy) {
  findings_.push_back({std::move(check), verdict, printable(text, kLongestText), printable(remedy, kLongestText)});
}

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(findings_.begin(), findings_.end(),
                                                [&](const Finding& finding) { return finding.verdict == verdict; }));
}

std::string Report::text() const {
  std::size_t width = 0;
  for (const Finding& finding : findings_) width = std::max(width, finding.check.size());
  std::string text;
  for (const Finding& finding : findings_) {
    text += fmt::format("{:<8} {:<{}}  {}\n", to_string(finding.verdict), finding.check, width, finding.text);
    if (!finding.remedy.empty()) text += fmt::format("{:{}}remedy: {}\n", "", width + 11, finding.remedy);
  }
  return text + fmt::format("{} problems, {} warnings, {} unknown, {} ok\n", count(Verdict::kProblem),
                            count(Verdict::kWarning), count(Verdict::kUnknown), count(Verdict::kOk));
}

std::string Report::json(const std::string& version) const {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& finding : findings_) {
    all.push_back({{"check", finding.check},
                   {"verdict", to_string(finding.verdict)},
                   {"text", finding.text},
                   {"remedy", finding.remedy}});
  }
  const nlohmann::json document = {{"format", 1},
                                   {"version", version},
                                   {"findings", all},
                                   {"problems", count(Verdict::kProblem)},
                                   {"warnings", count(Verdict::kWarning)}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace memopt::tools
