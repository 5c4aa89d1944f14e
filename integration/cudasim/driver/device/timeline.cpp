#include "device/timeline.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "counters.h"

namespace cudasim {

Timeline::Timeline(Counters& counters, std::function<void(Operation&)> on_timed) : on_timed_(std::move(on_timed)) {
  servers_[0].busy = &counters.compute_busy;
  servers_[1].busy = &counters.copy_in_busy;
  servers_[2].busy = &counters.copy_out_busy;
}

Timeline::Server* Timeline::server_of(const Operation& operation) {
  switch (operation.work.resource) {
    case Resource::kNone:
      return nullptr;
    case Resource::kCompute:
      return &servers_[0];
    case Resource::kCopyIn:
      return &servers_[1];
    case Resource::kCopyOut:
      return &servers_[2];
    case Resource::kHostFunction:
      return &servers_[3];
  }
  return nullptr;
}

void Timeline::link(Operation& predecessor, Operation& operation) {
  if (predecessor.timed) {
    operation.ready = std::max(operation.ready, predecessor.end);
  } else {
    ++operation.untimed_predecessors;
    predecessor.timing_successors.push_back(&operation);
  }
}

void Timeline::add(Operation& operation) {
  if (operation.untimed_predecessors != 0) return;
  if (Server* const server = server_of(operation)) {
    server->waiting.insert(&operation);
  } else {
    set_times(operation, operation.ready);
  }
}

// Iterative: a chain of operations without resource may be long.
void Timeline::set_times(Operation& first, TimePoint first_start) {
  std::vector<std::pair<Operation*, TimePoint>> todo{{&first, first_start}};
  while (!todo.empty()) {
    auto [operation, start] = todo.back();
    todo.pop_back();
    operation->start = start;
    operation->end = start + operation->work.duration;
    operation->timed = true;
    const std::vector<Operation*> successors = std::move(operation->timing_successors);
    operation->timing_successors.clear();
    for (Operation* const successor : successors) {
      successor->ready = std::max(successor->ready, operation->end);
      if (--successor->untimed_predecessors != 0) continue;
      if (Server* const server = server_of(*successor)) {
        server->waiting.insert(successor);
      } else {
        todo.emplace_back(successor, successor->ready);
      }
    }
    on_timed_(*operation);
  }
}

// The earliest start of all is fixed first: whatever becomes ready by it, is ready no earlier than it starts.
bool Timeline::start_next(TimePoint until) {
  Server* best = nullptr;
  TimePoint best_start{};
  for (Server& server : servers_) {
    if (server.waiting.empty()) continue;
    const Operation& head = **server.waiting.begin();
    const TimePoint start = std::max(head.ready, server.free_at);
    if (start > until) continue;
    if (best == nullptr || start < best_start ||
        (start == best_start && head.sequence < (*best->waiting.begin())->sequence)) {
      best = &server;
      best_start = start;
    }
  }
  if (best == nullptr) return false;
  Operation& operation = **best->waiting.begin();
  best->waiting.erase(best->waiting.begin());
  best->free_at = best_start + operation.work.duration;
  if (best->busy != nullptr) *best->busy += operation.work.duration;
  set_times(operation, best_start);
  return true;
}

void Timeline::advance(TimePoint until) {
  now_ = std::max(now_, until);
  while (start_next(now_)) {
  }
}

void Timeline::settle(const Operation& operation) {
  while (!operation.timed) {
    if (!start_next(TimePoint::max()))
      throw std::logic_error("an operation waits for one that can't start: " + operation.work.name);
  }
}

}  // namespace cudasim
