#include "program.h"

namespace memopt::order {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kAlloc:
      return "cuMemAlloc";
    case Kind::kFree:
      return "cuMemFree";
    case Kind::kAllocAsync:
      return "cuMemAllocAsync";
    case Kind::kFreeAsync:
      return "cuMemFreeAsync";
    case Kind::kMemset:
      return "cuMemsetD32Async";
    case Kind::kFill:
      return "fill";
    case Kind::kAdd:
      return "add";
    case Kind::kCopy:
      return "cuMemcpyDtoDAsync";
    case Kind::kCopyIn:
      return "cuMemcpyHtoDAsync";
    case Kind::kCopyOut:
      return "cuMemcpyDtoHAsync";
    case Kind::kCopyOutNow:
      return "cuMemcpyDtoH";
    case Kind::kCheckFunction:
      return "a host function that compares";
    case Kind::kWaitFunction:
      return "a host function that waits for a flag";
    case Kind::kSetFlag:
      return "sets a flag";
    case Kind::kCompareSlot:
      return "compares";
    case Kind::kRecord:
      return "cuEventRecord";
    case Kind::kWaitEvent:
      return "cuStreamWaitEvent";
    case Kind::kSyncEvent:
      return "cuEventSynchronize";
    case Kind::kPollEvent:
      return "cuEventQuery until it is over";
    case Kind::kQueryEvent:
      return "cuEventQuery";
    case Kind::kQueryOver:
      return "cuEventQuery of an event that is over";
    case Kind::kElapsed:
      return "cuEventElapsedTime";
    case Kind::kSyncStream:
      return "cuStreamSynchronize";
    case Kind::kQueryStream:
      return "cuStreamQuery";
    case Kind::kSyncContext:
      return "cuCtxSynchronize";
    case Kind::kNewStream:
      return "cuStreamDestroy, cuStreamCreate";
    case Kind::kNewEvent:
      return "cuEventDestroy, cuEventCreate";
  }
  return "?";
}

std::string describe(const Program& program, std::size_t index) {
  const Op& op = program.ops[index];
  std::string text = std::to_string(index) + ": thread " + std::to_string(op.thread);
  for (const auto& [thread, calls] : op.awaits)
    text += ", when thread " + std::to_string(thread) + " has made " + std::to_string(calls) + " calls";
  text += std::string(": ") + name_of(op.kind);
  const auto add = [&](const char* what, int number) {
    if (number >= 0) text += std::string(" ") + what + std::to_string(number);
  };
  if (op.stream >= 0) {
    constexpr const char* kNames[] = {"legacy", "own", "blocking ", "stream "};
    const StreamKind kind = program.streams[std::size_t(op.stream)];
    text += std::string(" on ") + kNames[int(kind)];
    if (kind != StreamKind::kLegacy && kind != StreamKind::kPerThread) text += std::to_string(op.stream);
  }
  add("block ", op.block);
  add("from block ", op.source);
  add("event ", op.event);
  add("event ", op.other_event);
  add("slot ", op.slot);
  add("flag ", op.flag);
  if (op.block >= 0 && (op.kind == Kind::kAlloc || op.kind == Kind::kAllocAsync))
    text += ", " + std::to_string(program.blocks[std::size_t(op.block)].bytes) + " bytes";
  return text;
}

}  // namespace memopt::order
