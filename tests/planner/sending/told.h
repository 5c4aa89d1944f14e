// What a program does, as an agent records it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>

#include "planner/iteration/record_builder.h"

namespace memopt::planner {

// For Training (training.h). A kernel's time is told right behind its launch. What becomes of a record is the derived
// class's: add().
class Told {
 public:
  std::function<bool(std::uint64_t operation)> measured = [](std::uint64_t) { return true; };
  std::function<bool(std::uint64_t bytes)> stays = [](std::uint64_t) { return false; };  // a block of so many
  // A block whose address a kernel stores, as is known just before it is freed, or after that.
  std::function<bool(std::uint64_t block)> escapes = [](std::uint64_t) { return false; };
  std::function<bool(std::uint64_t block)> escapes_late = [](std::uint64_t) { return false; };
  std::function<void(std::uint64_t block, std::uint64_t bytes)> made = [](std::uint64_t, std::uint64_t) {};
  bool blind = false;                 // launches from here on
  std::uint32_t other_functions = 0;  // added to those that are launched

  virtual ~Told() = default;

  std::uint64_t malloc(std::uint64_t bytes, std::uint64_t stack, std::uint64_t return_address) {
    if (stays(bytes)) builder_.flags = shm::kStays;
    add(builder_.malloc(next_block_, bytes, stack, return_address,
                        std::exchange(next_address_, next_address_ + bytes / 512 * 512 + 512)));
    made(next_block_, bytes);
    return next_block_++;
  }
  void free(std::uint64_t block) {
    // Which is known late, as a rule.
    if (escapes(block)) add(builder_.escape(block));
    add(builder_.free(block));
    if (escapes_late(block)) add(builder_.escape(block));
  }
  void launch(std::uint32_t function, std::initializer_list<std::uint64_t> blocks) {
    if (blind) builder_.flags = shm::kBlindLaunch;
    add(builder_.launch(function + other_functions, {blocks.begin(), blocks.size()}));
  }
  void took(std::uint64_t nanoseconds) {
    const std::uint64_t sequence = builder_.sequence();
    clock_ += nanoseconds;
    if (measured(operations_++)) add(builder_.kernel_time({sequence, nanoseconds, clock_}, shm::kIdleUnknown));
  }
  void pause(std::uint64_t nanoseconds) { clock_ += nanoseconds; }
  std::uint64_t now() const { return clock_; }  // the device's
  std::uint64_t written() const { return builder_.sequence(); }

 protected:
  virtual void add(const shm::RecordView& record) = 0;

  RecordBuilder builder_;

 private:
  std::uint64_t next_address_ = std::uint64_t{1} << 40;  // side by side, as an agent has early blocks
  std::uint64_t next_block_ = 1, operations_ = 0, clock_ = 1;
};

}  // namespace memopt::planner
