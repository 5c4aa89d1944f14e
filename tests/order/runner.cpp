#include "runner.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "cudasim/cudasim.h"

namespace memopt::order {

Runner::Runner(const Program& program, const Kernels& kernels, CUcontext context)
    : program_(program),
      kernels_(kernels),
      context_(context),
      blocks_(program.blocks.size()),
      streams_(program.streams.size()),
      events_(std::size_t(program.events)),
      of_thread_(std::size_t(program.threads)),
      calls_(std::size_t(program.threads)),
      flags_(std::size_t(program.flags)) {
  for (std::size_t i = 0; i < streams_.size(); ++i) make_stream(int(i));
  for (CUevent& event : events_) check(cuEventCreate(&event, CU_EVENT_DEFAULT), 0);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    of_thread_[std::size_t(program.ops[i].thread)].push_back(i);
    functions_.push_back({this, i});
  }
  const std::size_t bytes = std::size_t(std::max(program.slots, 1)) * Program::kSlotWords * sizeof(std::uint32_t);
  check(cuMemAllocHost(reinterpret_cast<void**>(&slots_), bytes), 0);
}

Runner::~Runner() {
  for (std::size_t i = 2; i < streams_.size(); ++i) check(cuStreamDestroy(streams_[i]), 0);
  for (const CUevent event : events_) check(cuEventDestroy(event), 0);
  check(cuMemFreeHost(slots_), 0);
}

void Runner::run(std::uint32_t iterations) {
  std::vector<std::thread> others;
  for (int thread = 1; thread < program_.threads; ++thread) {
    others.emplace_back([this, thread, iterations] {
      check(cuCtxSetCurrent(context_), 0);
      run_thread(thread, iterations);
    });
  }
  run_thread(0, iterations);
  for (std::thread& other : others) other.join();
}

void Runner::run_thread(int thread, std::uint32_t iterations) {
  for (std::uint32_t i = 0; i < iterations; ++i) {
    for (const std::size_t op : of_thread_[std::size_t(thread)]) {
      await(program_.ops[op]);
      execute(op);
      const std::lock_guard lock(mutex_);
      ++calls_[std::size_t(thread)];
      changed_.notify_all();
    }
    meet(thread);
  }
}

void Runner::meet(int thread) {
  std::unique_lock lock(mutex_);
  const std::uint64_t meeting = meetings_;
  ++there_;
  changed_.notify_all();
  if (thread != 0) {
    changed_.wait(lock, [&] { return meetings_ != meeting; });
    return;
  }
  changed_.wait(lock, [&] { return there_ == program_.threads; });
  lock.unlock();
  end_iteration();
  lock.lock();
  there_ = 0;
  ++meetings_;
  changed_.notify_all();
}

void Runner::end_iteration() {
  check(cuCtxSynchronize(), program_.ops.size() - 1);
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    const Op& op = program_.ops[i];
    if (op.kind != Kind::kCopyOut) continue;
    compare(i, slot(op.slot));
    checksum_ = (checksum_ ^ op.content.in(iteration_)) * 0x100000001b3u;
  }
  ++iteration_;
  std::fill(calls_.begin(), calls_.end(), 0);
  std::fill(flags_.begin(), flags_.end(), 0);
}

void Runner::await(const Op& op) {
  if (op.awaits.empty()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::all_of(op.awaits.begin(), op.awaits.end(),
                       [&](const auto& awaited) { return calls_[std::size_t(awaited.first)] >= awaited.second; });
  });
}

void Runner::set_flag(int flag) {
  const std::lock_guard lock(mutex_);
  flags_[std::size_t(flag)] = 1;
  changed_.notify_all();
}

void Runner::await_flag(int flag) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return flags_[std::size_t(flag)] != 0; });
}

CUstream Runner::stream_of(const Op& op) const { return op.stream < 0 ? nullptr : streams_[std::size_t(op.stream)]; }

void Runner::make_stream(int stream) {
  CUstream& made = streams_[std::size_t(stream)];
  switch (program_.streams[std::size_t(stream)]) {
    case StreamKind::kLegacy:
      made = CU_STREAM_LEGACY;
      return;
    case StreamKind::kPerThread:
      made = CU_STREAM_PER_THREAD;
      return;
    case StreamKind::kBlocking:
      check(cuStreamCreate(&made, CU_STREAM_DEFAULT), 0);
      return;
    case StreamKind::kNonBlocking:
      check(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), 0);
  }
}

void Runner::launch(const Op& op) {
  const BlockShape& shape = program_.blocks[std::size_t(op.block)];
  CUdeviceptr to = blocks_[std::size_t(op.block)];
  CUdeviceptr from = op.source < 0 ? 0 : blocks_[std::size_t(op.source)];
  unsigned value = op.content.in(iteration_);
  int count = int(shape.words);
  void* fill[] = {&to, &value, &count};
  void* add[] = {&to, &from, &count};
  constexpr unsigned kThreads = 128;
  if (op.nanoseconds != 0) cudasim_next_launch_takes(op.nanoseconds);
  check(cuLaunchKernel(op.kind == Kind::kFill ? kernels_.fill : kernels_.add, shape.words / kThreads, 1, 1, kThreads, 1,
                       1, 0, stream_of(op), op.kind == Kind::kFill ? fill : add, nullptr),
        std::size_t(&op - program_.ops.data()));
}

// Another thread may have to do something first.
void Runner::poll(CUevent event) {
  while (true) {
    const CUresult result = cuEventQuery(event);
    if (result == CUDA_SUCCESS) return;
    if (result != CUDA_ERROR_NOT_READY) fail(program_.ops.size(), "cuEventQuery: error " + std::to_string(int(result)));
    sched_yield();
  }
}

void Runner::execute(std::size_t index) {
  const Op& op = program_.ops[index];
  const CUstream stream = stream_of(op);
  const CUevent event = op.event < 0 ? nullptr : events_[std::size_t(op.event)];
  const BlockShape shape = op.block < 0 ? BlockShape{} : program_.blocks[std::size_t(op.block)];
  CUdeviceptr* const block = op.block < 0 ? nullptr : &blocks_[std::size_t(op.block)];
  const std::size_t bytes = shape.words * sizeof(std::uint32_t);
  const std::uint32_t word = op.content.in(iteration_);
  const auto call = [&](CUresult result) { check(result, index); };
  switch (op.kind) {
    case Kind::kAlloc:
      return call(cuMemAlloc(block, shape.bytes));
    case Kind::kFree:
      return call(cuMemFree(*block));
    case Kind::kAllocAsync:
      return call(cuMemAllocAsync(block, shape.bytes, stream));
    case Kind::kFreeAsync:
      return call(cuMemFreeAsync(*block, stream));
    case Kind::kMemset:
      return call(cuMemsetD32Async(*block, word, shape.words, stream));
    case Kind::kFill:
    case Kind::kAdd:
      return launch(op);
    case Kind::kCopy:
      return call(cuMemcpyDtoDAsync(*block, blocks_[std::size_t(op.source)], bytes, stream));
    case Kind::kCopyIn:
      cudasim_access(slot(op.slot), bytes, 1);
      std::fill_n(slot(op.slot), shape.words, word);
      return call(cuMemcpyHtoDAsync(*block, slot(op.slot), bytes, stream));
    case Kind::kCopyOut:
      return call(cuMemcpyDtoHAsync(slot(op.slot), *block, bytes, stream));
    case Kind::kCopyOutNow:
      return copy_out_now(index);
    case Kind::kCheckFunction:
      return call(cuLaunchHostFunc(
          stream,
          [](void* data) {
            const auto [runner, of] = *static_cast<const Function*>(data);
            runner->compare(of, runner->slot(runner->program_.ops[of].slot));
          },
          &functions_[index]));
    case Kind::kWaitFunction:
      return call(cuLaunchHostFunc(
          stream,
          [](void* data) {
            const auto [runner, of] = *static_cast<const Function*>(data);
            runner->await_flag(runner->program_.ops[of].flag);
          },
          &functions_[index]));
    case Kind::kSetFlag:
      return set_flag(op.flag);
    case Kind::kCompareSlot:
      return compare(index, slot(op.slot));
    case Kind::kRecord:
      return call(cuEventRecord(event, stream));
    case Kind::kWaitEvent:
      return call(cuStreamWaitEvent(stream, event, 0));
    case Kind::kSyncEvent:
      return call(cuEventSynchronize(event));
    case Kind::kPollEvent:
      return poll(event);
    case Kind::kQueryEvent:
      static_cast<void>(cuEventQuery(event));
      return;
    case Kind::kQueryOver:
      return call(cuEventQuery(event));
    case Kind::kElapsed: {
      float milliseconds = 0;
      return call(cuEventElapsedTime(&milliseconds, event, events_[std::size_t(op.other_event)]));
    }
    case Kind::kSyncStream:
      return call(cuStreamSynchronize(stream));
    case Kind::kQueryStream:
      static_cast<void>(cuStreamQuery(stream));
      return;
    case Kind::kSyncContext:
      return call(cuCtxSynchronize());
    case Kind::kNewStream:
      call(cuStreamDestroy(stream));
      return make_stream(op.stream);
    case Kind::kNewEvent: {
      CUevent made = nullptr;
      call(cuEventDestroy(event));
      call(cuEventCreate(&made, CU_EVENT_DEFAULT));
      events_[std::size_t(op.event)] = made;
      return;
    }
  }
}

void Runner::copy_out_now(std::size_t index) {
  const Op& op = program_.ops[index];
  std::vector<std::uint32_t> words(program_.blocks[std::size_t(op.block)].words);
  check(cuMemcpyDtoH(words.data(), blocks_[std::size_t(op.block)], words.size() * sizeof(words[0])), index);
  compare(index, words.data());
}

void Runner::compare(std::size_t index, const std::uint32_t* words) {
  const Op& op = program_.ops[index];
  std::size_t count = 128;  // what the smallest block has, where the slot alone is known
  if (op.block >= 0) count = program_.blocks[std::size_t(op.block)].words;
  if (op.slot >= 0) cudasim_access(words, count * sizeof(*words), 0);
  const std::uint32_t expected = op.content.in(iteration_);
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] == expected) continue;
    char text[96];
    std::snprintf(text, sizeof text, "word %zu is %08x instead of %08x", i, words[i], expected);
    fail(index, text);
  }
}

void Runner::check(CUresult result, std::size_t op) const {
  if (result != CUDA_SUCCESS) fail(op, "error " + std::to_string(int(result)));
}

void Runner::fail(std::size_t op, const std::string& what) const {
  const std::string where = op < program_.ops.size() ? describe(program_, op) : "";
  std::fprintf(stderr, "order_fuzzer: program %llu, iteration %u, operation %s: %s\n",
               static_cast<unsigned long long>(program_.seed), iteration_, where.c_str(), what.c_str());
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace memopt::order
