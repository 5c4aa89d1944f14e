// Settles questions about a GPU that no document answers, one process each, and writes the answers as JSON.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "driver.h"
#include "fact.h"
#include "supervisor.h"

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitNoDevice = 77;

constexpr const char* kUsage =
    "usage: facts [--output FILE] [--small] [--limit SECONDS] [--only NAME]... | --list\n"
    "\n"
    "  --output FILE    where the answers are written, after each fact anew (facts.json)\n"
    "  --small          few repeats and little memory: to see that it works, not to measure\n"
    "  --limit SECONDS  no further fact is begun then, and one that runs is ended (120)\n"
    "  --only NAME      only this fact; may be given several times\n"
    "  --list           the facts and what they ask\n"
    "\n"
    "Exit codes: 0 every fact was asked (some may have an error for an answer), 1 the file can't be written,\n"
    "2 wrong use, 77 there is no CUDA device.\n";

int usage(const std::string& why) {
  std::fprintf(stderr, "facts: %s\n%s", why.c_str(), kUsage);
  return kExitUsage;
}

const facts::Fact* find(std::string_view name) {
  for (const facts::Fact& fact : facts::all_facts()) {
    if (name == fact.name) return &fact;
  }
  return nullptr;
}

// The process of one fact.
int run_one(const facts::Fact& fact, const facts::Settings& settings) {
  try {
    facts::Findings findings;
    fact.find(settings, findings);
    // Not through exit handlers: whatever the fact left running on the device is the next process's no more than ours.
    std::fflush(stdout);
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::fflush(stdout);
    std::_Exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  facts::Supervision supervision;
  facts::Settings settings;
  const facts::Fact* one = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (argument == "--list") {
      for (const facts::Fact& fact : facts::all_facts()) std::printf("%-20s %s\n", fact.name, fact.question);
      return 0;
    }
    if (argument == "--small") {
      settings.small = supervision.small = true;
      continue;
    }
    if (i + 1 == argc) return usage(std::string(argument) + " is unknown, or expects a value");
    const char* const value = argv[++i];
    if (argument == "--output") {
      supervision.output = value;
    } else if (argument == "--only" || argument == "--fact") {
      const facts::Fact* const fact = find(value);
      if (fact == nullptr) return usage(std::string("there is no fact '") + value + "'; --list names them");
      if (argument == "--fact") {
        one = fact;
      } else {
        supervision.chosen.push_back(fact);
      }
    } else if (argument == "--limit" || argument == "--seconds") {
      char* end = nullptr;
      const double seconds = std::strtod(value, &end);
      if (end == value || *end != '\0' || !(seconds > 0) || seconds > 86400) {
        return usage(std::string(argument) + " expects seconds above 0, not '" + value + "'");
      }
      (argument == "--limit" ? supervision.limit : settings.seconds) = seconds;
    } else {
      return usage("unknown option '" + std::string(argument) + "'");
    }
  }
  if (one != nullptr) return run_one(*one, settings);
  if (supervision.chosen.empty()) {
    for (const facts::Fact& fact : facts::all_facts()) supervision.chosen.push_back(&fact);
  }
  switch (facts::supervise(supervision)) {
    case facts::Outcome::kDone:
      return 0;
    case facts::Outcome::kNoDevice:
      return kExitNoDevice;
    case facts::Outcome::kNotWritten:
      return 1;
  }
  return 1;
}
