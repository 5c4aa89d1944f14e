#include "scrub_stack.h"

#include <string.h>

#include "options.h"

namespace launch_effects {
namespace {

// More than a driver's and a shim's calls take; a thread's smallest usual stack is many times that.
constexpr unsigned kBytes = 64u << 10;

[[gnu::noinline]] void clear() {
  unsigned char dead[kBytes];
  explicit_bzero(dead, sizeof dead);
}

}  // namespace

void scrub_stack() {
  if (!options().decide.empty()) clear();
}

}  // namespace launch_effects
