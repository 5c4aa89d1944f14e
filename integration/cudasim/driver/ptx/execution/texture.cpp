#include "ptx/execution/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "ptx/execution/small_floats.h"

namespace cudasim::ptx {
namespace {

struct Table {
  std::map<std::uint64_t, Texture> textures;
  std::uint64_t last = 0;
};
// Never destroyed: kernels may run while the process ends.
Table& table() {
  static Table* const one = new Table;
  return *one;
}

// Where an index that is outside lies; -1: nowhere, which is the border.
std::int64_t folded(std::int64_t i, std::uint32_t size, AddressMode mode, bool normalized) {
  const auto n = static_cast<std::int64_t>(size);
  if (i >= 0 && i < n) return i;
  if (mode == AddressMode::kBorder) return -1;
  // Wrapping and mirroring are for coordinates from 0 to 1 alone.
  if (mode == AddressMode::kClamp || !normalized) return i < 0 ? 0 : n - 1;
  if (mode == AddressMode::kWrap) return (i % n + n) % n;
  const std::int64_t period = ((i % (2 * n)) + 2 * n) % (2 * n);
  return period < n ? period : 2 * n - 1 - period;
}

float from_srgb(float x) { return x <= 0.04045f ? x / 12.92f : std::pow((x + 0.055f) / 1.055f, 2.4f); }

float as_float(const Texture& t, std::uint32_t raw, std::uint32_t channel) {
  if (t.kind == ChannelKind::kFloat)
    return t.channel_bytes == 2 ? static_cast<float>(decode(raw, kF16)) : std::bit_cast<float>(raw);
  const int bits = static_cast<int>(8 * t.channel_bytes);
  if (t.kind == ChannelKind::kUnsigned) {
    const auto most = static_cast<float>((std::uint64_t{1} << bits) - 1);
    const float value = static_cast<float>(raw) / most;
    return t.srgb && t.channel_bytes == 1 && channel < 3 ? from_srgb(value) : value;
  }
  const std::int64_t value = static_cast<std::int64_t>(std::uint64_t{raw} << (64 - bits)) >> (64 - bits);
  const auto most = static_cast<float>((std::uint64_t{1} << (bits - 1)) - 1);
  return std::max(static_cast<float>(value) / most, -1.0f);
}

Texel border_of(const Texture& t) {
  Texel texel{};
  for (int c = 0; c < 4; ++c) {
    texel.f[c] = t.border[c];
    texel.i[c] = std::bit_cast<std::uint32_t>(t.border[c]);
  }
  return texel;
}

// The element at indices that may lie outside.
Texel element(const Texture& t, const TextureLevel& level, std::int64_t x, std::int64_t y, std::int64_t z,
              const Reader& reader, bool z_is_layer) {
  x = folded(x, level.width, t.modes[0], t.normalized);
  y = folded(y, level.height, t.modes[1], t.normalized);
  z = z_is_layer ? std::clamp<std::int64_t>(z, 0, level.depth - 1) : folded(z, level.depth, t.modes[2], t.normalized);
  if (x < 0 || y < 0 || z < 0) return border_of(t);
  const std::uint64_t address = level.base + static_cast<std::uint64_t>(z) * level.slice +
                                static_cast<std::uint64_t>(y) * level.pitch +
                                static_cast<std::uint64_t>(x) * t.element_bytes();
  if (reader.touched != nullptr) reader.touched(reader.context, address, t.element_bytes());
  std::byte bytes[16] = {};
  if (!reader.zero) std::memcpy(bytes, reinterpret_cast<const void*>(address), t.element_bytes());
  Texel texel{{0, 0, 0, 1}, {0, 0, 0, 1}};
  for (std::uint32_t c = 0; c < t.channels; ++c) {
    std::uint32_t raw = 0;
    std::memcpy(&raw, bytes + c * t.channel_bytes, t.channel_bytes);
    texel.f[c] = as_float(t, raw, c);
    const int unused = static_cast<int>(32 - 8 * t.channel_bytes);
    texel.i[c] = t.kind == ChannelKind::kSigned
                     ? static_cast<std::uint32_t>(static_cast<std::int32_t>(raw << unused) >> unused)
                     : raw;
  }
  return texel;
}

// A coordinate's two neighbours and the second one's weight, with 8 bits.
struct Place {
  std::int64_t first;
  float weight;
};

std::int64_t whole(float x) {
  // Beyond this no element lies, and floats have no fractions.
  return static_cast<std::int64_t>(std::floor(std::clamp(std::isnan(x) ? 0.0f : x, -1e9f, 1e9f)));
}

Place place_of(float x) {
  const float shifted = std::clamp(std::isnan(x) ? 0.0f : x, -1e9f, 1e9f) - 0.5f;
  const float below = std::floor(shifted);
  const float weight = std::floor((shifted - below) * 256.0f + 0.5f) / 256.0f;
  return {static_cast<std::int64_t>(below), weight};
}

// The face that a direction meets and where on it, from 0 to 1 ("Cubemap Textures").
std::uint32_t face_of(float x, float y, float z, float& s, float& t) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  float m = ax, sc = 0, tc = 0;
  std::uint32_t face = 0;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    sc = x >= 0 ? -z : z;
    tc = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    m = ay;
    sc = x;
    tc = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    m = az;
    sc = z >= 0 ? x : -x;
    tc = -y;
  }
  s = m == 0 ? 0.5f : (sc / m + 1) / 2;
  t = m == 0 ? 0.5f : (tc / m + 1) / 2;
  return face;
}

Texel fetch_level(const Texture& t, const TextureLevel& level, const Coordinates& at, const Reader& reader) {
  float x = at.x, y = at.y, z = at.z;
  std::int64_t layer = at.layer;
  int dimensions = at.dimensions;
  if (at.is_cube) {
    float s = 0, v = 0;
    layer = layer * 6 + face_of(x, y, z, s, v);
    x = s * static_cast<float>(level.width);
    y = v * static_cast<float>(level.height);
    dimensions = 2;
  } else if (t.normalized) {
    x *= static_cast<float>(level.width);
    y *= static_cast<float>(level.height);
    z *= static_cast<float>(level.depth);
  }
  const bool layered = dimensions < 3;
  if (!t.linear) {
    return element(t, level, whole(x), dimensions > 1 ? whole(y) : 0, layered ? layer : whole(z), reader, layered);
  }
  const Place px = place_of(x), py = dimensions > 1 ? place_of(y) : Place{0, 0},
              pz = layered ? Place{layer, 0} : place_of(z);
  Texel sum{};
  for (int corner = 0; corner < 8; ++corner) {
    const int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
    const float weight = (dx != 0 ? px.weight : 1 - px.weight) * (dy != 0 ? py.weight : 1 - py.weight) *
                         (dz != 0 ? pz.weight : 1 - pz.weight);
    if (weight == 0) continue;
    const Texel one = element(t, level, px.first + dx, py.first + dy, pz.first + dz, reader, layered);
    for (int c = 0; c < 4; ++c) sum.f[c] += weight * one.f[c];
  }
  return sum;
}

}  // namespace

std::uint64_t add_texture(const Texture& texture) {
  Table& t = table();
  t.textures.emplace(++t.last, texture);
  return t.last;
}

const Texture* find_texture(std::uint64_t handle) {
  const auto found = table().textures.find(handle);
  return found == table().textures.end() ? nullptr : &found->second;
}

void remove_texture(std::uint64_t handle) { table().textures.erase(handle); }

Texel fetch(const Texture& t, const Coordinates& at, const Reader& reader) {
  if (at.is_integer) {
    const TextureLevel& level = t.levels.front();
    // Behind linear memory's end there is nothing, and it reads as zero.
    const bool outside = at.ix < 0 || static_cast<std::uint32_t>(at.ix) >= level.width;
    if (t.fetched && outside) return {};
    return element(t, level, at.ix, at.iy, at.dimensions < 3 ? static_cast<std::int64_t>(at.layer) : at.iz, reader,
                   at.dimensions < 3);
  }
  if (t.levels.size() == 1) return fetch_level(t, t.levels.front(), at, reader);
  const auto last = static_cast<float>(t.levels.size() - 1);
  const float level =
      std::clamp(std::clamp(at.level + t.level_bias, t.least_level, std::max(t.least_level, t.most_level)), 0.0f, last);
  if (!t.linear_levels) return fetch_level(t, t.levels[static_cast<std::size_t>(std::floor(level + 0.5f))], at, reader);
  const auto below = static_cast<std::size_t>(level);
  const float weight = std::floor((level - static_cast<float>(below)) * 256.0f) / 256.0f;
  Texel texel = fetch_level(t, t.levels[below], at, reader);
  if (weight == 0) return texel;
  const Texel above = fetch_level(t, t.levels[below + 1], at, reader);
  for (int c = 0; c < 4; ++c) texel.f[c] = texel.f[c] * (1 - weight) + above.f[c] * weight;
  return texel;
}

Texel gather(const Texture& t, float x, float y, int channel, const Reader& reader) {
  const TextureLevel& level = t.levels.front();
  if (t.normalized) {
    x *= static_cast<float>(level.width);
    y *= static_cast<float>(level.height);
  }
  const std::int64_t left = place_of(x).first, top = place_of(y).first;
  const std::int64_t places[4][2] = {{left, top + 1}, {left + 1, top + 1}, {left + 1, top}, {left, top}};
  Texel texel{};
  for (int n = 0; n < 4; ++n) {
    const Texel one = element(t, level, places[n][0], places[n][1], 0, reader, true);
    texel.f[n] = one.f[channel];
    texel.i[n] = one.i[channel];
  }
  return texel;
}

}  // namespace cudasim::ptx
