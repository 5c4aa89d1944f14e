// Loads and stores of all spaces, addresses, copies to shared memory.
#include <algorithm>
#include <cstring>

#include "ptx/execution/block_run.h"
#include "ptx/execution/lowering.h"
#include "ptx/execution/memory_access.h"

namespace cudasim::ptx {

void count_sectors(Warp& warp, const Step& step, Mask mask, std::uint32_t bytes) {
  if (!warp.block.sampling) return;
  // Neighbours mostly: those of the lane before are not counted again.
  std::uint64_t last = ~std::uint64_t{0};
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) {
    const std::uint64_t address = a.lane[l] + step.value;
    const std::uint64_t first = address / 32, end = (address + bytes - 1) / 32;
    if (first != last) warp.block.counts.global_bytes += 32 * (end - first + 1);
    last = end;
  });
}

namespace {

template <class T>
T load(std::uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}
template <class T>
void store(std::uint64_t address, T value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

// T: what lies in memory, as signed as its type says. kWindow: the addresses are those of shared memory.
template <class T, MemoryKind kKind>
void run_load(Warp& warp, const Step& step, Mask mask) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * step.count;
  const Row& a = warp.source(step.a);
  const bool sampled = touches_global<kKind>() && warp.block.sampling;
  if constexpr (touches_global<kKind>()) count_sectors(warp, step, mask, bytes);
  const Ref* const targets = warp.code().refs.data() + step.list;
  const std::uint64_t keep = step.aux;
  const auto load_lane = [&](const Row& addresses, int l) {
    const std::uint64_t address =
        checked_address<kKind>(warp, step, addresses.lane[l] + step.value, bytes, Access::kRead);
    for (std::uint32_t n = 0; n < step.count; ++n) {
      T value{};
      if (!sampled || is_private<kKind>(warp, address)) value = load<T>(address + n * sizeof(T));
      if (targets[n] != kNoRef)
        warp.row(targets[n]).lane[l] = static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) & keep;
    }
  };
  if (step.count == 1 && !sampled && targets[0] != kNoRef) {
    Row& d = warp.row(targets[0]);
    for_lanes(mask, [&](int l) {
      const std::uint64_t address = checked_address<kKind>(warp, step, a.lane[l] + step.value, bytes, Access::kRead);
      d.lane[l] = static_cast<std::uint64_t>(static_cast<std::int64_t>(load<T>(address))) & keep;
    });
    return;
  }
  // Each lane's address is read before its values are written: a destination may be the row of the addresses.
  for_lanes(mask, [&](int l) { load_lane(a, l); });
}

template <class T, MemoryKind kKind>
void run_store(Warp& warp, const Step& step, Mask mask) {
  const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof(T)) * step.count;
  const Row& a = warp.source(step.a);
  const bool sampled = touches_global<kKind>() && warp.block.sampling;
  if constexpr (touches_global<kKind>()) count_sectors(warp, step, mask, bytes);
  const Ref* const sources = warp.code().refs.data() + step.list;
  for_lanes(mask, [&](int l) {
    const std::uint64_t address = checked_address<kKind>(warp, step, a.lane[l] + step.value, bytes, Access::kWrite);
    if (sampled && !is_private<kKind>(warp, address)) return;
    for (std::uint32_t n = 0; n < step.count; ++n)
      store<T>(address + n * sizeof(T), static_cast<T>(warp.source(sources[n]).lane[l]));
  });
}

// Predicates as bytes do not occur in memory; a byte is 0 or 1 where a compiler spills one by hand.
template <MemoryKind kKind>
Runner access_runner(Type type, bool is_load) {
  switch (type) {
    case Type::kB8:
    case Type::kU8:
      return is_load ? run_load<std::uint8_t, kKind> : run_store<std::uint8_t, kKind>;
    case Type::kS8:
      return is_load ? run_load<std::int8_t, kKind> : run_store<std::uint8_t, kKind>;
    case Type::kS16:
      return is_load ? run_load<std::int16_t, kKind> : run_store<std::uint16_t, kKind>;
    case Type::kS32:
      return is_load ? run_load<std::int32_t, kKind> : run_store<std::uint32_t, kKind>;
    case Type::kPred:
    case Type::kB128:
      return nullptr;
    default:
      break;
  }
  switch (bytes_of(type)) {
    case 2:
      return is_load ? run_load<std::uint16_t, kKind> : run_store<std::uint16_t, kKind>;
    case 4:
      return is_load ? run_load<std::uint32_t, kKind> : run_store<std::uint32_t, kKind>;
    case 8:
      return is_load ? run_load<std::uint64_t, kKind> : run_store<std::uint64_t, kKind>;
    default:
      return nullptr;
  }
}

// Shared addresses are offsets; all others are the process's own.
template <bool kToGeneric>
void run_cvta_shared(Warp& warp, const Step& step, Mask mask) {
  const std::uint64_t base = warp.block.shared.address();
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = kToGeneric ? a.lane[l] + base : a.lane[l] - base; });
}

void run_copy(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = a.lane[l]; });
}

void run_isspacep(Warp& warp, const Step& step, Mask mask) {
  const Row& a = warp.source(step.a);
  const BlockRun& block = warp.block;
  const auto parameters = reinterpret_cast<std::uint64_t>(block.parameters);
  Mask found = 0;
  for_lanes(mask, [&](int l) {
    const std::uint64_t x = a.lane[l];
    const bool shared = block.is_shared(x), local = block.is_local(x);
    const bool parameter = x - parameters < block.executable.kernel->parameter_bytes;
    const Space space = step.source->space();
    const bool is = space == Space::kShared  ? shared
                    : space == Space::kLocal ? local
                    : space == Space::kParam ? parameter
                    : space == Space::kConst ? false
                                             : !shared && !local && !parameter;
    found |= Mask{is} << l;
  });
  warp.set_mask(step.d, mask, found);
}

// cp.async d, s, bytes, source bytes or "ignore": done at once, which any wait for it allows.
void run_cp_async(Warp& warp, const Step& step, Mask mask) {
  const Row &to = warp.source(step.d), &from = warp.source(step.a);
  const auto bytes = static_cast<std::uint32_t>(warp.source(step.b).lane[0]);
  const Operand* const limit = step.source->operands.size() > 3 ? &step.source->operands[3] : nullptr;
  const bool is_predicate = limit != nullptr && limit->kind == Operand::Kind::kRegister &&
                            warp.code().function->registers[limit->index].type == Type::kPred;
  count_sectors(warp, step, mask, bytes);
  for_lanes(mask, [&](int l) {
    std::uint32_t copied = bytes;
    if (is_predicate && (warp.source(step.c).mask() >> l & 1) != 0) copied = 0;
    if (limit != nullptr && !is_predicate)
      copied = std::min<std::uint32_t>(bytes, static_cast<std::uint32_t>(warp.source(step.c).lane[l]));
    const std::uint64_t target =
        checked_address<MemoryKind::kShared>(warp, step, to.lane[l] + step.aux, bytes, Access::kWrite);
    std::byte buffer[16] = {};
    if (copied != 0) {
      const std::uint64_t source = checked_address<MemoryKind::kGlobal>(warp, step, from.lane[l] + step.value,
                                                                        copied == bytes ? bytes : 1, Access::kRead);
      if (copied != bytes && warp.block.observer.touched != nullptr && copied > 1 && !warp.block.sampling)
        warp.block.observer.touched(warp.block.observer.context, source + 1, copied - 1, Access::kRead);
      if (!warp.block.sampling) std::memcpy(buffer, reinterpret_cast<const void*>(source), copied);
    }
    std::memcpy(reinterpret_cast<void*>(target), buffer, bytes);
  });
}

void run_nothing(Warp&, const Step&, Mask) {}

bool lower_cp(Lowering& lowering, const Instruction& i, Step& step) {
  if (!i.has(Modifier::kAsync)) return false;
  if (i.operands.size() < 3) {
    step.run = run_nothing;
    lowering.emit(step);
    return true;
  }
  lowering.address(i.operands[0], step);
  step.d = step.a;
  step.aux = step.value;
  lowering.address(i.operands[1], step);
  const std::uint64_t bytes = i.operands[2].value;
  if (i.operands[2].kind != Operand::Kind::kImmediate || (bytes != 4 && bytes != 8 && bytes != 16)) return false;
  step.b = lowering.constant(bytes);
  if (i.operands.size() > 3 && !(i.operands.size() == 4 && i.has(Modifier::kCacheHint)))
    step.c = lowering.source(i.operands[3], Type::kU32);
  if (i.has(Modifier::kCacheHint) && i.operands.size() == 4) throw Missing{text_of(i) + " with a cache policy"};
  step.run = run_cp_async;
  lowering.emit(step);
  return true;
}

}  // namespace

bool lower_memory(Lowering& lowering, const Instruction& i, Step& step) {
  switch (i.op) {
    case Op::kCp:
      return lower_cp(lowering, i, step);
    case Op::kCvta:
      step.a = lowering.source(i.operands[0 + 1], Type::kU64);
      step.d = lowering.destination(i.operands[0]);
      step.run = i.space() != Space::kShared ? run_copy
                 : i.has(Modifier::kTo)      ? run_cvta_shared<false>
                                             : run_cvta_shared<true>;
      break;
    case Op::kIsspacep:
      step.a = lowering.source(i.operands[1], Type::kU64);
      step.d = lowering.destination(i.operands[0]);
      step.run = run_isspacep;
      break;
    case Op::kCreatepolicy:
      step.a = lowering.constant(0);
      step.d = lowering.destination(i.operands[0]);
      step.run = run_copy;
      break;
    case Op::kLd:
    case Op::kSt: {
      const bool is_load = i.op == Op::kLd;
      const Operand& memory = i.operands[is_load ? 1 : 0];
      const Operand& value = i.operands[is_load ? 0 : 1];
      lowering.address(memory, step);
      lowering.vector(value, i.type(), is_load, step);
      if (step.count != i.vector_width()) throw Missing{text_of(i) + " with " + std::to_string(step.count) + " values"};
      // A register wider than the value is filled as the type's sign says, and no further.
      std::uint32_t width = 0;
      const auto widen = [&](const Operand& o) {
        if (o.kind == Operand::Kind::kRegister) width = std::max(width, lowering.width_of_register(o));
      };
      if (value.kind == Operand::Kind::kVector) {
        std::ranges::for_each(value.elements, widen);
      } else {
        widen(value);
      }
      step.aux = width == 0 || width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1;
      switch (i.space()) {
        case Space::kShared:
          step.run = access_runner<MemoryKind::kShared>(i.type(), is_load);
          break;
        case Space::kLocal:
        case Space::kParam:
          step.run = access_runner<MemoryKind::kPrivate>(i.type(), is_load);
          break;
        case Space::kGeneric:
          step.run = access_runner<MemoryKind::kGeneric>(i.type(), is_load);
          break;
        default:
          step.run = access_runner<MemoryKind::kGlobal>(i.type(), is_load);
      }
      if (step.run == nullptr) throw Missing{text_of(i)};
      break;
    }
    default:
      return false;
  }
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
