// Engine's public face: contexts, streams, work, waits.
#include "device/engine.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "checker/checker.h"
#include "device/engine_impl.h"

namespace cudasim {
namespace {

// Handles are numbers in a part of the address space where nothing lives: never used twice, and a program that looks
// inside faults.
constexpr std::uintptr_t kStreamHandles = 0x0600'0000'0000, kEventHandles = 0x0680'0000'0000, kHandleStep = 0x100;

// A query that finds a host function of the right virtual time still running gives it this long (wall time), so that
// the answer depends on the machine only if the host function waits for the program.
constexpr std::chrono::milliseconds kQueryPatience{20};

// Polling makes progress even if the device file says that calls cost nothing.
constexpr Duration kLeastPoll{100};

template <typename Handle>
Handle as_handle(std::uintptr_t value) {
  return reinterpret_cast<Handle>(value);
}

}  // namespace

// --- construction
// ------------------------------------------------------------------------------------------------------------

Engine::Impl::Impl(const Config& the_config, Counters& the_counters, Checker& the_checker, std::mutex& the_driver_mutex)
    : config(the_config),
      counters(the_counters),
      checker(the_checker),
      driver_mutex(the_driver_mutex),
      callbacks(the_driver_mutex, [this] { bytes.hurry_host_functions(); }),
      bytes(the_config.seed, the_checker, callbacks,
            ByteRunner::Hooks{
                .in_error = [this](const Operation& operation) { return sticky(operation.context) != CUDA_SUCCESS; },
                .failed =
                    [this](const Operation& operation, CUresult error) {
                      const auto context = contexts.find(operation.context);
                      if (context != contexts.end() && context->second.sticky == CUDA_SUCCESS)
                        context->second.sticky = error;
                    },
                .host_function_ran =
                    [this](Operation& operation) {
                      // It is host code: it may have told other host threads, and they may have told it.
                      host_learns(operation);
                      operation.clock.join(host_clock);
                    },
                .finished = [this](Operation& operation) { retire(operation); },
            }),
      timeline_file(the_config.timeline),
      timeline(the_counters, [this](Operation& operation) {
        timeline_file.add(operation);
        bytes.timed(operation);
        retire(operation);
      }) {
  host_actor = checker.add_actor("the host");
  host_clock.set(host_actor, 1);
}

Engine::Impl::~Impl() {
  callbacks.stop();
  for (auto& [sequence, operation] : live) operation->predecessors.clear();  // else chains are destroyed by recursion
}

Engine::Engine(const Config& config, Counters& counters, Checker& checker, std::mutex& driver_mutex)
    : impl_(std::make_unique<Impl>(config, counters, checker, driver_mutex)) {}
Engine::~Engine() = default;

// --- host clocks
// -------------------------------------------------------------------------------------------------------------

HostThread& Engine::Impl::enter() {
  check_host_accesses();
  return threads.current_started();
}

void Engine::Impl::check_host_accesses() {
  threads.collect([this](const HostThread& thread, const AccessLog& log) {
    checker.check(host_actor, host_clock, "access by thread " + std::to_string(thread.number), log);
  });
}

void Engine::Impl::advance(HostThread& thread) {
  timeline.advance(thread.clock);
  bytes.advance(timeline.now());
}

TimePoint Engine::host_now() { return impl_->enter().clock; }

void Engine::charge(Duration cost) {
  HostThread& thread = impl_->enter();
  impl_->threads.move_clock(thread, thread.clock + std::max(cost, Duration::zero()));
  impl_->advance(thread);
}

void Engine::finish_timeline() { impl_->timeline_file.finish(); }

TimePoint Engine::device_now() const { return impl_->timeline.now(); }

// --- contexts
// ----------------------------------------------------------------------------------------------------------------

void Engine::add_context(ContextId context) { impl_->contexts.try_emplace(context); }

void Engine::remove_context(ContextId context) {
  if (!impl_->contexts.contains(context)) return;
  HostThread& thread = impl_->enter();
  impl_->wait(thread, context, impl_->tails(context));
  std::erase_if(impl_->streams, [&](const auto& entry) { return entry.second->context == context; });
  std::erase_if(impl_->events, [&](const auto& entry) { return entry.second->context == context; });
  if (const auto found = impl_->contexts.find(context); found != impl_->contexts.end()) {
    for (const StreamPtr& stream : found->second.streams) stream->destroyed = true;
    impl_->purge_streams(found->second);
    impl_->contexts.erase(found);
  }
}

CUresult Engine::Impl::sticky(ContextId context) const {
  const auto found = contexts.find(context);
  return found == contexts.end() ? CUDA_SUCCESS : found->second.sticky;
}

CUresult Engine::sticky_error(ContextId context) const { return impl_->sticky(context); }

CUresult Engine::tell_sticky_error(ContextId context) {
  const CUresult error = impl_->sticky(context);
  if (error == CUDA_SUCCESS) return error;
  for (const OperationPtr& last : impl_->tails(context)) impl_->host_learns(*last);
  return error;
}

void Engine::set_sticky_error(ContextId context, CUresult error) {
  const auto found = impl_->contexts.find(context);
  if (found != impl_->contexts.end() && found->second.sticky == CUDA_SUCCESS) found->second.sticky = error;
}

// --- streams
// -----------------------------------------------------------------------------------------------------------------

StreamPtr Engine::Impl::make_stream(ContextId context, StreamKind kind, CUstream handle, unsigned flags, int priority) {
  ContextState& state = contexts.at(context);
  purge_streams(state);
  auto stream = std::make_shared<Stream>();
  stream->kind = kind;
  stream->context = context;
  stream->handle = handle;
  stream->id = next_stream++;
  stream->flags = flags;
  stream->priority = priority;
  std::string name = "stream " + std::to_string(stream->id);
  if (kind == StreamKind::kLegacy) name = "the legacy stream";
  if (kind == StreamKind::kPerThread) name = "the default stream of thread " + std::to_string(threads.current().number);
  if (free_actors.empty()) {
    stream->actor = checker.add_actor(std::move(name));
  } else {
    std::tie(stream->actor, stream->steps) = free_actors.back();
    free_actors.pop_back();
    checker.rename_actor(stream->actor, std::move(name));
  }
  state.streams.push_back(stream);
  return stream;
}

// A stream's number in the vector clocks is used again once the host knows of all its work: what comes on it later is
// ordered behind anyway.
void Engine::Impl::purge_streams(ContextState& context) {
  std::erase_if(context.streams, [this](const StreamPtr& stream) {
    if (!stream->destroyed) return false;
    if (stream->tail && !(stream->tail->run && stream->tail->ended(timeline.now()))) return false;
    if (host_clock.of(stream->actor) < stream->steps) return false;
    free_actors.emplace_back(stream->actor, stream->steps);
    return true;
  });
}

CUresult Engine::create_stream(ContextId context, unsigned flags, int priority, CUstream* out) {
  if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!impl_->contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  impl_->enter();
  const auto handle = as_handle<CUstream>(kStreamHandles + impl_->next_stream * kHandleStep);
  impl_->streams.emplace(handle, impl_->make_stream(context, StreamKind::kCreated, handle, flags, priority));
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult Engine::destroy_stream(CUstream handle) {
  const auto found = impl_->streams.find(handle);
  if (found == impl_->streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  impl_->enter();
  const StreamPtr stream = found->second;
  stream->destroyed = true;
  stream->queue.clear();
  impl_->streams.erase(found);
  impl_->purge_streams(impl_->contexts.at(stream->context));
  return CUDA_SUCCESS;
}

Stream* Engine::find_stream(ContextId context, CUstream handle, StreamMode mode) {
  const bool legacy = handle == CU_STREAM_LEGACY || (handle == nullptr && mode == StreamMode::kLegacy);
  const bool per_thread = handle == CU_STREAM_PER_THREAD || (handle == nullptr && mode == StreamMode::kPerThread);
  if (!legacy && !per_thread) {
    const auto found = impl_->streams.find(handle);
    return found == impl_->streams.end() ? nullptr : found->second.get();
  }
  const auto state = impl_->contexts.find(context);
  if (state == impl_->contexts.end()) return nullptr;
  StreamPtr& stream = legacy ? state->second.legacy : state->second.per_thread[impl_->enter().number];
  if (!stream) {
    stream = impl_->make_stream(context, legacy ? StreamKind::kLegacy : StreamKind::kPerThread,
                                legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD, CU_STREAM_DEFAULT, 0);
  }
  return stream.get();
}

ContextId Engine::context_of(const Stream& stream) const { return stream.context; }

// --- work
// --------------------------------------------------------------------------------------------------------------------

OperationPtr Engine::Impl::make_operation(Stream& stream, Work work, HostThread& thread) {
  auto operation = std::make_shared<Operation>();
  operation->sequence = next_sequence++;
  operation->actor = stream.actor;
  operation->context = stream.context;
  operation->work = std::move(work);
  operation->ready = thread.clock;
  return operation;
}

std::vector<OperationPtr> Engine::Impl::predecessors(const Stream& stream) const {
  std::vector<OperationPtr> before;
  if (stream.tail) before.push_back(stream.tail);
  const ContextState& context = contexts.at(stream.context);
  if (stream.kind == StreamKind::kLegacy) {
    for (const StreamPtr& other : context.streams) {
      if (other->blocking() && other->tail) before.push_back(other->tail);
    }
  } else if (stream.blocking() && context.legacy && context.legacy->tail) {
    before.push_back(context.legacy->tail);
  }
  return before;
}

void Engine::Impl::submit(Stream& stream, const OperationPtr& operation, const std::vector<OperationPtr>& extra,
                          const std::vector<OperationPtr>& ran_before) {
  std::vector<OperationPtr> before = predecessors(stream);
  before.insert(before.end(), extra.begin(), extra.end());
  const auto link_all = [&](const std::vector<OperationPtr>& group) {
    for (const OperationPtr& predecessor : group) {
      Timeline::link(*predecessor, *operation);
      ByteRunner::link(predecessor, *operation);
    }
  };
  link_all(before);
  link_all(ran_before);
  if (checker.enabled()) {
    for (const OperationPtr& predecessor : before) operation->clock.join(predecessor->clock);
    operation->clock.join(host_clock);
    operation->clock.set(stream.actor, ++stream.steps);
    host_clock.set(host_actor,
                   host_clock.of(host_actor) + 1);  // what the host does from now on is not known to the operation
  }
  if (order_tracked) {
    for (const OperationPtr& predecessor : before) operation->order.join(predecessor->order);
    operation->order.join(synchronized);
    operation->order.set(stream.actor, operation->sequence);
  }
  stream.tail = operation;
  live.emplace(operation->sequence, operation);
  bytes.add(*operation);
  timeline.add(*operation);
}

void Engine::Impl::retire(Operation& operation) {
  if (operation.timed && operation.run) live.erase(operation.sequence);
}

void Engine::Impl::wait_for_room(Stream& stream, HostThread& thread) {
  const std::size_t depth = config.device.launch_queue_depth;
  if (depth == 0) return;
  while (!stream.queue.empty() && stream.queue.front()->ended(thread.clock)) stream.queue.pop_front();
  if (stream.queue.size() < depth) return;
  const OperationPtr first = stream.queue.front();
  timeline.settle(*first);
  threads.move_clock(thread, first->end);
  advance(thread);
  while (!stream.queue.empty() && stream.queue.front()->ended(thread.clock)) stream.queue.pop_front();
}

void Engine::enqueue(Stream& stream, Work work) {
  HostThread& thread = impl_->enter();
  impl_->wait_for_room(stream, thread);
  const OperationPtr operation = impl_->make_operation(stream, std::move(work), thread);
  stream.queue.push_back(operation);
  impl_->submit(stream, operation, {});
}

// --- waits
// -------------------------------------------------------------------------------------------------------------------

std::vector<OperationPtr> Engine::Impl::tails(const Stream& stream) const {
  std::vector<OperationPtr> out;
  if (stream.tail) out.push_back(stream.tail);
  // Waiting for the legacy stream is like queueing something on it and waiting for that: it waits for the blocking
  // streams.
  if (stream.kind == StreamKind::kLegacy) {
    for (const StreamPtr& other : contexts.at(stream.context).streams) {
      if (other->blocking() && other->tail) out.push_back(other->tail);
    }
  }
  return out;
}

std::vector<OperationPtr> Engine::Impl::tails(ContextId context) const {
  std::vector<OperationPtr> out;
  const auto found = contexts.find(context);
  if (found == contexts.end()) return out;
  for (const StreamPtr& stream : found->second.streams) {
    if (stream->tail) out.push_back(stream->tail);
  }
  return out;
}

void Engine::Impl::host_learns(const Operation& operation) {
  if (checker.enabled()) host_clock.join(operation.clock);
}

void Engine::Impl::host_waited(const Operation& operation) {
  host_learns(operation);
  seen_to_end = std::max(seen_to_end, operation.end);
  if (order_tracked) synchronized.join(operation.order);
}

CUresult Engine::Impl::wait(HostThread& thread, ContextId context, std::vector<OperationPtr> targets) {
  // The callback thread would wait for itself.
  if (CallbackThread::is_this_thread()) return CUDA_ERROR_NOT_PERMITTED;
  ++counters.totals.host_synchronizations;
  TimePoint end = thread.clock;
  for (const OperationPtr& target : targets) {
    timeline.settle(*target);
    end = std::max(end, target->end);
  }
  threads.move_clock(thread, end);
  advance(thread);
  bytes.require(targets);
  for (const OperationPtr& target : targets) host_waited(*target);
  pace();
  return sticky(context);
}

void Engine::Impl::pace() {
  if (config.pace <= 0) return;
  const auto virtual_now = std::chrono::duration<double, std::nano>(threads.current_started().clock.time_since_epoch());
  const auto due =
      wall_start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(virtual_now * config.pace);
  if (std::chrono::steady_clock::now() >= due) return;
  driver_mutex.unlock();
  std::this_thread::sleep_until(due);
  driver_mutex.lock();
}

CUresult Engine::Impl::query(HostThread& thread, ContextId context, const std::vector<OperationPtr>& targets) {
  advance(thread);
  // A thread whose clock is behind may have been told by the one that has waited.
  const TimePoint known = std::max(thread.clock, seen_to_end);
  const bool ended =
      std::all_of(targets.begin(), targets.end(), [&](const OperationPtr& target) { return target->ended(known); });
  if (!ended || !bytes.try_require(targets, kQueryPatience)) {
    if (thread.last_not_ready == thread.clock) threads.move_clock(thread, thread.clock + kLeastPoll);
    thread.last_not_ready = thread.clock;
    const CUresult error = sticky(context);
    return error != CUDA_SUCCESS ? error : CUDA_ERROR_NOT_READY;
  }
  for (const OperationPtr& target : targets) {
    threads.move_clock(thread, target->end);
    host_waited(*target);
  }
  return sticky(context);
}

CUresult Engine::wait(Stream& stream) {
  HostThread& thread = impl_->enter();
  return impl_->wait(thread, stream.context, impl_->tails(stream));
}

CUresult Engine::wait_context(ContextId context) {
  HostThread& thread = impl_->enter();
  return impl_->wait(thread, context, impl_->tails(context));
}

CUresult Engine::query(Stream& stream) {
  HostThread& thread = impl_->enter();
  return impl_->query(thread, stream.context, impl_->tails(stream));
}

// --- events
// ------------------------------------------------------------------------------------------------------------------

CUresult Engine::Impl::create_event(ContextId context, unsigned flags, CUevent* out) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  auto event = std::make_shared<Event>();
  event->context = context;
  event->handle = as_handle<CUevent>(kEventHandles + next_event++ * kHandleStep);
  event->flags = flags;
  events.emplace(event->handle, event);
  *out = event->handle;
  return CUDA_SUCCESS;
}

CUresult Engine::Impl::destroy_event(CUevent handle) {
  return events.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EventPtr Engine::Impl::find_event(CUevent handle) const {
  const auto found = events.find(handle);
  return found == events.end() ? nullptr : found->second;
}

void Engine::Impl::record(Event& event, Stream& stream) {
  HostThread& thread = enter();
  event.captured = nullptr;
  event.captured_behind.clear();
  event.recorded = make_operation(stream, Work{.name = "event record"}, thread);
  submit(stream, event.recorded, {});
}

void Engine::Impl::wait_event(Stream& stream, const Event& event) {
  HostThread& thread = enter();
  if (!event.recorded) return;
  submit(stream, make_operation(stream, Work{.name = "event wait"}, thread), {event.recorded});
}

CUresult Engine::Impl::synchronize(const Event& event) {
  HostThread& thread = enter();
  std::vector<OperationPtr> targets;
  if (event.recorded) targets.push_back(event.recorded);
  return wait(thread, event.context, std::move(targets));
}

CUresult Engine::Impl::query(const Event& event) {
  HostThread& thread = enter();
  std::vector<OperationPtr> targets;
  if (event.recorded) targets.push_back(event.recorded);
  return query(thread, event.context, targets);
}

CUresult Engine::Impl::elapsed(const Event& start, const Event& end, Duration* out) {
  if (!start.timed() || !end.timed() || !start.recorded || !end.recorded) return CUDA_ERROR_INVALID_HANDLE;
  const OperationPtr from = start.recorded, to = end.recorded;
  const CUresult result = query(enter(), start.context, {from, to});
  if (result == CUDA_SUCCESS) *out = to->end - from->end;
  return result;
}

// --- checker's view, end
// -----------------------------------------------------------------------------------------------------

void Engine::host_access(const void* address, std::size_t size, bool write) {
  impl_->threads.log_access(reinterpret_cast<std::uintptr_t>(address), size, write);
}

void Engine::drain(std::chrono::milliseconds patience) {
  impl_->check_host_accesses();
  std::vector<OperationPtr> all;
  for (const auto& [sequence, operation] : impl_->live) all.push_back(operation);
  std::sort(all.begin(), all.end(),
            [](const OperationPtr& a, const OperationPtr& b) { return a->sequence < b->sequence; });
  TimePoint end = impl_->timeline.now();
  for (const OperationPtr& operation : all) {
    impl_->timeline.settle(*operation);
    end = std::max(end, operation->end);
  }
  impl_->timeline.advance(end);
  impl_->bytes.advance(end);
  if (!impl_->bytes.try_require(all, patience)) {
    std::fprintf(stderr, "cudasim: a host function did not return; what comes after it in its stream has not run\n");
  }
  impl_->check_host_accesses();
}

bool Engine::on_callback_thread() { return CallbackThread::is_this_thread(); }

}  // namespace cudasim
