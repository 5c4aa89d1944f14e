#include "happens_before.h"

#include <algorithm>
#include <utility>

namespace memopt::order {

HappensBefore::HappensBefore(int threads, std::vector<StreamKind> streams)
    : streams_(std::move(streams)), instances_(streams_.size()), threads_(std::size_t(threads)) {
  for (Thread& thread : threads_) thread.clock.resize(threads_.size());
}

bool HappensBefore::has_returned(int thread, std::size_t op) const {
  const Call& call = ops_[op];
  return threads_[std::size_t(thread)].clock[std::size_t(call.thread)] > call.call;
}

bool HappensBefore::await(int thread, std::size_t op) {
  if (has_returned(thread, op)) return false;
  Thread& waiting = threads_[std::size_t(thread)];
  const Call& call = ops_[op];
  for (std::size_t i = 0; i < threads_.size(); ++i) waiting.clock[i] = std::max(waiting.clock[i], call.clock[i]);
  waiting.over |= call.over;
  return true;
}

OpSet HappensBefore::returned(int thread) const {
  OpSet set;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    if (has_returned(thread, op)) set.set(op);
  }
  return set;
}

bool HappensBefore::same_stream(const Call& earlier, int thread, int stream) const {
  return earlier.stream == stream && earlier.instance == instances_[std::size_t(stream)] &&
         (streams_[std::size_t(stream)] != StreamKind::kPerThread || earlier.thread == thread);
}

bool HappensBefore::orders(const Call& earlier, int thread, int stream) const {
  if (earlier.stream < 0) return false;
  if (same_stream(earlier, thread, stream)) return true;
  const StreamKind kind = streams_[std::size_t(stream)];
  const StreamKind before = streams_[std::size_t(earlier.stream)];
  const auto blocks = [](StreamKind one) { return one == StreamKind::kBlocking || one == StreamKind::kPerThread; };
  return (kind == StreamKind::kLegacy && blocks(before)) || (blocks(kind) && before == StreamKind::kLegacy);
}

OpSet HappensBefore::before(int thread, int stream) const {
  OpSet set = over(thread);
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    if (has_returned(thread, op) && orders(ops_[op], thread, stream)) set |= ops_[op].before;
  }
  return set;
}

// The same streams count as before work: waiting for the legacy stream is like queueing something on it.
OpSet HappensBefore::through(int thread, int stream) const {
  OpSet set;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    const bool own = ops_[op].stream == stream;
    if (has_returned(thread, op) && orders(ops_[op], thread, stream) &&
        (own || streams_[std::size_t(stream)] == StreamKind::kLegacy))
      set |= ops_[op].before;
  }
  return set;
}

OpSet HappensBefore::through_all(int thread) const {
  OpSet set;
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    if (has_returned(thread, op) && ops_[op].stream >= 0) set |= ops_[op].before;
  }
  return set;
}

std::size_t HappensBefore::add(int thread, int stream, const OpSet& extra) {
  Call call;
  call.thread = thread;
  call.stream = stream;
  Thread& own = threads_[std::size_t(thread)];
  call.call = own.clock[std::size_t(thread)];
  if (stream >= 0) {
    call.instance = instances_[std::size_t(stream)];
    call.before = before(thread, stream) | extra;
    call.before.set(ops_.size());
  }
  ++own.clock[std::size_t(thread)];
  ops_.push_back(std::move(call));
  publish();
  return ops_.size() - 1;
}

void HappensBefore::publish() {
  Call& call = ops_.back();
  call.clock = threads_[std::size_t(call.thread)].clock;
  call.over = over(call.thread);
}

void HappensBefore::replace_stream(int stream) { ++instances_[std::size_t(stream)]; }

bool HappensBefore::is_current(std::size_t op) const {
  const Call& call = ops_[op];
  return call.stream >= 0 && call.instance == instances_[std::size_t(call.stream)];
}

}  // namespace memopt::order
