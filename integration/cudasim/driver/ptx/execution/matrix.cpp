// ldmatrix, stmatrix, movmatrix and mma. Which lane holds which element is the ISA's; all shapes follow one rule: a
// lane's group is lane / 4, its place in it lane % 4, and a register holds neighbours of the summed dimension.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ptx/execution/lowering.h"
#include "ptx/execution/memory_access.h"
#include "ptx/execution/small_floats.h"

namespace cudasim::ptx {
namespace {

std::uint32_t matrices_of(const Instruction& i) { return i.has(Modifier::kX4) ? 4 : i.has(Modifier::kX2) ? 2 : 1; }

std::uint64_t row_address(Warp& warp, const Step& step, std::uint32_t matrix, int row, Access access) {
  const int lane = static_cast<int>(matrix) * 8 + row;
  const std::uint64_t address = warp.source(step.a).lane[lane] + step.value;
  return step.source->space() == Space::kShared
             ? checked_address<MemoryKind::kShared>(warp, step, address, 16, access)
             : checked_address<MemoryKind::kGeneric>(warp, step, address, 16, access);
}

void run_ldmatrix(Warp& warp, const Step& step, Mask mask) {
  const bool transposed = step.source->has(Modifier::kTrans);
  std::uint16_t rows[4][8][8];
  for (std::uint32_t m = 0; m < step.count; ++m) {
    for (int r = 0; r < 8; ++r)
      std::memcpy(rows[m][r], reinterpret_cast<const void*>(row_address(warp, step, m, r, Access::kRead)), 16);
  }
  for (std::uint32_t m = 0; m < step.count; ++m) {
    const Ref d = warp.code().refs[step.list + m];
    if (d == kNoRef) continue;
    for_lanes(mask, [&](int l) {
      const int group = l / 4, at = l % 4 * 2;
      const std::uint32_t low = transposed ? rows[m][at][group] : rows[m][group][at];
      const std::uint32_t high = transposed ? rows[m][at + 1][group] : rows[m][group][at + 1];
      warp.row(d).lane[l] = high << 16 | low;
    });
  }
}

void run_stmatrix(Warp& warp, const Step& step, Mask mask) {
  const bool transposed = step.source->has(Modifier::kTrans);
  for (std::uint32_t m = 0; m < step.count; ++m) {
    std::uint16_t rows[8][8] = {};
    const Row& a = warp.source(warp.code().refs[step.list + m]);
    for_lanes(mask, [&](int l) {
      const int group = l / 4, at = l % 4 * 2;
      for (int n = 0; n < 2; ++n)
        (transposed ? rows[at + n][group] : rows[group][at + n]) = static_cast<std::uint16_t>(a.lane[l] >> 16 * n);
    });
    for (int r = 0; r < 8; ++r)
      std::memcpy(reinterpret_cast<void*>(row_address(warp, step, m, r, Access::kWrite)), rows[r], 16);
  }
}

void run_movmatrix(Warp& warp, const Step& step, Mask mask) {
  const Row a = warp.source(step.a);
  const auto element = [&](int row, int column) {
    return static_cast<std::uint32_t>(a.lane[row * 4 + column / 2] >> 16 * (column % 2) & 0xffff);
  };
  for_lanes(mask, [&](int l) {
    const int group = l / 4, at = l % 4 * 2;
    warp.row(step.d).lane[l] = element(at + 1, group) << 16 | element(at, group);
  });
}

struct MatrixShape {
  int m, k;  // n is 8
};

bool shape_of(const Instruction& i, MatrixShape& shape) {
  const struct {
    Modifier modifier;
    MatrixShape shape;
  } kShapes[] = {{Modifier::kM8n8k4, {8, 4}},   {Modifier::kM8n8k16, {8, 16}},   {Modifier::kM16n8k4, {16, 4}},
                 {Modifier::kM16n8k8, {16, 8}}, {Modifier::kM16n8k16, {16, 16}}, {Modifier::kM16n8k32, {16, 32}}};
  for (const auto& row : kShapes) {
    if (!i.has(row.modifier)) continue;
    shape = row.shape;
    return true;
  }
  return false;
}

int elements_per_register(Type t) { return t == Type::kF64 ? 1 : 4 / static_cast<int>(bytes_of(t)); }

double element(std::uint64_t slot, Type t, int at) {
  switch (t) {
    case Type::kF64:
      return value_of<double>(slot);
    case Type::kTf32:  // the low bits of an f32 are not looked at
      return value_of<float>(slot & 0xffffe000u);
    case Type::kF32:
      return value_of<float>(slot);
    case Type::kS32:
      return value_of<std::int32_t>(slot);
    case Type::kS8:
      return static_cast<std::int8_t>(slot >> 8 * at);
    case Type::kU8:
      return static_cast<std::uint8_t>(slot >> 8 * at);
    default:
      return decode(static_cast<std::uint32_t>(slot >> 16 * at & 0xffff), format_of(t));
  }
}

// Products and sums in f64, rounded once to the type of d: the order in which a device adds is not defined.
void run_mma(Warp& warp, const Step& step, Mask) {
  const Instruction& i = *step.source;
  MatrixShape shape{};
  shape_of(i, shape);
  const Type td = i.types[0], ta = i.types[1], tb = i.types[2], tc = i.types[3];
  double a[16][32], b[32][8], sum[16][8];
  const auto slot = [&](std::uint32_t list, int at, int lane) {
    return warp.source(warp.code().refs[list + static_cast<std::uint32_t>(at)]).lane[lane];
  };
  const int halves = shape.m / 8;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int group = lane / 4, place = lane % 4;
    const int per = elements_per_register(ta);
    for (int r = 0; r < halves * shape.k / (4 * per); ++r) {
      for (int n = 0; n < per; ++n)
        a[group + 8 * (r % halves)][r / halves * 4 * per + place * per + n] = element(slot(step.a, r, lane), ta, n);
    }
    for (int r = 0; r < shape.k / (4 * per); ++r) {
      for (int n = 0; n < per; ++n) b[r * 4 * per + place * per + n][group] = element(slot(step.b, r, lane), tb, n);
    }
    const int per_c = tc == Type::kF16 ? 2 : 1;
    for (int e = 0; e < 2 * halves; ++e)
      sum[group + 8 * (e / 2)][place * 2 + e % 2] = element(slot(step.c, e / per_c, lane), tc, e % per_c);
  }
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < 8; ++column) {
      for (int k = 0; k < shape.k; ++k) sum[row][column] = std::fma(a[row][k], b[k][column], sum[row][column]);
    }
  }
  const auto result = [&](double x) -> std::uint64_t {
    if (td == Type::kF64) return slot_of<double>(x);
    if (td == Type::kF32) return slot_of<float>(static_cast<float>(x));
    if (td == Type::kF16) return encode(x, kF16);
    if (i.has(Modifier::kSatfinite)) x = std::clamp(x, -2147483648.0, 2147483647.0);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(x));
  };
  const int per_d = td == Type::kF16 ? 2 : 1;
  for (int e = 0; e < 2 * halves; ++e) {
    const Ref d = warp.code().refs[step.list + static_cast<std::uint32_t>(e / per_d)];
    if (d == kNoRef) continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = result(sum[lane / 4 + 8 * (e / 2)][lane % 4 * 2 + e % 2]);
      std::uint64_t& at = warp.row(d).lane[lane];
      at = e % per_d == 0 ? value : at | value << 16;
    }
  }
}

void lower_mma(Lowering& lowering, const Instruction& i, Step& step) {
  MatrixShape shape{};
  const Type td = i.types[0], ta = i.types[1], tb = i.types[2], tc = i.types[3];
  const bool integers = (ta == Type::kS8 || ta == Type::kU8) && (tb == Type::kS8 || tb == Type::kU8) &&
                        td == Type::kS32 && tc == Type::kS32;
  const bool floats = ta == tb && (ta == Type::kF16 || ta == Type::kBf16 || ta == Type::kTf32) &&
                      (td == Type::kF32 || (td == Type::kF16 && ta == Type::kF16)) &&
                      (tc == Type::kF32 || (tc == Type::kF16 && ta == Type::kF16));
  const bool doubles = ta == Type::kF64 && tb == ta && tc == ta && td == ta;
  if (!shape_of(i, shape) || !(integers || floats || doubles)) throw Missing{text_of(i)};
  const int per = elements_per_register(ta);
  // The shape that Volta had is laid out in another way.
  if (shape.k % (4 * per) != 0 || (floats && shape.m == 8)) throw Missing{text_of(i)};
  const std::size_t halves = static_cast<std::size_t>(shape.m) / 8;
  const std::size_t blocks = static_cast<std::size_t>(shape.k / (4 * per));
  const std::size_t wanted[] = {2 * halves / (td == Type::kF16 ? 2 : 1), halves * blocks, blocks,
                                2 * halves / (tc == Type::kF16 ? 2 : 1)};
  std::uint32_t lists[4];
  for (std::size_t at = 0; at < 4; ++at) {
    lowering.vector(i.operands[at], i.types[at], at == 0, step);
    if (step.count != wanted[at]) throw Missing{text_of(i) + " with other numbers of registers"};
    lists[at] = step.list;
  }
  step.list = lists[0];
  step.a = lists[1];
  step.b = lists[2];
  step.c = lists[3];
  step.weight = static_cast<std::uint8_t>(std::min(shape.m * shape.k / 32, 255));
  step.run = run_mma;
}

}  // namespace

bool lower_matrix(Lowering& lowering, const Instruction& i, Step& step) {
  switch (i.op) {
    case Op::kMma:
      lower_mma(lowering, i, step);
      break;
    case Op::kLdmatrix:
    case Op::kStmatrix: {
      const bool is_load = i.op == Op::kLdmatrix;
      lowering.address(i.operands[is_load ? 1 : 0], step);
      lowering.vector(i.operands[is_load ? 0 : 1], Type::kB32, is_load, step);
      if (!i.has(Modifier::kM8n8) || step.count != matrices_of(i)) throw Missing{text_of(i)};
      step.run = is_load ? run_ldmatrix : run_stmatrix;
      break;
    }
    case Op::kMovmatrix:
      step.d = lowering.destination(i.operands[0]);
      step.a = lowering.source(i.operands[1], Type::kB32);
      step.run = run_movmatrix;
      break;
    default:
      return false;
  }
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
