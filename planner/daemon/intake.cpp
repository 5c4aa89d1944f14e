#include "planner/daemon/intake.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace memopt::planner {
namespace {

// Read from a ring at once: little enough to stay in the processor's nearer caches until it is delivered.
constexpr std::size_t kBatchBytes = std::size_t{1} << 17;
static_assert(kBatchBytes >= shm::kMaxRecordBytes);
constexpr std::size_t kRecordsPerStep = std::size_t{1} << 19;  // then messages are looked at again
constexpr auto kPad = static_cast<std::uint8_t>(shm::RecordKind::kPad);
constexpr std::uint64_t kLastSequence = std::uint64_t{1} << 62;

}  // namespace

std::uint64_t check_point_behind(std::uint64_t sequence) {
  // From here on the points are 4096 apart (shm::next_check_point), and there is no need to walk through all of them.
  static const std::uint64_t even = [] {
    std::uint64_t point = shm::kFirstCheckPoint;
    while (point / 64 < 4096) point = shm::next_check_point(point);
    return point;
  }();
  if (sequence >= even) return even + ((sequence - even) / 4096 + 1) * 4096;
  std::uint64_t point = shm::kFirstCheckPoint;
  while (point <= sequence) point = shm::next_check_point(point);
  return point;
}

Intake::Intake(shm::Control& control, bool synchronous, Sink& sink, Outbox& outbox)
    : control_(control), synchronous_(synchronous), sink_(sink), outbox_(outbox) {
  resumed_ = control_.processed.load(std::memory_order_relaxed) != 0;
  // What was decided about an earlier planner's plans is not this one's business.
  adopted_ = control_.adopted_generation.load(std::memory_order_relaxed);
  refused_ = control_.refused_generation.load(std::memory_order_relaxed);
  look_at_control();
}

bool Intake::add_ring(shm::SharedMapping memory, std::uint32_t lane, std::string* why) {
  if (lane >= shm::kMaxLanes) {
    *why = "lane " + std::to_string(lane) + ": expected less than " + std::to_string(shm::kMaxLanes);
    return false;
  }
  for (const auto& other : lanes_) {
    if (other->reader.lane() != lane) continue;
    *why = "lane " + std::to_string(lane) + " was sent twice";
    return false;
  }
  auto added = std::make_unique<Lane>();
  added->reader = shm::RingReader::open(memory.data(), memory.size());
  if (!added->reader || added->reader.lane() != lane) {
    *why = "the memory of lane " + std::to_string(lane) + " is no ring of wire version " +
           std::to_string(shm::kWireVersion) + " for this lane";
    return false;
  }
  added->memory = std::move(memory);
  if (added->reader.resumed()) {
    resumed_ = true;
    explained_drops_ += added->reader.dropped();
  }
  lanes_.push_back(std::move(added));
  return true;
}

// Checks the first record of what was read. False: nothing is left, or corrupt.
bool Intake::look(Lane& lane) {
  lane.sequence = 0;
  if (lane.left.empty()) return false;
  lane.bytes = shm::checked_record_bytes(lane.left);
  shm::RecordHeader header;
  if (lane.bytes != 0) std::memcpy(&header, lane.left.data(), sizeof(header));
  if (lane.bytes == 0 || header.kind == kPad) [[unlikely]] {
    corruption_ = "the ring of lane " + std::to_string(lane.reader.lane()) + ": a record behind number " +
                  std::to_string(lane.last) + " is malformed";
    return false;
  }
  if (header.sequence <= lane.last || header.sequence > kLastSequence) [[unlikely]] {
    corruption_ = "the ring of lane " + std::to_string(lane.reader.lane()) + ": record number " +
                  std::to_string(header.sequence) + " behind " + std::to_string(lane.last) + ": expected a larger one";
    return false;
  }
  lane.sequence = lane.last = header.sequence;
  return true;
}

// Copies out of the ring what there is. False: none for now, or corrupt.
bool Intake::read_ring(Lane& lane) {
  lane.left = lane.reader.read(lane.buffer, kBatchBytes);
  if (lane.left.empty()) lane.left = lane.reader.read(lane.buffer, kBatchBytes);  // it may just have wrapped
  if (lane.left.empty()) {
    if (lane.reader.state() == shm::RingReader::State::kCorrupt) {
      corruption_ =
          "the ring of lane " + std::to_string(lane.reader.lane()) + ": head, tail and the records' sizes do not agree";
    }
    return false;
  }
  arrived_ = true;
  return look(lane);
}

// To the record behind the one at hand.
void Intake::pass_over(Lane& lane) {
  lane.left = lane.left.subspan(lane.bytes);
  if (!look(lane) && corruption_.empty()) read_ring(lane);
}

// Delivers the lane's record at hand, which is number next_, and what follows it in the lane without a hole: at most
// `limit` of what was read, and none behind a check point. Their number.
std::size_t Intake::deliver_run(Lane& lane, std::size_t limit) {
  const std::byte* const first = lane.left.data();
  const std::byte* const end = first + lane.left.size();
  const std::uint64_t stop = std::min({next_ + std::min(limit, kRecordsPerStep), check_point_ + 1, kLastSequence + 1});
  const std::byte* at = first;
  std::uint64_t next = next_;
  std::size_t bytes = lane.bytes;
  std::uint64_t sequence = lane.sequence;
  std::uint8_t kind = shm::kLastRecordKind;  // no pad: the first record was looked at
  while (sequence == next && next != stop && kind != kPad) {
    at += bytes;
    ++next;
    bytes = shm::checked_record_bytes({at, end});
    if (bytes == 0) break;
    std::memcpy(&kind, at + offsetof(shm::RecordHeader, kind), sizeof(kind));
    std::memcpy(&sequence, at + offsetof(shm::RecordHeader, sequence), sizeof(sequence));
  }
  lane.left = {at, end};
  lane.last = next - 1;
  if (bytes != 0 && kind != kPad && sequence >= next && sequence <= kLastSequence) [[likely]] {
    lane.bytes = bytes;
    lane.sequence = lane.last = sequence;
  } else {
    look(lane);  // says what is wrong, if something is
  }
  sink_.records(lane.reader.lane(), shm::RecordRun({first, at}));
  const auto count = static_cast<std::size_t>(next - next_);
  next_ = next;
  // After the delivery, since it reads into the same buffer.
  if (lane.left.empty() && corruption_.empty()) read_ring(lane);
  return count;
}

// Looks into the rings of all lanes that have nothing at hand. True if something came.
bool Intake::refill() {
  bool came = false;
  for (const auto& lane : lanes_) {
    if (lane->sequence == 0) came |= read_ring(*lane);
  }
  return came;
}

Intake::Lane* Intake::lane_with(std::uint64_t sequence) {
  for (const auto& lane : lanes_) {
    if (lane->sequence == sequence) return lane.get();
  }
  return nullptr;
}

void Intake::look_at_control() {
  // The agent refreshes both words without a lock: believe a pair that was seen twice.
  for (int tries = 0; tries < 4; ++tries) {
    const ClockPair first{control_.clock_ticks.load(std::memory_order_acquire),
                          control_.clock_nanoseconds.load(std::memory_order_acquire)};
    const ClockPair second{control_.clock_ticks.load(std::memory_order_acquire),
                           control_.clock_nanoseconds.load(std::memory_order_acquire)};
    if (first != second) continue;
    if (first != clock_ && first != ClockPair{}) sink_.clock(first);
    clock_ = first;
    break;
  }
  if (const std::uint64_t adopted = control_.adopted_generation.load(std::memory_order_acquire); adopted != adopted_) {
    adopted_ = adopted;
    sink_.adopted(adopted);
  }
  if (const std::uint64_t refused = control_.refused_generation.load(std::memory_order_acquire); refused != refused_) {
    refused_ = refused;
    // Of a later refusal, if there was one meanwhile: that one is looked at next.
    sink_.refused(refused, control_.refused_excess.load(std::memory_order_relaxed));
  }
}

void Intake::run_check_point() {
  check_point_ = check_point_behind(next_ - 1);
  // A program that waits is told the same at the same points in every run. Another one is better served by a planner
  // that keeps up.
  if (!synchronous_) {
    for (const auto& lane : lanes_) {
      if (lane->reader.waiting() > lane->reader.capacity() / 2) return;
    }
  }
  look_at_control();
  if (std::optional<std::vector<std::byte>> plan = sink_.check_point()) outbox_.send_plan(std::move(*plan));
  pass_note();
  tell_framework_reserved();
}

// What an earlier planner has told stays where this one does not know.
void Intake::tell_framework_reserved() {
  const std::uint64_t reserved = sink_.framework_reserved();
  if (reserved != 0) control_.framework_reserved.store(reserved, std::memory_order_relaxed);
}

void Intake::pass_note() {
  std::string note = sink_.note();
  if (note == note_) return;
  outbox_.send_note(note);
  note_ = std::move(note);
}

void Intake::after_delivery() {
  if (next_ > check_point_) [[unlikely]] {
    run_check_point();
    // Release: whoever sees this has been sent what followed. Pairs with the acquire in the agent's wait_processed.
    control_.processed.store(next_ - 1, std::memory_order_release);
  }
}

// False when something was corrupt.
bool Intake::deliver_in_order(std::size_t limit, std::size_t* delivered) {
  Lane* lane = nullptr;
  while (*delivered < limit) {
    if (lane == nullptr || lane->sequence != next_) [[unlikely]] {
      lane = lane_with(next_);
      if (lane == nullptr) {
        const bool came = refill();
        if (!corruption_.empty()) return false;
        if (!came) return true;
        // Records that were given up and come after all.
        for (const auto& each : lanes_) {
          while (each->sequence != 0 && each->sequence < next_) {
            ++late_;
            pass_over(*each);
            if (!corruption_.empty()) return false;
          }
        }
        continue;
      }
    }
    *delivered += deliver_run(*lane, limit - *delivered);
    if (!corruption_.empty()) return false;
    after_delivery();
  }
  return true;
}

std::uint64_t Intake::dropped() const {
  std::uint64_t sum = 0;
  for (const auto& lane : lanes_) sum += lane->reader.dropped();
  return sum;
}

// Is record number next_, which no ring has, to be given up?
bool Intake::is_lost(Time now) {
  const bool later_ones =
      std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->sequence != 0; });
  const bool drops = dropped() > explained_drops_;
  // Without later records a hole shows only if the ring says that it dropped, and the agent that it numbered.
  const std::uint64_t issued = control_.issued.load(std::memory_order_acquire);
  if (!later_ones && !(drops && issued >= next_ && issued <= kLastSequence)) {
    missing_ = false;
    return false;
  }
  if (!missing_) {
    missing_ = true;
    missing_since_ = now;
    return false;
  }
  const auto waited = now - missing_since_;
  if (drops || resumed_) return waited >= kLostAfterDrop;
  if (arrived_ && !synchronous_) return waited >= kLostWhileOthersCome;
  return waited >= kLostInSilence;
}

// Passes over the records that are missing. False: there is nothing behind them.
bool Intake::skip_to_next_known() {
  std::uint64_t known = kLastSequence + 1;
  for (const auto& lane : lanes_) {
    if (lane->sequence != 0) known = std::min(known, lane->sequence);
  }
  if (known > kLastSequence) {
    const std::uint64_t issued = control_.issued.load(std::memory_order_acquire);
    if (issued < next_ || issued > kLastSequence) return false;
    known = issued + 1;
  }
  missing_ = false;
  resumed_ = false;
  explained_drops_ = std::min(dropped(), explained_drops_ + (known - next_));
  next_ = known;
  sink_.gap();
  after_delivery();
  control_.processed.store(next_ - 1, std::memory_order_release);
  return true;
}

Intake::Progress Intake::step(Time now) {
  look_at_control();
  arrived_ = false;
  std::size_t delivered = 0;
  for (;;) {
    const std::uint64_t before = next_;
    if (!deliver_in_order(kRecordsPerStep, &delivered)) return Progress::kCorrupt;
    if (next_ != before) missing_ = false;
    if (delivered >= kRecordsPerStep || !is_lost(now) || !skip_to_next_known()) break;
  }
  if (delivered != 0) {
    resumed_ = false;
    tell_framework_reserved();
    control_.processed.store(next_ - 1, std::memory_order_release);
  }
  return delivered >= kRecordsPerStep ? Progress::kMore : delivered != 0 ? Progress::kSome : Progress::kNothing;
}

void Intake::finish() {
  const auto more = [this] {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->sequence != 0; });
  };
  do {
    std::size_t delivered = 0;
    if (!deliver_in_order(SIZE_MAX, &delivered)) return;
  } while (more() && skip_to_next_known());
  // What was dropped behind the last record.
  if (dropped() > explained_drops_) sink_.gap();
}

}  // namespace memopt::planner
