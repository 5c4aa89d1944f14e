// wmma: matrices of a warp that are loaded, multiplied and stored as a whole. Which lane holds which element is left
// open by the ISA; here the pairs of elements lie as mma's accumulators do, 8 x 8 of them after each other, downwards
// first. All memory layouts have that one place, so that the layouts that a multiplication names mean nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "ptx/execution/lowering.h"
#include "ptx/execution/memory_access.h"
#include "ptx/execution/small_floats.h"

namespace cudasim::ptx {
namespace {

struct WmmaShape {
  Modifier modifier;
  int m, n, k;
};

constexpr WmmaShape kShapes[] = {{Modifier::kM16n16k16, 16, 16, 16},
                                 {Modifier::kM32n8k16, 32, 8, 16},
                                 {Modifier::kM8n32k16, 8, 32, 16},
                                 {Modifier::kM16n16k8, 16, 16, 8},
                                 {Modifier::kM8n8k4, 8, 8, 4}};

const WmmaShape& shape_of(const Instruction& i) {
  for (const WmmaShape& shape : kShapes) {
    if (i.has(shape.modifier)) return shape;
  }
  throw Missing{text_of(i)};
}

struct Fragment {
  int rows, columns;
  Type type;
  int per_register = 1;
  int registers = 0;
  int elements = 0;  // of a lane, each another one; registers behind them hold the same ones again
};

enum class Part { kA, kB, kC };

Fragment fragment_of(const Instruction& i, Part part, Type type) {
  const WmmaShape& shape = shape_of(i);
  Fragment f{part == Part::kB ? shape.k : shape.m, part == Part::kA ? shape.k : shape.n, type};
  const bool halves = type == Type::kF16 || type == Type::kBf16, bytes = type == Type::kS8 || type == Type::kU8;
  const bool fits = part == Part::kC ? (shape.k == 4    ? type == Type::kF64
                                        : shape.k == 8  ? type == Type::kF32
                                        : shape.k == 16 ? type == Type::kF16 || type == Type::kF32 || type == Type::kS32
                                                        : false)
                    : shape.k == 4   ? type == Type::kF64
                    : shape.k == 8   ? type == Type::kTf32
                                     : halves || bytes;
  if (!fits) throw Missing{text_of(i)};
  f.per_register = halves ? 2 : bytes ? 4 : 1;
  f.elements = f.rows * f.columns / kLanes;
  // Volta's fragments of f16 had each element twice, and their size is still that.
  f.registers = part != Part::kC && type == Type::kF16 ? 8 : f.elements / f.per_register;
  return f;
}

struct Place {
  int row, column;
};

// An element's place is the sum of lane 0's and of what the lane adds.
Place first_of(const Fragment& f, int element) {
  if (f.columns < 8 || f.rows < 8) return {0, 0};
  const int tile = element / 2, down = f.rows / 8;
  return {tile % down * 8, element % 2 + tile / down * 8};
}

Place lane_of(const Fragment& f, int lane) {
  if (f.rows < 8) return {lane % 4, lane / 4};
  return {lane / 4, f.columns < 8 ? lane % 4 : lane % 4 * 2};
}

Place operator+(Place a, Place b) { return {a.row + b.row, a.column + b.column}; }

std::uint64_t slot(const Warp& warp, Ref ref, int lane) { return warp.source(ref).lane[lane]; }

std::uint64_t bits_of(std::uint64_t slot, const Fragment& f, int element) {
  const int bytes = static_cast<int>(bytes_of(f.type));
  if (bytes == 8) return slot;
  return slot >> 8 * bytes * (element % f.per_register) & ((std::uint64_t{1} << 8 * bytes) - 1);
}

std::uint64_t address_of(Warp& warp, const Step& step, const Fragment& f, std::uint64_t base, std::uint64_t stride,
                         Place place, Access access) {
  const std::uint64_t across = static_cast<std::uint64_t>(step.source->has(Modifier::kRow) ? place.column : place.row);
  const std::uint64_t along = static_cast<std::uint64_t>(step.source->has(Modifier::kRow) ? place.row : place.column);
  const std::uint32_t bytes = bytes_of(f.type);
  const std::uint64_t address = base + (along * stride + across) * bytes;
  return step.source->space() == Space::kShared
             ? checked_address<MemoryKind::kShared>(warp, step, address, bytes, access)
             : checked_address<MemoryKind::kGeneric>(warp, step, address, bytes, access);
}

// While a launch is sampled, the program's memory is neither read nor written.
bool is_touched(Warp& warp, const Step& step, std::uint64_t address, std::uint32_t bytes) {
  if (!warp.block.sampling || step.source->space() == Space::kShared) return true;
  if (is_private<MemoryKind::kGeneric>(warp, address)) return true;
  warp.block.counts.global_bytes += bytes;
  return false;
}

Part part_of(const Instruction& i) {
  return i.has(Modifier::kAlpha) ? Part::kA : i.has(Modifier::kB) ? Part::kB : Part::kC;
}

// Lists: destinations; address, stride.
void run_load(Warp& warp, const Step& step, Mask mask) {
  const Fragment f = fragment_of(*step.source, part_of(*step.source), step.source->type());
  const Ref* const refs = warp.code().refs.data() + step.list;
  const Row address = warp.source(refs[step.count]), stride = warp.source(refs[step.count + 1]);
  const std::uint32_t bytes = bytes_of(f.type);
  std::uint64_t values[8][kLanes] = {};
  for (int e = 0; e < f.elements; ++e) {
    const Place first = first_of(f, e);
    const std::uint32_t shift = 8 * bytes * static_cast<std::uint32_t>(e % f.per_register);
    for_lanes(mask, [&](int lane) {
      const std::uint64_t from =
          address_of(warp, step, f, address.lane[lane] + step.value, static_cast<std::uint32_t>(stride.lane[lane]),
                     first + lane_of(f, lane), Access::kRead);
      std::uint64_t one = 0;
      if (is_touched(warp, step, from, bytes)) std::memcpy(&one, reinterpret_cast<const void*>(from), bytes);
      values[e / f.per_register][lane] |= one << shift;
    });
  }
  const int distinct = f.elements / f.per_register;
  for (int r = 0; r < f.registers; ++r) {
    if (refs[r] == kNoRef) continue;
    Row& row = warp.row(refs[r]);
    for_lanes(mask, [&](int lane) { row.lane[lane] = values[r % distinct][lane]; });
  }
}

// Lists: address, stride, sources.
void run_store(Warp& warp, const Step& step, Mask mask) {
  const Fragment f = fragment_of(*step.source, Part::kC, step.source->type());
  const Ref* const refs = warp.code().refs.data() + step.list;
  const std::uint32_t bytes = bytes_of(f.type);
  for (int e = 0; e < f.elements; ++e) {
    const Place first = first_of(f, e);
    const Row& row = warp.source(refs[2 + e / f.per_register]);
    for_lanes(mask, [&](int lane) {
      const std::uint64_t value = bits_of(row.lane[lane], f, e);
      const std::uint64_t to =
          address_of(warp, step, f, slot(warp, refs[0], lane) + step.value,
                     static_cast<std::uint32_t>(slot(warp, refs[1], lane)), first + lane_of(f, lane), Access::kWrite);
      if (is_touched(warp, step, to, bytes)) std::memcpy(reinterpret_cast<void*>(to), &value, bytes);
    });
  }
}

double half_value(std::uint32_t bits) {
  const std::uint32_t exponent = bits & 0x7c00;
  if (exponent == 0x7c00 || (exponent == 0 && (bits & 0x3ff) != 0)) return decode(bits, kF16);
  const std::uint32_t sign = (bits & 0x8000) << 16;
  return std::bit_cast<float>(exponent == 0 ? sign : sign | (((bits & 0x7fff) << 13) + (112u << 23)));
}

template <Type kType>
double value_at(std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  if constexpr (kType == Type::kF64) return std::bit_cast<double>(bits);
  if constexpr (kType == Type::kTf32) return std::bit_cast<float>(low & 0xffffe000u);  // the low bits are not looked at
  if constexpr (kType == Type::kF32) return std::bit_cast<float>(low);
  if constexpr (kType == Type::kBf16) return std::bit_cast<float>(low << 16);
  if constexpr (kType == Type::kF16) return half_value(low);
  if constexpr (kType == Type::kS8) return static_cast<std::int8_t>(low);
  if constexpr (kType == Type::kU8) return static_cast<std::uint8_t>(low);
  return static_cast<std::int32_t>(low);
}

std::uint64_t bits_as(double x, Type type, bool saturate) {
  if (type == Type::kF64) return std::bit_cast<std::uint64_t>(x);
  if (type == Type::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (type == Type::kF16) return encode(x, kF16);
  if (saturate) x = std::clamp(x, -2147483648.0, 2147483647.0);
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(x));
}

constexpr int kMostRows = 32, kMostColumns = 32, kMostDepth = 16;

template <std::size_t kStride, Type kType>
void read_as(const Warp& warp, const Fragment& f, const Ref* refs, double (*values)[kStride]) {
  for (int e = 0; e < f.elements; ++e) {
    const Row& row = warp.source(refs[e / f.per_register]);
    const Place first = first_of(f, e);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = first + lane_of(f, lane);
      values[place.row][place.column] = value_at<kType>(bits_of(row.lane[lane], f, e));
    }
  }
}

template <std::size_t kStride>
void read(const Warp& warp, const Fragment& f, const Ref* refs, double (*values)[kStride]) {
  (f.type == Type::kF64    ? read_as<kStride, Type::kF64>
   : f.type == Type::kTf32 ? read_as<kStride, Type::kTf32>
   : f.type == Type::kF32  ? read_as<kStride, Type::kF32>
   : f.type == Type::kBf16 ? read_as<kStride, Type::kBf16>
   : f.type == Type::kF16  ? read_as<kStride, Type::kF16>
   : f.type == Type::kS8   ? read_as<kStride, Type::kS8>
   : f.type == Type::kU8   ? read_as<kStride, Type::kU8>
                           : read_as<kStride, Type::kS32>)(warp, f, refs, values);
}

// Products of all types but f64 are exact, so that a sum is rounded as a fused one is.
template <int kColumns>
void multiply(int rows, int depth, const double (*a)[kMostDepth], const double (*b)[kMostColumns],
              double (*sum)[kMostColumns]) {
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < depth; ++k) {
      const double x = a[row][k];
      for (int column = 0; column < kColumns; ++column) sum[row][column] += x * b[k][column];
    }
  }
}

// In f64, as mma is: lists of destinations, then a, b, c.
void run_multiply(Warp& warp, const Step& step, Mask) {
  const Instruction& i = *step.source;
  const bool named = i.types.size() == 4;
  const Type ta = named ? i.types[1] : Type::kF16, tb = named ? i.types[2] : Type::kF16;
  const Fragment fa = fragment_of(i, Part::kA, ta), fb = fragment_of(i, Part::kB, tb);
  const Fragment fc = fragment_of(i, Part::kC, i.types.back()), fd = fragment_of(i, Part::kC, i.types.front());
  const Ref* const refs = warp.code().refs.data() + step.list;
  double a[kMostRows][kMostDepth], b[kMostDepth][kMostColumns], sum[kMostRows][kMostColumns];
  read<kMostDepth>(warp, fa, refs + fd.registers, a);
  read<kMostColumns>(warp, fb, refs + fd.registers + fa.registers, b);
  read<kMostColumns>(warp, fc, refs + fd.registers + fa.registers + fb.registers, sum);
  if (ta == Type::kF64) {
    for (int row = 0; row < fd.rows; ++row) {
      for (int column = 0; column < fd.columns; ++column) {
        for (int k = 0; k < fa.columns; ++k) sum[row][column] = std::fma(a[row][k], b[k][column], sum[row][column]);
      }
    }
  } else {
    (fd.columns == 8 ? multiply<8> : fd.columns == 16 ? multiply<16> : multiply<32>)(fd.rows, fa.columns, a, b, sum);
  }
  for (int e = 0; e < fd.elements; ++e) {
    const Ref d = refs[e / fd.per_register];
    if (d == kNoRef) continue;
    Row& row = warp.row(d);
    const Place first = first_of(fd, e);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Place place = first + lane_of(fd, lane);
      const std::uint64_t value = bits_as(sum[place.row][place.column], fd.type, i.has(Modifier::kSatfinite));
      row.lane[lane] = e % fd.per_register == 0 ? value : row.lane[lane] | value << 16;
    }
  }
}

// The registers of operand `at`, as many as the fragment has.
std::vector<Ref> registers_of(Lowering& lowering, const Instruction& i, std::size_t at, const Fragment& f,
                              bool is_destination) {
  const Operand& operand = i.operands[at];
  const std::vector<Operand> one{operand};
  const std::vector<Operand>& elements = operand.kind == Operand::Kind::kVector ? operand.elements : one;
  if (elements.size() != static_cast<std::size_t>(f.registers))
    throw Missing{text_of(i) + " with other numbers of registers"};
  std::vector<Ref> refs;
  for (const Operand& element : elements) {
    if (is_destination && element.kind != Operand::Kind::kRegister && element.kind != Operand::Kind::kSink)
      throw Missing{text_of(i) + " with operands of another kind"};
    refs.push_back(is_destination ? lowering.destination(element) : lowering.source(element, Type::kB32));
  }
  return refs;
}

void lower_multiply(Lowering& lowering, const Instruction& i, Step& step) {
  if (i.operands.size() != 4 || (i.types.size() != 2 && i.types.size() != 4)) throw Missing{text_of(i)};
  const bool named = i.types.size() == 4;
  const Type td = i.types.front(), tc = i.types.back();
  const Type ta = named ? i.types[1] : Type::kF16, tb = named ? i.types[2] : Type::kF16;
  const bool integers = (ta == Type::kS8 || ta == Type::kU8) && (tb == Type::kS8 || tb == Type::kU8);
  const bool sums = integers           ? td == Type::kS32 && tc == td
                    : ta == Type::kF16 ? td != Type::kS32 && tc != Type::kS32
                    : ta == Type::kF64 ? td == ta && tc == ta
                                       : td == Type::kF32 && tc == td;
  const WmmaShape& shape = shape_of(i);
  if (!(integers || ta == tb) || !sums || (i.has(Modifier::kSatfinite) && !integers)) throw Missing{text_of(i)};
  const std::vector<Ref> destinations = registers_of(lowering, i, 0, fragment_of(i, Part::kC, td), true);
  std::vector<Ref> sources = registers_of(lowering, i, 1, fragment_of(i, Part::kA, ta), false);
  for (const auto& [at, fragment] : {std::pair{2, fragment_of(i, Part::kB, tb)}, {3, fragment_of(i, Part::kC, tc)}}) {
    const std::vector<Ref> more = registers_of(lowering, i, static_cast<std::size_t>(at), fragment, false);
    sources.insert(sources.end(), more.begin(), more.end());
  }
  lowering.lists(destinations, sources, step);
  step.weight = static_cast<std::uint8_t>(std::min(shape.m * shape.n * shape.k / kLanes, 255));
  step.run = run_multiply;
}

void lower_access(Lowering& lowering, const Instruction& i, Step& step, bool is_load) {
  const Fragment f = fragment_of(i, part_of(i), i.type());
  const bool known = i.types.size() == 1 && i.operands.size() >= 2 && i.operands.size() <= 3 &&
                     i.has(Modifier::kRow) != i.has(Modifier::kCol) && (is_load || part_of(i) == Part::kC);
  if (!known) throw Missing{text_of(i)};
  const Operand& memory = i.operands[is_load ? 1 : 0];
  if ((memory.kind != Operand::Kind::kAddress && memory.kind != Operand::Kind::kVariable) || !memory.elements.empty())
    throw Missing{text_of(i) + " with operands of another kind"};
  lowering.address(memory, step);
  // Without a stride, rows (or columns) follow each other.
  const Ref stride = i.operands.size() == 3
                         ? lowering.source(i.operands[2], Type::kU32)
                         : lowering.constant(static_cast<std::uint64_t>(i.has(Modifier::kRow) ? f.columns : f.rows));
  const std::vector<Ref> values = registers_of(lowering, i, is_load ? 0 : 1, f, is_load);
  std::vector<Ref> sources{step.a, stride};
  step.a = kNoRef;
  if (!is_load) sources.insert(sources.end(), values.begin(), values.end());
  lowering.lists(is_load ? values : std::vector<Ref>{}, sources, step);
  step.weight = static_cast<std::uint8_t>(f.elements);
  step.run = is_load ? run_load : run_store;
}

}  // namespace

bool lower_wmma(Lowering& lowering, const Instruction& i, Step& step) {
  if (i.op != Op::kWmma) return false;
  if (i.has(Modifier::kMma)) {
    lower_multiply(lowering, i, step);
  } else if (i.has(Modifier::kLoad) || i.has(Modifier::kStore)) {
    lower_access(lowering, i, step, i.has(Modifier::kLoad));
  } else {
    throw Missing{text_of(i)};
  }
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
