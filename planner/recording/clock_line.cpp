#include "planner/recording/clock_line.h"

#include "planner/recording/reader.h"

namespace memopt::planner {

ClockLine read_clock(RecordingReader& reader) {
  ClockLine clock;
  while (const auto entry = reader.next()) {
    if (entry->kind == recording::EntryKind::kClock) {
      clock.add(entry->clock);
    } else if (entry->kind == recording::EntryKind::kRecord && entry->record.kind() == shm::RecordKind::kClock) {
      clock.add({entry->record.header.ticks, entry->record.as<shm::ClockBody>().nanoseconds});
    }
  }
  return clock;
}

}  // namespace memopt::planner
