// The device time that the calling thread has given its next launch (cudasim_next_launch_takes).
#pragma once
#include <optional>

#include "units.h"

namespace cudasim {

void set_next_launch_duration(Duration duration);
// Given once: the launch takes it along.
std::optional<Duration> take_next_launch_duration();

}  // namespace cudasim
