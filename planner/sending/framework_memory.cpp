#include "planner/sending/framework_memory.h"

namespace memopt::planner {

void FrameworkMemory::add(const shm::RecordView& record, std::span<const std::uint64_t> persistent) {
  switch (record.kind()) {
    case shm::RecordKind::kMalloc: {
      // What the driver allocates itself is no block of the framework's allocator.
      if (!model_ || (record.header.flags & shm::kForeign) != 0) return;
      begun_ = true;
      const auto body = record.as<shm::MallocBody>();
      model_->malloc(body.block, body.bytes, body.stream);
      return;
    }
    case shm::RecordKind::kFree:
      if (model_) model_->free(record.as<shm::FreeBody>().block);
      return;
    case shm::RecordKind::kState:
      switch (static_cast<shm::StateChange>(record.header.aux)) {
        case shm::StateChange::kRestarted:
          return add_gap(persistent);
        case shm::StateChange::kNewContext:
          // Its memory is gone with the context, and all of the next one is seen.
          model_.emplace();
          begun_ = false;
          return;
        default:
          return;
      }
    default:
      return;
  }
}

void FrameworkMemory::add_gap(std::span<const std::uint64_t> persistent) {
  if (!begun_) {
    model_.reset();
  } else if (model_) {
    model_->keep_only(persistent);
  }
}

}  // namespace memopt::planner
