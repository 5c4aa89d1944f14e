// The real driver functions, in the newest form of each, for the agent's own calls.
#pragma once

#include "agent/process/driver.h"
#include "preload/typed_hooks.h"

namespace memopt::preload {

// Looks them all up; never null (hook_table.h). To be made after the driver is known: what it lacks then stays missing.
agent::Driver real_driver() noexcept;

}  // namespace memopt::preload
