// mbarrier: objects of 64 bits in shared memory on which warps of a block arrive and wait. What is in them is up to a
// device; here
//
//   bits 0 to 19  arrivals that the phase still waits for
//       20 to 39  arrivals of a phase
//       40 to 63  phases that are complete
//
// The state that an arrival gives is the object as it was before. Asynchronous copies are done at once, so that the
// arrival which they bring is, too.
#include <cstring>

#include "ptx/execution/lowering.h"
#include "ptx/execution/memory_access.h"

namespace cudasim::ptx {
namespace {

constexpr std::uint64_t kCount = (1 << 20) - 1;
constexpr int kExpected = 20, kPhase = 40;

std::byte* object_at(Warp& warp, const Step& step, int lane, Access access) {
  const std::uint64_t address = warp.source(step.a).lane[lane] + step.value;
  return reinterpret_cast<std::byte*>(step.source->space() == Space::kShared
                                          ? checked_address<MemoryKind::kShared>(warp, step, address, 8, access)
                                          : checked_address<MemoryKind::kGeneric>(warp, step, address, 8, access));
}

// `count` arrivals; with `drops` later phases wait for as many fewer.
std::uint64_t arrived(std::uint64_t object, std::uint64_t count, bool drops) {
  std::uint64_t pending = object & kCount, expected = object >> kExpected & kCount, phase = object >> kPhase;
  pending = (pending - count) & kCount;
  if (drops) expected = (expected - count) & kCount;
  if (pending == 0) {
    pending = expected;
    ++phase;
  }
  return pending | expected << kExpected | phase << kPhase;
}

void run_init(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) {
    const std::uint64_t count = warp.source(step.b).lane[l] & kCount;
    const std::uint64_t object = count | count << kExpected;
    std::memcpy(object_at(warp, step, l, Access::kWrite), &object, 8);
  });
}

void run_inval(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) { std::memset(object_at(warp, step, l, Access::kWrite), 0, 8); });
}

void run_arrive(Warp& warp, const Step& step, Mask mask) {
  const bool drops = step.aux != 0;
  for_lanes(mask, [&](int l) {
    std::byte* const at = object_at(warp, step, l, Access::kAtomic);
    std::uint64_t object = 0;
    std::memcpy(&object, at, 8);
    const std::uint64_t after = arrived(object, warp.source(step.b).lane[l] & kCount, drops);
    std::memcpy(at, &after, 8);
    if (step.d != kNoRef) warp.row(step.d).lane[l] = object;
  });
}

template <bool kParity>
void run_wait(Warp& warp, const Step& step, Mask mask) {
  Mask done = 0;
  for_lanes(mask, [&](int l) {
    std::uint64_t object = 0;
    std::memcpy(&object, object_at(warp, step, l, Access::kRead), 8);
    const std::uint64_t state = warp.source(step.b).lane[l];
    // By parity: the phase before the current one has that parity.
    const bool complete = kParity ? (object >> kPhase & 1) != (state & 1) : object >> kPhase != state >> kPhase;
    done |= Mask{complete} << l;
  });
  warp.set_mask(step.d, mask, done);
}

void run_pending_count(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = a.lane[l] & kCount; });
}

}  // namespace

bool lower_mbarrier(Lowering& lowering, const Instruction& i, Step& step) {
  const bool is_copy = i.op == Op::kCp && i.has(Modifier::kMbarrier);
  if (i.op != Op::kMbarrier && !is_copy) return false;
  const bool has_result = !is_copy && !i.has(Modifier::kInit) && !i.has(Modifier::kInval);
  const std::size_t memory = has_result ? 1 : 0;
  if (i.operands.size() <= memory) throw Missing{text_of(i)};
  if (has_result) step.d = lowering.destination(i.operands[0]);
  if (i.has(Modifier::kPendingCount)) {
    step.a = lowering.source(i.operands[1], Type::kB64);
    step.run = run_pending_count;
    lowering.emit(step);
    return true;
  }
  const Operand& at = i.operands[memory];
  if (at.kind != Operand::Kind::kAddress && at.kind != Operand::Kind::kVariable) throw Missing{text_of(i)};
  lowering.address(at, step);
  if (i.operands.size() > memory + 1) {
    step.b = lowering.source(i.operands[memory + 1], Type::kB64);
  } else {
    step.b = lowering.constant(1);
  }
  if (i.has(Modifier::kInit)) {
    step.run = run_init;
  } else if (i.has(Modifier::kInval)) {
    step.run = run_inval;
  } else if (i.has(Modifier::kTestWait) || i.has(Modifier::kTryWait)) {
    step.run = i.has(Modifier::kParity) ? run_wait<true> : run_wait<false>;
  } else if (i.has(Modifier::kArrive) || i.has(Modifier::kArriveDrop)) {
    step.aux = i.has(Modifier::kArriveDrop) ? 1 : 0;
    step.run = run_arrive;
  } else {
    throw Missing{text_of(i)};
  }
  // Without .noinc a copy's arrival is one more that is waited for, and has come: nothing is left to do.
  if (is_copy && !i.has(Modifier::kNoinc)) return true;
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
