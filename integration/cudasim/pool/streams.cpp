#include "streams.h"

#include <algorithm>
#include <atomic>

#include "runtime.h"

namespace caching_pool {
namespace {

// Not the kernel's thread id, which a later thread may get again.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t id = next++;
  return id;
}

thread_local StreamId current_stream = 0;

bool has_passed(Mark& mark) {
  if (mark.passed) return true;
  const cudaError_t error = real::event_query(mark.event);
  mark.passed = error == cudaSuccess;
  // "Not ready" must not be the program's last error.
  if (error == cudaErrorNotReady) real::clear_last_error();
  return mark.passed;
}

}  // namespace

void Fence::add(const std::shared_ptr<Mark>& mark) {
  if (mark->passed) return;
  const auto same =
      std::find_if(marks_.begin(), marks_.end(), [&](const auto& other) { return other->stream == mark->stream; });
  if (same == marks_.end()) {
    marks_.push_back(mark);
  } else if ((*same)->sequence < mark->sequence) {
    *same = mark;
  }
}

void Fence::add(const Fence& other) {
  for (const auto& mark : other.marks_) add(mark);
}

bool Fence::passed() {
  std::erase_if(marks_, [](const auto& mark) { return has_passed(*mark); });
  return marks_.empty();
}

bool Fence::only_on(StreamId stream) const {
  return std::all_of(marks_.begin(), marks_.end(),
                     [&](const auto& mark) { return mark->stream == stream || mark->passed; });
}

Streams::Key Streams::key_of(StreamName name) {
  if (name.handle == cudaStreamPerThread || (name.handle == nullptr && name.per_thread)) {
    return {reinterpret_cast<std::uintptr_t>(cudaStreamPerThread), this_thread()};
  }
  if (name.handle == nullptr) return {reinterpret_cast<std::uintptr_t>(cudaStreamLegacy), 0};
  return {reinterpret_cast<std::uintptr_t>(name.handle), 0};
}

Streams::State& Streams::state_of(StreamName name) {
  const Key key = key_of(name);
  State& state = states_[key];
  if (state.id == 0) {
    state.id = next_id_++;
    state.handle = reinterpret_cast<cudaStream_t>(key.handle);
    state.thread = key.thread;
  }
  return state;
}

std::shared_ptr<Mark> Streams::make_mark(StreamId stream) {
  cudaEvent_t event = nullptr;
  if (!spare_events_->empty()) {
    event = spare_events_->back();
    spare_events_->pop_back();
  } else if (real::event_create(&event) != cudaSuccess) {
    return nullptr;
  }
  // An event goes back when no fence names it; streams that wait for it have taken their snapshot at the call.
  return {new Mark{stream, next_sequence_++, event}, [spare = spare_events_](Mark* mark) {
            spare->push_back(mark->event);
            delete mark;
          }};
}

cudaError_t Streams::mark(State& state) {
  if (!state.unmarked_work) return cudaSuccess;
  auto made = make_mark(state.id);
  if (made == nullptr) return cudaErrorMemoryAllocation;
  if (const cudaError_t error = real::event_record(made->event, state.handle); error != cudaSuccess) return error;
  ++statistics_.events_recorded;
  state.last = std::move(made);
  state.unmarked_work = false;
  return cudaSuccess;
}

cudaError_t Streams::before_operation(StreamName name) {
  State& state = state_of(name);
  current_stream = state.id;
  if (state.owed_seen == owed_version_) return cudaSuccess;
  for (auto& [source, mark] : owed_) {
    if (source == state.id || mark->passed) continue;
    std::uint64_t& waited = state.waited[source];
    if (waited >= mark->sequence) continue;
    if (const cudaError_t error = real::stream_wait_event(state.handle, mark->event); error != cudaSuccess)
      return error;
    ++statistics_.waits_issued;
    waited = mark->sequence;
  }
  state.owed_seen = owed_version_;
  return cudaSuccess;
}

// After, not before: a free between the two would record its event before the operation and take the stream for marked.
void Streams::after_operation(StreamName name, bool touches_host) {
  State& state = state_of(name);
  state.unmarked_work = true;
  state.host_visible |= touches_host;
}

void Streams::synchronised(StreamName name) { state_of(name).host_visible = false; }

void Streams::all_synchronised() {
  for (auto& [key, state] : states_) state.host_visible = false;
}

cudaError_t Streams::before_destroy(cudaStream_t stream) {
  const auto found = states_.find(key_of({stream, false}));
  if (found == states_.end()) return cudaSuccess;
  const cudaError_t error = mark(found->second);
  if (found->second.last != nullptr) destroyed_.push_back(found->second.last);
  if (found->second.host_visible) {
    // A later free could not wait for it any more.
    real::stream_synchronize(stream);
    ++statistics_.host_waits;
  }
  states_.erase(found);
  return error;
}

cudaError_t Streams::fence(Fence& out) {
  const std::uint64_t thread = this_thread();
  for (auto& [key, state] : states_) {
    const bool foreign = state.thread != 0 && state.thread != thread;
    // Another thread's own stream can be reached from that thread alone.
    if (foreign && (state.unmarked_work || state.host_visible)) {
      if (const cudaError_t error = real::device_synchronize(); error != cudaSuccess) return error;
      ++statistics_.host_waits;
      for (auto& [other_key, other] : states_) {
        other.unmarked_work = other.host_visible = false;
        if (other.last != nullptr) other.last->passed = true;
      }
      for (auto& [source, owed] : owed_) owed->passed = true;
      destroyed_.clear();
      return cudaSuccess;
    }
  }
  for (auto& [key, state] : states_) {
    if (state.host_visible) {
      if (const cudaError_t error = real::stream_synchronize(state.handle); error != cudaSuccess) return error;
      ++statistics_.host_waits;
      state.host_visible = state.unmarked_work = false;
      if (state.last != nullptr) state.last->passed = true;
      continue;
    }
    if (const cudaError_t error = mark(state); error != cudaSuccess) return error;
    if (state.last != nullptr) out.add(state.last);
  }
  std::erase_if(destroyed_, [](const auto& mark) { return has_passed(*mark); });
  for (const auto& mark : destroyed_) out.add(mark);
  return cudaSuccess;
}

void Streams::owe(Fence& fence) {
  for (const auto& mark : fence.marks()) {
    if (mark->passed) continue;
    auto& owed = owed_[mark->stream];
    if (owed != nullptr && owed->sequence >= mark->sequence) continue;
    owed = mark;
    ++owed_version_;
  }
  // Streams that are gone would stay here for ever.
  if (owed_.size() > states_.size() + 16)
    std::erase_if(owed_, [](const auto& entry) { return has_passed(*entry.second); });
}

StreamId Streams::current() const { return current_stream; }

void Streams::forget_all() {
  states_.clear();
  destroyed_.clear();
  owed_.clear();
  // The context that the events belonged to is gone.
  spare_events_ = std::make_shared<std::vector<cudaEvent_t>>();
}

}  // namespace caching_pool
