#include "generator.h"

#include <algorithm>
#include <utility>

namespace memopt::order {
namespace {

constexpr int kMostBlocks = 14;
constexpr int kEvents = 6;
Program with_streams(std::uint64_t seed, std::mt19937_64& random, const GeneratorOptions& options) {
  Program program;
  program.seed = seed;
  program.threads = 1 + int(random() % std::uint64_t(options.most_threads));
  program.streams = {StreamKind::kLegacy, StreamKind::kPerThread};
  for (std::uint64_t more = 1 + random() % 4; more != 0; --more)
    program.streams.push_back(random() % 4 == 0 ? StreamKind::kBlocking : StreamKind::kNonBlocking);
  program.events = kEvents;
  return program;
}

OpSet one_of(std::size_t op) {
  OpSet set;
  set.set(op);
  return set;
}

}  // namespace

Program generate(std::uint64_t seed, const GeneratorOptions& options) { return Generator(seed, options).make(); }

Generator::Generator(std::uint64_t seed, const GeneratorOptions& options)
    : random_(seed * 0x9e3779b97f4a7c15u + 1),
      options_(options),
      program_(with_streams(seed, random_, options)),
      order_(program_.threads, program_.streams),
      events_(std::size_t(program_.events)),
      stream_made_(program_.streams.size(), kNone),
      stream_uses_(program_.streams.size()) {}

// --- what is done with the program

Program Generator::make() {
  for (int i = 0; i < options_.operations && program_.ops.size() < kMostOps - 150; ++i) one();
  for (std::size_t block = 0; block < blocks_.size() && program_.ops.size() < kMostOps - 40; ++block) {
    if (!blocks_[block].live) continue;
    const int thread = any_thread();
    if (one_in(2)) look(thread, int(block));
    release(thread, int(block));
  }
  // What is left is freed by the first thread, one after the other.
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block].live) release(0, int(block));
  }
  program_.slots = int(slots_.size());
  return std::move(program_);
}

void Generator::one() {
  const int thread = any_thread();
  const int live = int(std::count_if(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.live; }));
  const std::uint32_t choice = below(100);
  if (live < 2 || (choice < 16 && live < kMostBlocks)) return allocate(thread);
  const int block = any_live_block(thread);
  if (choice < 30) return release(thread, block);
  if (choice < 55) return write(thread, block);
  if (choice < 65) return copy(thread, block);
  if (choice < 76) return look(thread, block);
  if (choice < 84) {
    record(thread, any_stream(thread), free_event(thread));
    return;
  }
  if (choice < 88) return ask(thread);
  if (choice < 92) return wait(thread);
  if (choice < 96) return make_anew(thread);
  if (options_.host_functions) host_function();
}

int Generator::any_live_block(int thread) {
  std::vector<int> live;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].live) continue;
    live.push_back(int(i));
    // Most that a thread uses it has to itself, or it would always be waiting for another one.
    if (order_.thread_of(blocks_[i].uses.back()) == thread) live.insert(live.end(), 2, int(i));
  }
  return live[below(live.size())];
}

int Generator::any_stream(int thread) {
  static_cast<void>(thread);
  return one_in(6) ? int(below(2)) : 2 + int(below(program_.streams.size() - 2));
}

bool Generator::can_name(int thread, int stream) const {
  static_cast<void>(thread);
  return program_.streams[std::size_t(stream)] != StreamKind::kPerThread;
}

// --- emitting

// Host functions, copies, … are work; a free waits and queues nothing.
int Generator::queued_on(const Op& op) const {
  switch (op.kind) {
    case Kind::kAllocAsync:
    case Kind::kFreeAsync:
    case Kind::kMemset:
    case Kind::kFill:
    case Kind::kAdd:
    case Kind::kCopy:
    case Kind::kCopyIn:
    case Kind::kCopyOut:
    case Kind::kCopyOutNow:
    case Kind::kCheckFunction:
    case Kind::kWaitFunction:
    case Kind::kRecord:
    case Kind::kWaitEvent:
      return op.stream;
    default:
      return -1;
  }
}

void Generator::await(Op& op, std::size_t other) {
  if (order_.await(op.thread, other)) op.awaits.emplace_back(order_.thread_of(other), order_.call_of(other) + 1);
}

// For an operation that is made elsewhere.
void Generator::await_next(int thread, std::size_t other) {
  Op waiting{.thread = thread};
  await(waiting, other);
  waits_ = std::move(waiting.awaits);
}

void Generator::await_uses(Op& op, const std::vector<std::size_t>& uses) {
  for (const std::size_t use : uses) await(op, use);
}

std::size_t Generator::emit(Op op, const OpSet& extra) {
  // The slot's stream must be there.
  if (op.stream >= 0 && op.kind != Kind::kNewStream) {
    if (const std::size_t made = stream_made_[std::size_t(op.stream)]; made != kNone) await(op, made);
  }
  op.awaits.insert(op.awaits.end(), waits_.begin(), waits_.end());
  waits_.clear();
  const std::size_t index = order_.add(op.thread, queued_on(op), extra);
  if (op.stream >= 0 && op.kind != Kind::kNewStream) stream_uses_[std::size_t(op.stream)].push_back(index);
  program_.ops.push_back(std::move(op));
  return index;
}

std::size_t Generator::record(int thread, int stream, int event) {
  Op op{.kind = Kind::kRecord, .thread = thread, .stream = stream, .event = event};
  Event& its = events_[std::size_t(event)];
  await_uses(op, its.uses);
  const std::size_t index = emit(std::move(op));
  const bool covers = its.record != kNone && (order_.before_of(its.record) & ~order_.before_of(index)).none();
  its.older = covers ? its.record : kNone;
  its.record = index;
  its.uses.assign(1, index);
  if (its.made != kNone) its.uses.push_back(its.made);
  return index;
}

// One whose uses have all returned already, if there is any: waiting for the others costs concurrency.
int Generator::free_event(int thread) {
  std::vector<int> idle;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const auto& uses = events_[i].uses;
    if (std::all_of(uses.begin(), uses.end(), [&](std::size_t use) { return order_.has_returned(thread, use); }))
      idle.push_back(int(i));
  }
  return idle.empty() ? int(below(events_.size())) : idle[below(idle.size())];
}

// --- order

// A thread that waits for an event while another one records it anew waits for the older record or for the newer one,
// and relies on the older.
std::size_t Generator::recorded_for(int thread, const Event& event) const {
  const bool between =
      event.older != kNone && order_.has_returned(thread, event.older) && !order_.has_returned(thread, event.record);
  return between ? event.older : event.record;
}

bool Generator::order_by_event(int thread, int stream, std::size_t earlier) {
  // One that was recorded after it does.
  int event = -1;
  std::size_t awaited = kNone;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].record == kNone || one_in(4)) continue;
    const std::size_t candidate = recorded_for(thread, events_[i]);
    if (!order_.before_of(candidate).test(earlier)) continue;
    event = int(i);
    awaited = candidate;
  }
  if (event < 0) {
    if (!order_.is_current(earlier)) return false;
    const int recorded = order_.stream_of(earlier);
    const int recorder = !can_name(thread, recorded) || one_in(2) ? order_.thread_of(earlier) : thread;
    await_next(recorder, earlier);
    event = free_event(recorder);
    awaited = record(recorder, recorded, event);
  }
  Event& its = events_[std::size_t(event)];
  Op op{.kind = Kind::kWaitEvent, .thread = thread, .stream = stream, .event = event};
  await(op, awaited);
  its.uses.push_back(emit(std::move(op), order_.before_of(awaited)));
  return true;
}

void Generator::order(int thread, int stream, const OpSet& needed) {
  for (std::size_t op = 0; op < program_.ops.size(); ++op) {
    if (!needed.test(op) || order_.before(thread, stream).test(op)) continue;
    if (!one_in(8) && order_by_event(thread, stream, op)) continue;
    finish(thread, one_of(op));
  }
}

void Generator::sync_stream(int thread, std::size_t earlier) {
  Op op{.kind = Kind::kSyncStream, .thread = thread, .stream = order_.stream_of(earlier)};
  await(op, earlier);
  emit(std::move(op));
  order_.learn(thread, order_.through(thread, order_.stream_of(earlier)));
  order_.publish();
}

void Generator::finish(int thread, const OpSet& needed) {
  for (std::size_t earlier = 0; earlier < program_.ops.size(); ++earlier) {
    if (!needed.test(earlier) || order_.over(thread).test(earlier)) continue;
    if (order_.is_current(earlier) &&
        (can_name(thread, order_.stream_of(earlier)) || order_.thread_of(earlier) == thread) && !one_in(4)) {
      sync_stream(thread, earlier);
      continue;
    }
    for (std::size_t i = 0; i < events_.size(); ++i) {
      Event& event = events_[i];
      if (event.record == kNone || !order_.before_of(event.record).test(earlier)) continue;
      Op op{.kind = one_in(2) ? Kind::kSyncEvent : Kind::kPollEvent, .thread = thread, .event = int(i)};
      await(op, event.record);
      event.uses.push_back(emit(std::move(op)));
      order_.learn(thread, order_.before_of(event.record));
      order_.publish();
      break;
    }
    if (order_.over(thread).test(earlier)) continue;
    Op op{.kind = Kind::kSyncContext, .thread = thread};
    await(op, earlier);
    emit(std::move(op));
    order_.learn(thread, order_.through_all(thread));
    order_.publish();
  }
}

}  // namespace memopt::order
