#include "module/next_launch.h"

#include <utility>

namespace cudasim {
namespace {

thread_local std::optional<Duration> next;
thread_local Duration last{0};

// On the heap, and leaked with the thread: the library is opened by dlopen, and its thread-local storage has to fit
// into what the linker keeps in reserve.
LaunchEffectPtr& next_effect() {
  thread_local LaunchEffectPtr* effect = nullptr;
  if (effect == nullptr) effect = new LaunchEffectPtr;
  return *effect;
}

}  // namespace

void set_next_launch_duration(Duration duration) { next = duration; }

std::optional<Duration> take_next_launch_duration() { return std::exchange(next, std::nullopt); }

void set_next_launch_effect(LaunchEffectPtr effect) { next_effect() = std::move(effect); }

LaunchEffectPtr take_next_launch_effect(const void* function) {
  LaunchEffectPtr& effect = next_effect();
  return effect != nullptr && effect->function == function ? std::exchange(effect, nullptr) : nullptr;
}

void note_launch_duration(Duration duration) { last = duration; }

Duration last_launch_duration() { return last; }

}  // namespace cudasim
