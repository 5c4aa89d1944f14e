// What the environment asks for. Read once.
#pragma once
#include <string>

#include "effect.h"

namespace launch_effects {

struct Options {
  Extent extent = Extent::kAll;  // LAUNCH_EFFECTS_BYTES=all|some|none
  std::string decisions;         // LAUNCH_EFFECTS_DECISIONS=FILE: what an earlier run has decided
  // LAUNCH_EFFECTS_DECIDE=FILE: this run decides, and writes it there at exit. Of earlier decisions, if any, it keeps
  // those that it agrees with.
  std::string decide;
  std::string uses;    // LAUNCH_EFFECTS_USES=FILE: what each launch has read, hashed, at exit
  std::string report;  // LAUNCH_EFFECTS_REPORT=off|stderr|FILE (%p: process id); "" for off
};

const Options& options();

}  // namespace launch_effects
