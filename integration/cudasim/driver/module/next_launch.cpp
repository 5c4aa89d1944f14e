#include "module/next_launch.h"

#include <utility>

namespace cudasim {
namespace {

thread_local std::optional<Duration> next;

}  // namespace

void set_next_launch_duration(Duration duration) { next = duration; }

std::optional<Duration> take_next_launch_duration() { return std::exchange(next, std::nullopt); }

}  // namespace cudasim
