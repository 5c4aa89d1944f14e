// The operations that the generator draws.
#include <algorithm>
#include <utility>

#include "generator.h"

namespace memopt::order {
namespace {

constexpr BlockShape kShapes[] = {{512, 128, false},      {4096, 1024, false},   {4096, 1024, false},
                                  {8192, 2048, false},    {70'000, 1024, false}, {1u << 20, 1024, false},
                                  {3u << 20, 2048, false}};

}  // namespace

OpSet Generator::needed_by(int block, bool writes) const {
  const Block& its = blocks_[std::size_t(block)];
  OpSet needed;
  if (its.writer != kNone) needed.set(its.writer);
  if (writes) {
    for (const std::size_t reader : its.readers) needed.set(reader);
  }
  return needed;
}

void Generator::use(std::size_t op, int block, bool writes) {
  Block& its = blocks_[std::size_t(block)];
  its.uses.push_back(op);
  if (writes) {
    its.writer = op;
    its.readers.clear();
  } else {
    its.readers.push_back(op);
  }
}

void Generator::allocate(int thread) {
  const int block = int(blocks_.size());
  BlockShape shape = kShapes[below(std::size(kShapes))];
  shape.pooled = one_in(3);
  program_.blocks.push_back(shape);
  blocks_.emplace_back();
  const int stream = any_stream(thread);
  Op op{.kind = shape.pooled ? Kind::kAllocAsync : Kind::kAlloc,
        .thread = thread,
        .stream = shape.pooled ? stream : -1,
        .block = block};
  const std::size_t index = emit(std::move(op));
  Block& its = blocks_.back();
  its.allocated = index;
  its.live = true;
  its.uses.push_back(index);
  if (shape.pooled) its.writer = index;
  write(thread, block);
}

void Generator::release(int thread, int block) {
  Block& its = blocks_[std::size_t(block)];
  its.live = false;
  if (program_.blocks[std::size_t(block)].pooled) {
    const int stream = any_stream(thread);
    order(thread, stream, needed_by(block, true));
    Op op{.kind = Kind::kFreeAsync, .thread = thread, .stream = stream, .block = block};
    await(op, its.allocated);
    use(emit(std::move(op)), block, true);
    return;
  }
  Op op{.kind = Kind::kFree, .thread = thread, .block = block};
  await_uses(op, its.uses);
  emit(std::move(op));
  if (!options_.free_is_a_barrier) return;
  order_.learn(thread, order_.through_all(thread));
  order_.publish();
  if (one_in(2)) ask(thread);
}

void Generator::write(int thread, int block) {
  Block& its = blocks_[std::size_t(block)];
  const int stream = any_stream(thread);
  const std::uint32_t choice = below(8);
  Op op{.kind = Kind::kMemset, .thread = thread, .stream = stream, .block = block, .content = any_content()};
  if (one_in(3)) op.nanoseconds = 1000 * (1 + below(500));
  if (choice < 3) {
    op.kind = Kind::kFill;
  } else if (choice < 5) {
    op.kind = Kind::kCopyIn;
    op.slot = int(slots_.size());
    slots_.push_back({.copied = kNone, .content = op.content});
  }
  order(thread, stream, needed_by(block, true));
  await(op, its.allocated);
  const Content content = op.content;
  use(emit(std::move(op)), block, true);
  blocks_[std::size_t(block)].content = content;
}

void Generator::copy(int thread, int block) {
  std::vector<int> like;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].live && int(i) != block && program_.blocks[i].words == program_.blocks[std::size_t(block)].words)
      like.push_back(int(i));
  }
  if (like.empty()) return write(thread, block);
  const int source = like[below(like.size())];
  const int stream = any_stream(thread);
  const bool adds = one_in(2);
  order(thread, stream, needed_by(block, true) | needed_by(source, false));
  const Content from = blocks_[std::size_t(source)].content;
  Content& content = blocks_[std::size_t(block)].content;
  content = adds ? Content{content.base + from.base, content.step + from.step} : from;
  Op op{.kind = adds ? Kind::kAdd : Kind::kCopy, .thread = thread, .stream = stream, .block = block, .source = source};
  if (one_in(3)) op.nanoseconds = 1000 * (1 + below(500));
  await(op, blocks_[std::size_t(block)].allocated);
  await(op, blocks_[std::size_t(source)].allocated);
  const std::size_t index = emit(std::move(op));
  use(index, block, true);
  use(index, source, false);
}

void Generator::look(int thread, int block) {
  Block& its = blocks_[std::size_t(block)];
  const bool now = one_in(4);
  const int stream = now ? 0 : any_stream(thread);
  order(thread, stream, needed_by(block, false));
  Op op{.kind = now ? Kind::kCopyOutNow : Kind::kCopyOut,
        .thread = thread,
        .stream = stream,
        .block = block,
        .content = its.content};
  await(op, its.allocated);
  const int slot = int(slots_.size());
  if (!now) {
    op.slot = slot;
    slots_.push_back({.copied = kNone, .content = its.content});
  }
  const std::size_t index = emit(std::move(op));
  use(index, block, false);
  if (now) {
    order_.learn(thread, order_.before_of(index));
    order_.publish();
    return;
  }
  slots_[std::size_t(slot)].copied = index;
  const std::uint32_t choice = below(4);
  const Content content = slots_[std::size_t(slot)].content;
  if (choice == 0 && options_.host_functions) {
    const int after = one_in(2) ? stream : any_stream(thread);
    OpSet needed;
    needed.set(index);
    order(thread, after, needed);
    emit({.kind = Kind::kCheckFunction, .thread = thread, .stream = after, .slot = slot, .content = content});
  } else if (choice == 1) {
    const int reader = any_thread();
    OpSet needed;
    needed.set(index);
    finish(reader, needed);
    emit({.kind = Kind::kCompareSlot, .thread = reader, .slot = slot, .content = content});
  }
}

// The function waits for a flag that another thread sets, whose calls so far have returned, and which waits for nothing
// before it has set it: so it does, whatever all others wait for.
void Generator::host_function() {
  if (program_.threads < 2) return;
  const int thread = any_thread();
  const int other = (thread + 1 + int(below(std::size_t(program_.threads) - 1))) % program_.threads;
  const int stream = any_stream(thread);
  // Streams that the other thread's work goes to are made, and it knows.
  for (std::size_t i = 0; i < stream_made_.size(); ++i) {
    if (stream_made_[i] != kNone && !order_.has_returned(other, stream_made_[i]))
      emit({.kind = Kind::kQueryStream, .thread = other, .stream = int(i)});
  }
  Op op{.kind = Kind::kWaitFunction, .thread = thread, .stream = stream, .flag = program_.flags};
  for (std::size_t i = program_.ops.size(); i-- > 0;) {
    if (order_.thread_of(i) != other) continue;
    await(op, i);
    break;
  }
  emit(std::move(op));
  for (std::uint32_t tries = below(6); tries != 0; --tries) {
    const int block = any_live_block(other);
    const int on = any_stream(other);
    Block& its = blocks_[std::size_t(block)];
    if ((needed_by(block, true) & ~order_.before(other, on)).any() || !order_.has_returned(other, its.allocated))
      continue;
    const Content content = any_content();
    use(emit({.kind = one_in(2) ? Kind::kFill : Kind::kMemset,
              .thread = other,
              .stream = on,
              .block = block,
              .content = content}),
        block, true);
    its.content = content;
  }
  emit({.kind = Kind::kSetFlag, .thread = other, .flag = program_.flags++});
}

void Generator::ask(int thread) {
  if (one_in(4)) {
    emit({.kind = Kind::kQueryStream, .thread = thread, .stream = any_stream(thread)});
    return;
  }
  std::vector<int> over, recorded;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const std::size_t record = events_[i].record;
    if (record == kNone) continue;
    recorded.push_back(int(i));
    if (order_.over(thread).test(record) && order_.has_returned(thread, record)) over.push_back(int(i));
  }
  if (recorded.empty()) return;
  Op op{.kind = Kind::kQueryEvent, .thread = thread};
  if (!over.empty() && !one_in(4)) {
    op.kind = over.size() > 1 && one_in(3) ? Kind::kElapsed : Kind::kQueryOver;
    op.event = over[below(over.size())];
    if (op.kind == Kind::kElapsed) op.other_event = over[below(over.size())];
  } else {
    op.event = recorded[below(recorded.size())];
  }
  await(op, events_[std::size_t(op.event)].record);
  const int event = op.event, other = op.other_event;
  const std::size_t index = emit(std::move(op));
  events_[std::size_t(event)].uses.push_back(index);
  if (other >= 0 && other != event) events_[std::size_t(other)].uses.push_back(index);
}

void Generator::wait(int thread) {
  const std::uint32_t choice = below(6);
  if (choice == 0) {
    emit({.kind = Kind::kSyncContext, .thread = thread});
    order_.learn(thread, order_.through_all(thread));
    order_.publish();
  } else if (choice < 4) {
    const int stream = any_stream(thread);
    emit({.kind = Kind::kSyncStream, .thread = thread, .stream = stream});
    order_.learn(thread, order_.through(thread, stream));
    order_.publish();
  } else {
    const int event = int(below(events_.size()));
    Event& its = events_[std::size_t(event)];
    if (its.record == kNone) return;
    Op op{.kind = Kind::kWaitEvent, .thread = thread, .stream = any_stream(thread), .event = event};
    const std::size_t recorded = recorded_for(thread, its);
    await(op, recorded);
    its.uses.push_back(emit(std::move(op), order_.before_of(recorded)));
  }
}

void Generator::make_anew(int thread) {
  if (one_in(2)) {
    const int event = free_event(thread);
    Event& its = events_[std::size_t(event)];
    Op op{.kind = Kind::kNewEvent, .thread = thread, .event = event};
    await_uses(op, its.uses);
    const std::size_t index = emit(std::move(op));
    its = {.record = kNone, .older = kNone, .uses = {index}, .made = index};
    return;
  }
  const int stream = 2 + int(below(program_.streams.size() - 2));
  Op op{.kind = Kind::kNewStream, .thread = thread, .stream = stream};
  await_uses(op, stream_uses_[std::size_t(stream)]);
  const std::size_t index = emit(std::move(op));
  order_.replace_stream(stream);
  stream_made_[std::size_t(stream)] = index;
  stream_uses_[std::size_t(stream)].assign(1, index);
}

}  // namespace memopt::order
