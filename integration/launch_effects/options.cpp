#include "options.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace launch_effects {
namespace {

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

Options read() {
  Options read;
  if (const std::string bytes = value_of("LAUNCH_EFFECTS_BYTES"); bytes == "some") {
    read.extent = Extent::kSome;
  } else if (bytes == "none") {
    read.extent = Extent::kNone;
  } else if (!bytes.empty() && bytes != "all") {
    std::fprintf(stderr, "launch effects: LAUNCH_EFFECTS_BYTES is all, some or none, not '%s': all\n", bytes.c_str());
  }
  read.decisions = value_of("LAUNCH_EFFECTS_DECISIONS");
  read.decide = value_of("LAUNCH_EFFECTS_DECIDE");
  read.uses = value_of("LAUNCH_EFFECTS_USES");
  read.report = value_of("LAUNCH_EFFECTS_REPORT");
  if (read.report == "off") read.report.clear();
  if (const auto at = read.report.find("%p"); at != std::string::npos)
    read.report.replace(at, 2, std::to_string(getpid()));
  return read;
}

}  // namespace

const Options& options() {
  static const auto* const read_once = new Options(read());
  return *read_once;
}

}  // namespace launch_effects
