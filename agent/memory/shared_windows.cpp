#include "agent/memory/shared_windows.h"

#include <algorithm>

namespace memopt::agent {

void SharedWindows::make_room() {
  if (!spare_.empty()) return;
  const std::size_t slots = windows_.size();
  const std::size_t more = std::max<std::size_t>(8, slots * 2);
  std::vector<Window*> windows(more, nullptr);
  std::vector<std::uint64_t> largest(more * 2, 0);
  std::vector<std::uint32_t> spare;
  spare.reserve(more);
  std::copy(windows_.begin(), windows_.end(), windows.begin());
  for (std::size_t slot = more; slot-- > slots;) spare.push_back(static_cast<std::uint32_t>(slot));
  if (slots != 0) std::copy_n(largest_.begin() + static_cast<std::ptrdiff_t>(slots), slots, largest.begin() + more);
  for (std::size_t node = more; --node > 0;) largest[node] = std::max(largest[2 * node], largest[2 * node + 1]);
  windows_ = std::move(windows);
  largest_ = std::move(largest);
  spare_ = std::move(spare);
}

void SharedWindows::add(Window* window) noexcept {
  window->slot = spare_.back();
  spare_.pop_back();
  windows_[window->slot] = window;
  bytes_ += window->bytes;
  changed(*window);
}

void SharedWindows::remove(Window* window) noexcept {
  set_largest(window->slot, 0);
  windows_[window->slot] = nullptr;
  spare_.push_back(window->slot);  // there is room: it has one for each slot
  bytes_ -= window->bytes - window->gone_bytes;
}

Window* SharedWindows::find(std::uint64_t bytes) const noexcept {
  if (largest_.empty() || largest_[1] < bytes) return nullptr;
  std::size_t node = 1;
  while (node < windows_.size()) node = largest_[2 * node] >= bytes ? 2 * node : 2 * node + 1;
  return windows_[node - windows_.size()];
}

void SharedWindows::set_largest(std::size_t slot, std::uint64_t largest) noexcept {
  std::size_t node = windows_.size() + slot;
  largest_[node] = largest;
  while ((node /= 2) != 0) {
    const std::uint64_t larger = std::max(largest_[2 * node], largest_[2 * node + 1]);
    if (largest_[node] == larger) return;
    largest_[node] = larger;
  }
}

}  // namespace memopt::agent
