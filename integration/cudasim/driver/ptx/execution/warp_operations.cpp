// What lanes of a warp do together: shfl, vote, match, redux, activemask, elect, and the result of bar.red.
#include <cmath>

#include "ptx/execution/barrier.h"
#include "ptx/execution/lowering.h"

namespace cudasim::ptx {
namespace {

// A lane that does not take part gives what its register holds, as its value is undefined.
void run_shfl(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Row values = warp.source(step.a);
  const Row &b = warp.source(step.b), &c = warp.source(step.c);
  Mask inside = 0;
  for_lanes(mask, [&](int lane) {
    const int by = static_cast<int>(b.lane[lane] & 0x1f);
    const int clamp = static_cast<int>(c.lane[lane] & 0x1f), segment = static_cast<int>(c.lane[lane] >> 8 & 0x1f);
    const int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    int from = lane;
    bool in = false;
    if (i.has(Modifier::kUp)) {
      from = lane - by;
      in = from >= highest;
    } else if (i.has(Modifier::kDown)) {
      from = lane + by;
      in = from <= highest;
    } else if (i.has(Modifier::kBfly)) {
      from = lane ^ by;
      in = from <= highest;
    } else {
      from = lowest | (by & ~segment);
      in = from <= highest;
    }
    if (!in) from = lane;
    if (step.d != kNoRef) warp.row(step.d).lane[lane] = static_cast<std::uint32_t>(values.lane[from]);
    inside |= Mask{in} << lane;
  });
  warp.set_mask(step.pair, mask, inside);
}

void run_vote(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Mask yes = warp.source(step.a).mask() & mask;
  if (i.has(Modifier::kBallot)) {
    for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = yes; });
    return;
  }
  const bool result = i.has(Modifier::kAll) ? yes == mask : i.has(Modifier::kAny) ? yes != 0 : yes == 0 || yes == mask;
  warp.set_mask(step.d, mask, result ? kAllLanes : 0);
}

void run_match(Warp& warp, const Step& step, Mask mask) {
  const bool wide = step.source->type() == Type::kB64;
  const Row values = warp.source(step.a);
  const auto value = [&](int l) { return wide ? values.lane[l] : values.lane[l] & 0xffffffff; };
  Mask all = 0;
  for_lanes(mask, [&](int l) {
    Mask same = 0;
    for_lanes(mask, [&](int other) { same |= Mask{value(other) == value(l)} << other; });
    all = same;
    if (step.source->has(Modifier::kAll)) same = same == mask ? mask : 0;
    if (step.d != kNoRef) warp.row(step.d).lane[l] = same;
  });
  warp.set_mask(step.pair, mask, all == mask ? kAllLanes : 0);
}

template <class T>
T reduced(const Instruction& i, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (i.has(Modifier::kNaN) && (a != a || b != b)) return NAN;
    if (i.has(Modifier::kAbs)) {
      a = std::fabs(a);
      b = std::fabs(b);
    }
    return i.has(Modifier::kMin) ? std::fmin(a, b) : std::fmax(a, b);
  } else {
    if (i.has(Modifier::kAdd)) return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    if (i.has(Modifier::kMin)) return b < a ? b : a;
    if (i.has(Modifier::kMax)) return a < b ? b : a;
    return i.has(Modifier::kAnd) ? a & b : i.has(Modifier::kOr) ? a | b : a ^ b;
  }
}

template <class T>
void run_redux(Warp& warp, const Step& step, Mask mask) {
  const Row& a = warp.source(step.a);
  bool first = true;
  T result{};
  for_lanes(mask, [&](int l) {
    const T value = value_of<T>(a.lane[l]);
    result = first ? value : reduced<T>(*step.source, result, value);
    first = false;
  });
  for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = slot_of<T>(result); });
}

void run_activemask(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = mask; });
}

void run_elect(Warp& warp, const Step& step, Mask mask) {
  const int leader = std::countr_zero(mask);
  if (step.d != kNoRef) for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = static_cast<std::uint64_t>(leader); });
  warp.set_mask(step.pair, mask, Mask{1} << leader);
}

}  // namespace

Runner warp_runner(const Instruction& i) {
  switch (i.op) {
    case Op::kShfl:
      return run_shfl;
    case Op::kVote:
      return run_vote;
    case Op::kMatch:
      return run_match;
    case Op::kRedux:
      return i.type() == Type::kF32   ? run_redux<float>
             : i.type() == Type::kS32 ? run_redux<std::int32_t>
                                      : run_redux<std::uint32_t>;
    case Op::kActivemask:
      return run_activemask;
    case Op::kElect:
      return run_elect;
    default:
      return nullptr;
  }
}

void store_reduction(Warp& warp, const Step& step, Mask mask, std::uint32_t true_count, std::uint32_t predicates) {
  const Instruction& i = *step.source;
  if (i.has(Modifier::kPopc)) {
    for_lanes(mask, [&](int l) { warp.row(step.d).lane[l] = true_count; });
  } else {
    const bool result = i.has(Modifier::kAnd) ? true_count == predicates : true_count != 0;
    warp.set_mask(step.d, mask, result ? kAllLanes : 0);
  }
}

}  // namespace cudasim::ptx
