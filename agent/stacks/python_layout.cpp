#include "agent/stacks/python_layout.h"

namespace memopt::agent {
namespace {

using At = PythonLayout::At;

struct Version {
  std::string_view prefix;
  PythonLayout layout;
};

constexpr Version kVersions[] = {
    {"3.8.", {24, -1, 24, 32, 104, At::kByte, -1, 0, 104, 112, 48, 72}},
    {"3.9.", {24, -1, 24, 32, 104, At::kByte, -1, 0, 104, 112, 48, 72}},
    {"3.10.", {24, -1, 24, 32, 96, At::kUnit, -1, 0, 104, 112, 48, 72}},
    {"3.11.", {56, 8, 48, 32, 56, At::kPointer, 69, 184, 112, 128, 48, 72}},
    {"3.12.", {56, 0, 8, 0, 56, At::kPointer, 70, 192, 112, 128, 40, 56}},
    {"3.13.", {72, -1, 8, 0, 56, At::kPointer, 70, 200, 112, 128, 40, 56}},
};

}  // namespace

const PythonLayout* python_layout(std::string_view version) noexcept {
  if (version.find("free-threading") != std::string_view::npos) return nullptr;
  for (const Version& known : kVersions) {
    if (version.substr(0, known.prefix.size()) == known.prefix) return &known.layout;
  }
  return nullptr;
}

}  // namespace memopt::agent
