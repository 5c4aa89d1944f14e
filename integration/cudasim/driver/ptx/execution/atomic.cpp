// atom and red: real atomic operations of the process, lane by lane.
#include <cmath>

#include "ptx/execution/lowering.h"
#include "ptx/execution/memory_access.h"
#include "ptx/execution/small_floats.h"

namespace cudasim::ptx {
namespace {

template <class T>
T added(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}

// What is written for what was there. T is the type by which it is meant.
template <class T>
BitsOf<T> updated(const Instruction& i, BitsOf<T> old_bits, BitsOf<T> b_bits, BitsOf<T> c_bits) {
  const T old = std::bit_cast<T>(old_bits), b = std::bit_cast<T>(b_bits);
  if (i.has(Modifier::kExch)) return b_bits;
  if (i.has(Modifier::kCas)) return old_bits == b_bits ? c_bits : old_bits;
  if (i.has(Modifier::kAnd)) return old_bits & b_bits;
  if (i.has(Modifier::kOr)) return old_bits | b_bits;
  if (i.has(Modifier::kXor)) return old_bits ^ b_bits;
  if (i.has(Modifier::kInc)) return old_bits >= b_bits ? BitsOf<T>{0} : static_cast<BitsOf<T>>(old_bits + 1);
  if (i.has(Modifier::kDec)) return old_bits == 0 || old_bits > b_bits ? b_bits : static_cast<BitsOf<T>>(old_bits - 1);
  if (i.has(Modifier::kMin)) return b < old ? b_bits : old_bits;
  if (i.has(Modifier::kMax)) return old < b ? b_bits : old_bits;
  return std::bit_cast<BitsOf<T>>(added(old, b));
}

// One or two numbers of 16 bits.
template <class Bits>
Bits updated_small(const Instruction& i, Bits old, Bits b) {
  const Format& format = format_of(i.type());
  Bits result = 0;
  for (unsigned shift = 0; shift < 8 * sizeof(Bits); shift += 16) {
    const double x = decode(old >> shift & 0xffff, format), y = decode(b >> shift & 0xffff, format);
    const double z = i.has(Modifier::kMin) ? std::fmin(x, y) : i.has(Modifier::kMax) ? std::fmax(x, y) : x + y;
    result = static_cast<Bits>(result | static_cast<Bits>(encode(z, format)) << shift);
  }
  return result;
}

template <class T, bool kSmall, MemoryKind kKind>
void run_atomic(Warp& warp, const Step& step, Mask mask) {
  using Bits = BitsOf<T>;
  const Instruction& i = *step.source;
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  const Row& c = warp.source(step.c == kNoRef ? step.b : step.c);
  if constexpr (touches_global<kKind>()) count_sectors(warp, step, mask, sizeof(T));
  for_lanes(mask, [&](int l) {
    const std::uint64_t address =
        checked_address<kKind>(warp, step, a.lane[l] + step.value, sizeof(T), Access::kAtomic);
    Bits old = 0;
    if (!(touches_global<kKind>() && warp.block.sampling && !is_private<kKind>(warp, address))) {
      auto* const at = reinterpret_cast<Bits*>(address);
      old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
      Bits wanted;
      do {
        if constexpr (kSmall) {
          wanted = updated_small<Bits>(i, old, static_cast<Bits>(b.lane[l]));
        } else {
          wanted = updated<T>(i, old, static_cast<Bits>(b.lane[l]), static_cast<Bits>(c.lane[l]));
        }
      } while (!__atomic_compare_exchange_n(at, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    }
    if (step.d != kNoRef) warp.row(step.d).lane[l] = old;
  });
}

template <MemoryKind kKind>
Runner runner_of(const Instruction& i) {
  const bool floating = is_floating(i.type());
  const bool fits = i.has(Modifier::kAdd) || i.has(Modifier::kExch) || i.has(Modifier::kCas) ||
                    ((i.has(Modifier::kMin) || i.has(Modifier::kMax)));
  if (floating && !fits) return nullptr;
  switch (i.type()) {
    case Type::kF16:
    case Type::kBf16:
      return run_atomic<std::uint16_t, true, kKind>;
    case Type::kF16x2:
    case Type::kBf16x2:
      return run_atomic<std::uint32_t, true, kKind>;
    case Type::kF32:
      return run_atomic<float, false, kKind>;
    case Type::kF64:
      return run_atomic<double, false, kKind>;
    case Type::kS32:
      return run_atomic<std::int32_t, false, kKind>;
    case Type::kS64:
      return run_atomic<std::int64_t, false, kKind>;
    case Type::kB16:
      return run_atomic<std::uint16_t, false, kKind>;
    case Type::kB32:
    case Type::kU32:
      return run_atomic<std::uint32_t, false, kKind>;
    case Type::kB64:
    case Type::kU64:
      return run_atomic<std::uint64_t, false, kKind>;
    default:
      return nullptr;
  }
}

}  // namespace

bool lower_atomic(Lowering& lowering, const Instruction& i, Step& step) {
  if (i.op != Op::kAtom && i.op != Op::kRed) return false;
  const std::size_t memory = i.op == Op::kAtom ? 1 : 0;
  std::size_t operands = i.operands.size() - (i.has(Modifier::kCacheHint) ? 1 : 0);
  if (i.vector_width() != 1 || operands < memory + 2) throw Missing{text_of(i)};
  if (memory == 1) step.d = lowering.destination(i.operands[0]);
  lowering.address(i.operands[memory], step);
  step.b = lowering.source(i.operands[memory + 1], i.type());
  if (i.has(Modifier::kCas)) {
    if (operands < memory + 3) throw Missing{text_of(i) + " with too few operands"};
    step.c = lowering.source(i.operands[memory + 2], i.type());
  }
  step.run = i.space() == Space::kShared   ? runner_of<MemoryKind::kShared>(i)
             : i.space() == Space::kGlobal ? runner_of<MemoryKind::kGlobal>(i)
                                           : runner_of<MemoryKind::kGeneric>(i);
  if (step.run == nullptr) throw Missing{text_of(i)};
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
