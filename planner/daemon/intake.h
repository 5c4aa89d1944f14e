// Puts the rings of one program together again: records come out in the order of their sequence numbers, over all
// threads, holes are told, and check points are kept (shm/channel.h). Everything read is hostile.
//
// Not thread-safe. Knows no socket and no clock: tests drive it with times of their own.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/daemon/sink.h"
#include "shm/channel.h"
#include "shm/ring.h"
#include "shm/sealed_memory.h"

namespace memopt::planner {

// What goes back to the program.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void send_plan(std::vector<std::byte> plan) = 0;
  virtual void send_note(std::string_view note) = 0;
};

class Intake {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A record that is missing is waited for: its writer may have lost its processor between taking the number and
  // writing. So long when some ring is known to have dropped, or when this is not the program's first planner, ...
  static constexpr std::chrono::milliseconds kLostAfterDrop{20};
  // ... while later records keep coming (a synchronous program does not run ahead: it is given the long time), ...
  static constexpr std::chrono::milliseconds kLostWhileOthersCome{250};
  // ... and when nothing comes at all: the program may be stopped.
  static constexpr std::chrono::milliseconds kLostInSilence{2000};

  // All three outlive the intake.
  Intake(shm::Control& control, bool synchronous, Sink& sink, Outbox& outbox);

  // False, with `*why`: the lane is there already or out of range, or the memory is no ring.
  bool add_ring(shm::SharedMapping memory, std::uint32_t lane, std::string* why);

  enum class Progress { kNothing, kSome, kMore, kCorrupt };
  // Reads what there is and delivers what is in order. kMore: call again without sleeping.
  Progress step(Time now);

  // Sends the sink's note if it is another than the last. By itself only at check points, which don't come while the
  // program records nothing.
  void pass_note();

  // The program is gone: delivers everything that it wrote.
  void finish();

  // What was wrong when step() said kCorrupt.
  const std::string& corruption() const { return corruption_; }
  // Sequence number of the next record to be delivered.
  std::uint64_t next() const { return next_; }
  // Records that came after they had been given up.
  std::uint64_t late() const { return late_; }

 private:
  struct Lane {
    shm::SharedMapping memory;
    shm::RingReader reader;
    std::vector<std::byte> buffer;    // what was read from the ring
    std::span<const std::byte> left;  // of it; begins with the next record, if `sequence` is not 0
    std::size_t bytes = 0;            // of that record, which was checked
    std::uint64_t sequence = 0;       // of that record
    std::uint64_t last = 0;           // sequence of the last record that was looked at
  };

  bool look(Lane& lane);
  bool read_ring(Lane& lane);
  void pass_over(Lane& lane);
  std::size_t deliver_run(Lane& lane, std::size_t limit);
  bool refill();
  Lane* lane_with(std::uint64_t sequence);
  bool deliver_in_order(std::size_t limit, std::size_t* delivered);
  bool is_lost(Time now);
  bool skip_to_next_known();
  void after_delivery();
  void run_check_point();
  void tell_framework_reserved();
  void look_at_control();
  std::uint64_t dropped() const;

  shm::Control& control_;
  const bool synchronous_;
  Sink& sink_;
  Outbox& outbox_;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint64_t next_ = 1;
  std::uint64_t check_point_ = shm::kFirstCheckPoint;
  bool resumed_ = false;               // an earlier planner has read from these rings
  std::uint64_t explained_drops_ = 0;  // dropped records whose numbers were passed over
  std::uint64_t late_ = 0;
  bool arrived_ = false;  // since the last look, anything from any ring
  bool missing_ = false;
  Time missing_since_{};
  std::string corruption_;

  std::uint64_t adopted_ = 0;
  std::uint64_t refused_ = 0;
  ClockPair clock_;
  std::string note_;
};

// The first check point behind `sequence`. Constant time, whatever the number.
std::uint64_t check_point_behind(std::uint64_t sequence);

}  // namespace memopt::planner
