// What `memoptctl doctor` found: a verdict for each thing that was looked at, with the remedy.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace memopt::tools {

enum class Verdict { kOk, kWarning, kProblem, kUnknown };

const char* to_string(Verdict verdict);

struct Finding {
  std::string check;  // stable, for programs: docs/doctor.md lists them
  Verdict verdict = Verdict::kUnknown;
  std::string text;
  std::string remedy;  // empty where there is nothing to do
};

class Report {
 public:
  void add(std::string check, Verdict verdict, std::string text, std::string remedy = "");
  const std::vector<Finding>& findings() const { return findings_; }
  std::size_t count(Verdict verdict) const;

  std::string text() const;
  std::string json(const std::string& version) const;

 private:
  std::vector<Finding> findings_;
};

}  // namespace memopt::tools
