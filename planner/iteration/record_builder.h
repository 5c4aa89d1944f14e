// Makes records of a program that never ran: from traces, and in tests. As the agent would write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "shm/record.h"

namespace memopt::planner {

// Each verb makes the next record in order of sequence; the view holds until the next verb.
class RecordBuilder {
 public:
  std::uint64_t ticks = 0;  // of the records to come
  std::uint8_t flags = 0;   // of the next record only
  std::uint64_t stream = 0;

  std::uint64_t sequence() const { return sequence_; }
  void skip_sequence(std::uint64_t count) { sequence_ += count; }

  shm::RecordView malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stack = 0,
                         std::uint64_t return_address = 0, std::uint64_t address = 0) {
    return make(shm::RecordKind::kMalloc, 0, shm::MallocBody{block, bytes, stack, return_address, stream, address});
  }
  shm::RecordView free(std::uint64_t block) { return make(shm::RecordKind::kFree, 0, shm::FreeBody{block, stream}); }
  shm::RecordView launch(std::uint32_t function, std::span<const std::uint64_t> accesses) {
    return make(shm::RecordKind::kLaunch, function,
                shm::LaunchBody{stream, {1, 1, 1}, {1, 1, 1}, 0, static_cast<std::uint32_t>(accesses.size())},
                accesses);
  }
  shm::RecordView copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes, shm::CopyKind kind) {
    return make(shm::RecordKind::kCopy, static_cast<std::uint32_t>(kind), shm::CopyBody{stream, to, from, bytes});
  }
  shm::RecordView memset(std::uint64_t block, std::uint64_t bytes) {
    return make(shm::RecordKind::kMemset, 0, shm::MemsetBody{stream, block, bytes});
  }
  shm::RecordView kernel_time(const shm::KernelTimeBody& body, std::uint32_t idle) {
    return make(shm::RecordKind::kKernelTime, idle, body);
  }
  shm::RecordView escape(std::uint64_t block) { return make(shm::RecordKind::kEscape, 0, shm::EscapeBody{block}); }
  shm::RecordView state(shm::StateChange change, std::uint64_t generation, std::uint64_t slab) {
    return make(shm::RecordKind::kState, static_cast<std::uint32_t>(change), shm::StateBody{generation, slab});
  }

 private:
  template <typename Body>
  shm::RecordView make(shm::RecordKind kind, std::uint32_t aux, const Body& body,
                       std::span<const std::uint64_t> behind = {}) {
    bytes_.resize(sizeof(Body) + behind.size_bytes());
    std::memcpy(bytes_.data(), &body, sizeof(Body));
    if (!behind.empty()) std::memcpy(bytes_.data() + sizeof(Body), behind.data(), behind.size_bytes());
    shm::RecordView view;
    view.header = {static_cast<std::uint8_t>(kind),
                   flags,
                   static_cast<std::uint16_t>((sizeof(shm::RecordHeader) + bytes_.size()) / 8),
                   aux,
                   ++sequence_,
                   ticks};
    view.body = bytes_;
    flags = 0;
    return view;
  }

  std::uint64_t sequence_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace memopt::planner
