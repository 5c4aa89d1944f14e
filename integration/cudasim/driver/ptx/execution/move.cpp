// mov: values, and vectors into and out of registers.
#include "ptx/execution/lowering.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {
namespace {

void run_mov(Warp& warp, const Step& step, Mask mask) {
  if (step.d == kNoRef) return;
  Row& d = warp.row(step.d);
  const Row& a = warp.source(step.a);
  for_lanes(mask, [&](int l) { d.lane[l] = a.lane[l] & step.aux; });
}

void run_mov_predicate(Warp& warp, const Step& step, Mask mask) {
  warp.set_mask(step.d, mask, warp.source(step.a).mask());
}

// Elements of step.value bits each.
void run_pack(Warp& warp, const Step& step, Mask mask) {
  Row& d = warp.row(step.d);
  const Ref* const elements = warp.code().refs.data() + step.list;
  const std::uint64_t ones = (std::uint64_t{1} << step.value) - 1;
  for_lanes(mask, [&](int l) {
    std::uint64_t value = 0;
    for (std::uint32_t n = 0; n < step.count; ++n) value |= (warp.source(elements[n]).lane[l] & ones) << n * step.value;
    d.lane[l] = value;
  });
}

void run_unpack(Warp& warp, const Step& step, Mask mask) {
  const Row a = warp.source(step.a);  // a copy: an element may be the source itself
  const Ref* const elements = warp.code().refs.data() + step.list;
  const std::uint64_t ones = (std::uint64_t{1} << step.value) - 1;
  for (std::uint32_t n = 0; n < step.count; ++n) {
    if (elements[n] == kNoRef) continue;
    Row& d = warp.row(elements[n]);
    for_lanes(mask, [&](int l) { d.lane[l] = a.lane[l] >> n * step.value & ones; });
  }
}

}  // namespace

bool lower_move(Lowering& lowering, const Instruction& i, Step& step) {
  if (i.op != Op::kMov) return false;
  const Operand &to = i.operands[0], &from = i.operands[1];
  const std::uint32_t bits = 8 * bytes_of(i.type());
  const bool unpacks = to.kind == Operand::Kind::kVector;
  if (unpacks || from.kind == Operand::Kind::kVector) {
    const Operand& vector = unpacks ? to : from;
    if (i.type() == Type::kB128 || bits % vector.elements.size() != 0) throw Missing{text_of(i) + " of a vector"};
    lowering.vector(vector, i.type(), unpacks, step);
    step.value = bits / vector.elements.size();
    if (unpacks) {
      step.a = lowering.source(from, i.type());
    } else {
      step.d = lowering.destination(to);
    }
    step.run = unpacks ? run_unpack : run_pack;
  } else {
    if (i.type() == Type::kB128) throw Missing{text_of(i)};
    step.a = lowering.source(from, i.type());
    step.d = lowering.destination(to);
    step.aux = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    step.run = i.type() == Type::kPred ? run_mov_predicate : run_mov;
  }
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
