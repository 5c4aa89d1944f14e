// What the calling thread has said of its next launch (cudasim_next_launch_takes, cudasim_next_launch_does).
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cudasim/launch_effect.h"
#include "units.h"

namespace cudasim {

// An effect with its owner: the argument is released with the last copy of the pointer to it.
struct LaunchEffect {
  LaunchEffect(const void* function_, const CudasimEffect& given_)
      : function(function_), given(given_), touched(given_.touched, given_.touched + given_.touched_count) {}
  ~LaunchEffect() {
    if (given.release != nullptr) given.release(given.argument);
  }
  LaunchEffect(const LaunchEffect&) = delete;
  LaunchEffect& operator=(const LaunchEffect&) = delete;

  const void* function;
  CudasimEffect given;
  std::vector<CudasimTouched> touched;
};
using LaunchEffectPtr = std::shared_ptr<const LaunchEffect>;

void set_next_launch_duration(Duration duration);
// Given once: the launch takes it along.
std::optional<Duration> take_next_launch_duration();

void set_next_launch_effect(LaunchEffectPtr effect);
// Null where none waits for this function.
LaunchEffectPtr take_next_launch_effect(const void* function);

void note_launch_duration(Duration duration);
Duration last_launch_duration();

}  // namespace cudasim
