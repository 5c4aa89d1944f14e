// What happens when the library is loaded: before main, and before what main loads.
#include "agent/process/frameworks.h"
#include "agent/process/log.h"

namespace memopt::preload {
namespace {

[[gnu::constructor]] void at_start() noexcept {
  agent::look_for_standard_error();
  agent::set_framework_environment();
}

}  // namespace
}  // namespace memopt::preload
