// What a framework's caching allocator would have reserved, from the program's records.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "planner/frameworks/caching_allocator.h"
#include "shm/record.h"

namespace memopt::planner {

// Not thread-safe.
class FrameworkMemory {
 public:
  // `persistent`: blocks that live through all iterations, ascending.
  void add(const shm::RecordView& record, std::span<const std::uint64_t> persistent);
  void add_gap(std::span<const std::uint64_t> persistent);

  // 0: not known, as nothing was allocated yet, or the beginning was not seen.
  std::uint64_t reserved() const { return begun_ && model_ ? model_->reserved() : 0; }

 private:
  // Null: the beginning was not seen.
  std::optional<CachingAllocator> model_{std::in_place};
  bool begun_ = false;
};

}  // namespace memopt::planner
