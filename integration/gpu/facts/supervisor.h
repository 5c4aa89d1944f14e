// Runs facts one after the other, each in a process of its own with a deadline, and keeps the answers in a file.
#pragma once

#include <string>
#include <vector>

#include "fact.h"

namespace facts {

struct Supervision {
  std::vector<const Fact*> chosen;
  std::string output = "facts.json";
  double limit = 120;  // seconds, all facts together
  bool small = false;
};

enum class Outcome { kDone, kNoDevice, kNotWritten };

// Also prints a line for each fact.
Outcome supervise(const Supervision& supervision);

}  // namespace facts
