// setp, set, selp, slct.
#include <cmath>

#include "ptx/execution/lowering.h"
#include "ptx/execution/runners.h"
#include "ptx/execution/small_floats.h"

namespace cudasim::ptx {
namespace {

enum class Relation : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

Relation relation_of(const Instruction& i) {
  const auto any = [&](Modifier a, Modifier b, Modifier c) { return i.has(a) || i.has(b) || i.has(c); };
  if (any(Modifier::kEq, Modifier::kEqu, Modifier::kEq)) return Relation::kEq;
  if (any(Modifier::kNe, Modifier::kNeu, Modifier::kNe)) return Relation::kNe;
  if (any(Modifier::kLt, Modifier::kLtu, Modifier::kLo)) return Relation::kLt;
  if (any(Modifier::kLe, Modifier::kLeu, Modifier::kLs)) return Relation::kLe;
  if (any(Modifier::kGt, Modifier::kGtu, Modifier::kHi)) return Relation::kGt;
  if (any(Modifier::kGe, Modifier::kGeu, Modifier::kHs)) return Relation::kGe;
  return i.has(Modifier::kNum) ? Relation::kNum : Relation::kNan;
}

bool is_unordered(const Instruction& i) {
  for (const Modifier m : {Modifier::kEqu, Modifier::kNeu, Modifier::kLtu, Modifier::kLeu, Modifier::kGtu,
                           Modifier::kGeu, Modifier::kNan}) {
    if (i.has(m)) return true;
  }
  return false;
}

template <class T>
bool holds(Relation r, bool unordered, T a, T b) {
  const bool nan = a != a || b != b;
  if (nan) return r == Relation::kNum ? false : unordered;
  switch (r) {
    case Relation::kEq:
      return a == b;
    case Relation::kNe:
      return a != b;
    case Relation::kLt:
      return a < b;
    case Relation::kLe:
      return a <= b;
    case Relation::kGt:
      return a > b;
    case Relation::kGe:
      return a >= b;
    case Relation::kNum:
      return true;
    case Relation::kNan:
      return false;
  }
  return false;
}

// The lanes for which the comparison of slots, as `read` understands them, holds.
template <class Read>
Mask compared(Warp& warp, const Step& step, Mask mask, Read read) {
  const Relation relation = relation_of(*step.source);
  const bool unordered = is_unordered(*step.source);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  Mask found = 0;
  for_lanes(mask, [&](int l) { found |= Mask{holds(relation, unordered, read(a.lane[l]), read(b.lane[l]))} << l; });
  return found;
}

Mask combined(Warp& warp, const Step& step, Mask found) {
  if (step.c == kNoRef) return found;
  const Mask q = warp.source(step.c).mask();
  const Instruction& i = *step.source;
  return i.has(Modifier::kAnd) ? found & q : i.has(Modifier::kOr) ? found | q : found ^ q;
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

Mask compared_as(Type type, Warp& warp, const Step& step, Mask mask, int shift = 0) {
  const bool ftz = step.source->has(Modifier::kFtz);
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return compared(warp, step, mask, value_of<std::uint16_t>);
    case Type::kU32:
    case Type::kB32:
      return compared(warp, step, mask, value_of<std::uint32_t>);
    case Type::kU64:
    case Type::kB64:
      return compared(warp, step, mask, value_of<std::uint64_t>);
    case Type::kS16:
      return compared(warp, step, mask, value_of<std::int16_t>);
    case Type::kS32:
      return compared(warp, step, mask, value_of<std::int32_t>);
    case Type::kS64:
      return compared(warp, step, mask, value_of<std::int64_t>);
    case Type::kF32:
      return compared(warp, step, mask,
                      [&](std::uint64_t x) { return ftz ? flushed(value_of<float>(x)) : value_of<float>(x); });
    case Type::kF64:
      return compared(warp, step, mask, value_of<double>);
    default:
      return compared(warp, step, mask, [&](std::uint64_t x) {
        const Format& f = format_of(type);
        auto bits = static_cast<std::uint32_t>(x >> shift & 0xffff);
        if (ftz && (bits & 0x7fff) >> f.mantissa_bits == 0) bits &= 0x8000;
        return decode(bits, f);
      });
  }
}

bool is_pair(Type t) { return t == Type::kF16x2 || t == Type::kBf16x2; }

void run_setp(Warp& warp, const Step& step, Mask mask) {
  const Type type = step.source->type();
  const Mask found = compared_as(type, warp, step, mask);
  // p|q of a pair: the second is the high half's; else it is the opposite.
  const Mask second = is_pair(type) ? compared_as(type, warp, step, mask, 16) : ~found;
  warp.set_mask(step.d, mask, combined(warp, step, found));
  warp.set_mask(step.pair, mask, combined(warp, step, second));
}

void run_set(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Type to = i.types[0], from = i.types[1];
  const Mask found = combined(warp, step, compared_as(from, warp, step, mask));
  Row& d = warp.row(step.d);
  if (is_pair(from)) {
    const Mask high = combined(warp, step, compared_as(from, warp, step, mask, 16));
    const std::uint64_t one = to == Type::kF16x2 ? 0x3c00 : to == Type::kBf16x2 ? 0x3f80 : 0xffff;
    for_lanes(mask,
              [&](int l) { d.lane[l] = ((found >> l & 1) != 0 ? one : 0) | ((high >> l & 1) != 0 ? one << 16 : 0); });
    return;
  }
  const std::uint64_t one = to == Type::kF32    ? 0x3f800000
                            : to == Type::kF16  ? 0x3c00
                            : to == Type::kBf16 ? 0x3f80
                            : bytes_of(to) == 2 ? 0xffff
                                                : 0xffffffff;
  for_lanes(mask, [&](int l) { d.lane[l] = (found >> l & 1) != 0 ? one : 0; });
}

void run_selp(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b);
  const Mask p = warp.source(step.c).mask();
  const std::uint64_t bits = bytes_of(step.source->type()) == 8   ? ~std::uint64_t{0}
                             : bytes_of(step.source->type()) == 4 ? 0xffffffff
                                                                  : 0xffff;
  for_lanes(mask, [&](int l) { d.lane[l] = ((p >> l & 1) != 0 ? a.lane[l] : b.lane[l]) & bits; });
}

void run_slct(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Row &a = warp.source(step.a), &b = warp.source(step.b), &c = warp.source(step.c);
  const bool floating = step.source->types[1] == Type::kF32;
  const std::uint64_t bits = bytes_of(step.source->type()) == 8   ? ~std::uint64_t{0}
                             : bytes_of(step.source->type()) == 4 ? 0xffffffff
                                                                  : 0xffff;
  for_lanes(mask, [&](int l) {
    float f = value_of<float>(c.lane[l]);
    if (step.source->has(Modifier::kFtz)) f = flushed(f);
    // -0 counts as not negative; NaN takes the second.
    const bool first = floating ? f >= 0 : value_of<std::int32_t>(c.lane[l]) >= 0;
    d.lane[l] = (first ? a.lane[l] : b.lane[l]) & bits;
  });
}

}  // namespace

Runner compare_runner(const Instruction& i) {
  switch (i.op) {
    case Op::kSetp:
      return run_setp;
    case Op::kSet:
      return run_set;
    case Op::kSelp:
      return run_selp;
    case Op::kSlct:
      return run_slct;
    default:
      return nullptr;
  }
}

}  // namespace cudasim::ptx
