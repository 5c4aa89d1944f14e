// tex, tld4, txq; suld, sust, suq. A step's list: destinations, as many as its count, then sources: the handle, the
// coordinates, what is stored, the level of detail.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ptx/execution/block_run.h"
#include "ptx/execution/lowering.h"
#include "ptx/execution/small_floats.h"
#include "ptx/execution/texture.h"

namespace cudasim::ptx {
namespace {

struct Geometry {
  Modifier modifier;
  int dimensions;
  bool layered;
  bool cube;
  int coordinates;  // at least
};
constexpr Geometry kGeometries[] = {
    {Modifier::k1d, 1, false, false, 1},  {Modifier::k2d, 2, false, false, 2}, {Modifier::k3d, 3, false, false, 3},
    {Modifier::kA1d, 1, true, false, 2},  {Modifier::kA2d, 2, true, false, 3}, {Modifier::kCube, 3, false, true, 3},
    {Modifier::kAcube, 3, true, true, 4},
};

const Geometry* geometry_of(const Instruction& i) {
  const auto* const found = std::ranges::find_if(kGeometries, [&](const Geometry& g) { return i.has(g.modifier); });
  return found == std::end(kGeometries) ? nullptr : found;
}

const Texture& texture_at(const Warp&, const Step& step, std::uint64_t handle, bool surface) {
  const Texture* const texture = find_texture(handle);
  if (texture == nullptr || texture->is_surface != surface)
    throw Stopped{Stop::kAddress, handle, step.source, surface ? "which is no surface" : "which is no texture"};
  return *texture;
}

void on_read(void* context, std::uint64_t address, std::uint32_t bytes) {
  const Observer& observer = *static_cast<const Observer*>(context);
  observer.touched(observer.context, address, bytes, Access::kRead);
}

// What is counted for the roofline: a sector for each lane, as neighbours mostly share theirs with a cache's help.
Reader reader_of(Warp& warp) {
  Reader reader;
  reader.zero = warp.block.sampling;
  if (warp.block.observer.touched != nullptr && !warp.block.sampling) {
    reader.touched = on_read;
    reader.context = &warp.block.observer;
  }
  return reader;
}

const Row& source_row(Warp& warp, const Step& step, std::size_t n) {
  return warp.source(warp.code().refs[step.list + step.count + n]);
}

void give(Warp& warp, const Step& step, int lane, const Texel& texel, bool integers) {
  const Type type = step.source->types[0];
  for (std::uint32_t n = 0; n < step.count; ++n) {
    const Ref d = warp.code().refs[step.list + n];
    if (d == kNoRef) continue;
    std::uint64_t value = integers ? texel.i[n] : std::bit_cast<std::uint32_t>(texel.f[n]);
    if (type == Type::kF16) value = encode(texel.f[n], kF16);
    if (type == Type::kF16x2) value = encode(texel.f[2 * n], kF16) | encode(texel.f[2 * n + 1], kF16) << 16;
    warp.row(d).lane[lane] = value;
  }
}

void count_elements(Warp& warp, Mask mask, std::uint32_t bytes) {
  if (warp.block.sampling) warp.block.counts.global_bytes += static_cast<std::uint64_t>(std::popcount(mask)) * bytes;
}

void run_tex(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const Geometry& geometry = *geometry_of(i);
  const Reader reader = reader_of(warp);
  const bool is_integer = i.types[1] == Type::kS32;
  const std::size_t layers = geometry.layered ? 1 : 0;
  for_lanes(mask, [&](int l) {
    const std::uint64_t handle = source_row(warp, step, 0).lane[l] + step.value;
    if (warp.block.sampling && find_texture(handle) == nullptr) return;
    const Texture& texture = texture_at(warp, step, handle, false);
    Coordinates at;
    at.dimensions = geometry.dimensions;
    at.is_cube = geometry.cube;
    at.is_integer = is_integer;
    const auto raw = [&](std::size_t n) { return static_cast<std::uint32_t>(source_row(warp, step, 1 + n).lane[l]); };
    if (geometry.layered)
      at.layer = static_cast<std::uint32_t>(std::max<std::int32_t>(static_cast<std::int32_t>(raw(0)), 0));
    float* const floats[] = {&at.x, &at.y, &at.z};
    std::int32_t* const integers[] = {&at.ix, &at.iy, &at.iz};
    for (std::size_t n = 0; n < static_cast<std::size_t>(geometry.dimensions); ++n) {
      if (is_integer) {
        *integers[n] = static_cast<std::int32_t>(raw(layers + n));
      } else {
        *floats[n] = std::bit_cast<float>(raw(layers + n));
      }
    }
    const std::size_t behind = i.operands[1].elements.size();
    if (i.has(Modifier::kLevel)) at.level = std::bit_cast<float>(raw(behind));
    if (i.has(Modifier::kGrad) && texture.levels.size() > 1) {
      // The larger of the two steps, in elements ("Texture Fetching", as OpenGL's rho).
      const std::size_t each = static_cast<std::size_t>(geometry.dimensions);
      float longest = 0;
      for (std::size_t direction = 0; direction < 2; ++direction) {
        float length = 0;
        for (std::size_t n = 0; n < each; ++n) {
          const TextureLevel& base = texture.levels.front();
          const auto size = static_cast<float>(n == 0 ? base.width : n == 1 ? base.height : base.depth);
          const float d = std::bit_cast<float>(raw(behind + direction * i.operands[2].elements.size() + n)) *
                          (texture.normalized ? size : 1);
          length += d * d;
        }
        longest = std::max(longest, length);
      }
      at.level = longest > 0 ? std::log2(longest) / 2 : -1e9f;
    }
    count_elements(warp, Mask{1} << l, texture.element_bytes());
    give(warp, step, l, fetch(texture, at, reader), i.types[0] != Type::kF32 && texture.reads_integers);
  });
}

void run_tld4(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const int channel = i.has(Modifier::kGreen) ? 1 : i.has(Modifier::kB) ? 2 : i.has(Modifier::kAlpha) ? 3 : 0;
  const Reader reader = reader_of(warp);
  for_lanes(mask, [&](int l) {
    const std::uint64_t handle = source_row(warp, step, 0).lane[l] + step.value;
    if (warp.block.sampling && find_texture(handle) == nullptr) return;
    const Texture& texture = texture_at(warp, step, handle, false);
    const auto at = [&](std::size_t n) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(source_row(warp, step, 1 + n).lane[l]));
    };
    count_elements(warp, Mask{1} << l, 4 * texture.element_bytes());
    give(warp, step, l, gather(texture, at(0), at(1), channel, reader), texture.reads_integers);
  });
}

void run_query(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  for_lanes(mask, [&](int l) {
    const std::uint64_t handle = source_row(warp, step, 0).lane[l] + step.value;
    if (warp.block.sampling && find_texture(handle) == nullptr) return;
    const Texture& texture = texture_at(warp, step, handle, i.op == Op::kSuq);
    const TextureLevel& level = texture.levels.front();
    Texel texel{};
    texel.i[0] = i.has(Modifier::kWidth)          ? level.width
                 : i.has(Modifier::kHeight)       ? level.height
                 : i.has(Modifier::kMipmapLevels) ? static_cast<std::uint32_t>(texture.levels.size())
                                                  : level.depth;
    give(warp, step, l, texel, true);
  });
}

// The address of a surface's element; 0 where the access is outside and not to be done. x is in bytes.
std::uint64_t surface_address(Warp& warp, const Step& step, int lane, std::uint32_t bytes) {
  const Instruction& i = *step.source;
  const Geometry& geometry = *geometry_of(i);
  const std::uint64_t handle = source_row(warp, step, 0).lane[lane] + step.value;
  const Texture& surface = texture_at(warp, step, handle, true);
  const TextureLevel& level = surface.levels.front();
  std::int64_t at[3] = {0, 0, 0};
  std::int64_t* const with_layer[] = {&at[2], &at[0], &at[1]};
  for (std::size_t n = 0; n < static_cast<std::size_t>(geometry.coordinates); ++n) {
    const auto value = static_cast<std::int32_t>(source_row(warp, step, 1 + n).lane[lane]);
    (geometry.layered ? *with_layer[n] : at[n]) = value;
  }
  const std::int64_t sizes[3] = {static_cast<std::int64_t>(level.width) * surface.element_bytes(), level.height,
                                 level.depth};
  for (int axis = 0; axis < 3; ++axis) {
    const std::int64_t last = sizes[axis] - (axis == 0 ? bytes : 1);
    if (at[axis] >= 0 && at[axis] <= last) continue;
    if (i.has(Modifier::kZeroing)) return 0;
    if (!i.has(Modifier::kClamp))
      throw Stopped{Stop::kAddress, static_cast<std::uint64_t>(at[axis]), step.source, "outside of the surface"};
    at[axis] = std::clamp<std::int64_t>(at[axis], 0, last);
  }
  const std::uint64_t address = level.base + static_cast<std::uint64_t>(at[2]) * level.slice +
                                static_cast<std::uint64_t>(at[1]) * level.pitch + static_cast<std::uint64_t>(at[0]);
  const Access access = i.op == Op::kSuld ? Access::kRead : Access::kWrite;
  if (warp.block.observer.touched != nullptr)
    warp.block.observer.touched(warp.block.observer.context, address, bytes, access);
  return address;
}

void run_suld(Warp& warp, const Step& step, Mask mask) {
  const std::uint32_t each = bytes_of(step.source->type());
  count_elements(warp, mask, each * step.count);
  for_lanes(mask, [&](int l) {
    std::byte bytes[32] = {};
    if (!warp.block.sampling) {
      const std::uint64_t address = surface_address(warp, step, l, each * step.count);
      if (address != 0) std::memcpy(bytes, reinterpret_cast<const void*>(address), each * step.count);
    }
    for (std::uint32_t n = 0; n < step.count; ++n) {
      const Ref d = warp.code().refs[step.list + n];
      std::uint64_t value = 0;
      std::memcpy(&value, bytes + n * each, each);
      if (d != kNoRef) warp.row(d).lane[l] = value;
    }
  });
}

void run_sust(Warp& warp, const Step& step, Mask mask) {
  const Instruction& i = *step.source;
  const std::uint32_t each = bytes_of(i.type()), count = i.vector_width();
  count_elements(warp, mask, each * count);
  if (warp.block.sampling) return;
  const std::size_t first = 1 + i.operands[0].elements.size();
  for_lanes(mask, [&](int l) {
    const std::uint64_t address = surface_address(warp, step, l, each * count);
    if (address == 0) return;
    for (std::uint32_t n = 0; n < count; ++n) {
      const std::uint64_t value = source_row(warp, step, first + n).lane[l];
      std::memcpy(reinterpret_cast<void*>(address + n * each), &value, each);
    }
  });
}

}  // namespace

bool lower_texture(Lowering& lowering, const Instruction& i, Step& step) {
  const bool is_store = i.op == Op::kSust;
  switch (i.op) {
    case Op::kTex:
      step.run = run_tex;
      break;
    case Op::kTld4:
      step.run = run_tld4;
      break;
    case Op::kTxq:
    case Op::kSuq:
      step.run = run_query;
      break;
    case Op::kSuld:
      step.run = run_suld;
      break;
    case Op::kSust:
      step.run = run_sust;
      break;
    default:
      return false;
  }
  const Operand& memory = i.operands[is_store ? 0 : 1];
  const Geometry* const geometry = geometry_of(i);
  const bool has_coordinates = i.op != Op::kTxq && i.op != Op::kSuq;
  if (memory.kind != Operand::Kind::kAddress || memory.index == kNoIndex)
    throw Missing{text_of(i) + " of a texture or surface by its name"};
  if (has_coordinates && (geometry == nullptr || static_cast<int>(memory.elements.size()) < geometry->coordinates))
    throw Missing{text_of(i)};
  const std::size_t more = i.has(Modifier::kLevel) ? 1 : i.has(Modifier::kGrad) ? 2 : 0;
  if (i.op == Op::kTex && i.operands.size() != 2 + more) throw Missing{text_of(i) + " with an offset"};
  std::vector<Ref> destinations, sources;
  const auto each = [](const Operand& operand, auto visit) {
    if (operand.kind != Operand::Kind::kVector) return visit(operand);
    for (const Operand& element : operand.elements) visit(element);
  };
  if (!is_store) each(i.operands[0], [&](const Operand& o) { destinations.push_back(lowering.destination(o)); });
  step.value = memory.value;
  sources.push_back(ref_to(Base::kFrame, memory.index));
  for (const Operand& coordinate : memory.elements)
    sources.push_back(coordinate.kind == Operand::Kind::kSink ? lowering.constant(0)
                                                              : lowering.source(coordinate, Type::kB32));
  for (std::size_t at = is_store ? 1 : 2; at < i.operands.size(); ++at)
    each(i.operands[at], [&](const Operand& o) { sources.push_back(lowering.source(o, i.type())); });
  const std::uint32_t wanted = i.op == Op::kTxq || i.op == Op::kSuq ? 1 : i.vector_width();
  const std::size_t values = is_store ? sources.size() - 1 - memory.elements.size() : destinations.size();
  if (values != wanted || (i.type() == Type::kF16x2 && wanted > 2))
    throw Missing{text_of(i) + " with " + std::to_string(values) + " values"};
  lowering.lists(destinations, sources, step);
  lowering.emit(step);
  return true;
}

}  // namespace cudasim::ptx
