#include "counters.h"

#include <algorithm>

namespace cudasim {

void Counters::held_changed(std::uint64_t held) {
  totals.bytes_held = held;
  totals.bytes_held_peak = std::max(totals.bytes_held_peak, held);
  held_history.note(totals.calls, held);
}

void Counters::live_changed(std::uint64_t live_bytes, std::uint64_t live_blocks, std::uint64_t live_blocks_2mib) {
  totals.bytes_live = live_bytes;
  totals.blocks_live = live_blocks;
  live_blocks_2mib_ = live_blocks_2mib;
  if (live_bytes > totals.bytes_live_peak) reset_live_peak();
}

void Counters::reset_peaks() {
  totals.bytes_held_peak = totals.bytes_held;
  reset_live_peak();
}

void Counters::reset_live_peak() {
  totals.bytes_live_peak = totals.bytes_live;
  totals.blocks_live_at_peak = totals.blocks_live;
  totals.blocks_2mib_live_at_peak = live_blocks_2mib_;
}

}  // namespace cudasim
