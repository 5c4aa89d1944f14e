// Vector clock: for each actor, how many of its steps are known. Grows on demand; what is missing counts as 0.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checker/checker.h"

namespace cudasim {

class VectorClock {
 public:
  std::uint64_t of(ActorId actor) const {
    const auto index = static_cast<std::size_t>(actor);
    return index < steps_.size() ? steps_[index] : 0;
  }

  void set(ActorId actor, std::uint64_t step) {
    const auto index = static_cast<std::size_t>(actor);
    if (index >= steps_.size()) steps_.resize(index + 1);
    steps_[index] = step;
  }

  void join(const VectorClock& other) {
    if (other.steps_.size() > steps_.size()) steps_.resize(other.steps_.size());
    for (std::size_t i = 0; i < other.steps_.size(); ++i) steps_[i] = std::max(steps_[i], other.steps_[i]);
  }

 private:
  std::vector<std::uint64_t> steps_;
};

}  // namespace cudasim
