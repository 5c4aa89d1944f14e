// Textures and surfaces: what a handle stands for, and the reading of it. The owner of the memory (the driver) makes
// handles; kernels name them. What lies where is pitch-linear: rows of elements of one to four channels.
//
// The arithmetic is that of the CUDA Programming Guide, "Texture Fetching": coordinates, address modes, and linear
// filtering with weights of 8 bits behind the binary point.
//
// Threads: none but the one that has the driver's lock, or runs a launch for it.
#pragma once
#include <cstdint>
#include <vector>

namespace cudasim::ptx {

enum class ChannelKind : std::uint8_t { kUnsigned, kSigned, kFloat };
enum class AddressMode : std::uint8_t { kWrap, kClamp, kMirror, kBorder };

// One level of detail. `layers`: of a layered texture; six for each cube.
struct TextureLevel {
  std::uint64_t base = 0;
  std::uint64_t pitch = 0;  // bytes from row to row
  std::uint64_t slice = 0;  // bytes from slice to slice, or from layer to layer
  std::uint32_t width = 1;  // elements
  std::uint32_t height = 1;
  std::uint32_t depth = 1;  // slices or layers
};

struct Texture {
  std::vector<TextureLevel> levels;  // at least one
  ChannelKind kind = ChannelKind::kFloat;
  std::uint32_t channel_bytes = 4;  // 1, 2 or 4
  std::uint32_t channels = 1;       // 1, 2 or 4
  AddressMode modes[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  bool linear = false;
  bool linear_levels = false;   // between levels of detail
  bool normalized = false;      // coordinates from 0 to 1
  bool reads_integers = false;  // integers as they are, else as floats from 0 or -1 to 1
  bool srgb = false;            // of 8-bit channels
  bool fetched = false;         // linear memory: by an element's number alone
  float border[4] = {};
  float level_bias = 0, least_level = 0, most_level = 0;
  bool is_surface = false;

  std::uint32_t element_bytes() const { return channel_bytes * channels; }
};

// Never 0.
std::uint64_t add_texture(const Texture& texture);
// Null for what is no handle.
const Texture* find_texture(std::uint64_t handle);
void remove_texture(std::uint64_t handle);

// A texture's value: four channels, as floats or as integers (reads_integers). What is missing is 0, alpha 1.
struct Texel {
  float f[4];
  std::uint32_t i[4];
};

// The places that a fetch reads are said to the visitor before: base address of an element.
using Touched = void (*)(void* context, std::uint64_t address, std::uint32_t bytes);

// How a coordinate is given.
struct Coordinates {
  float x = 0, y = 0, z = 0;  // in elements or from 0 to 1; of a cube the direction
  std::uint32_t layer = 0;
  bool is_cube = false;
  bool is_integer = false;  // x, y and z hold whole numbers, not to be filtered
  std::int32_t ix = 0, iy = 0, iz = 0;
  int dimensions = 2;
  float level = 0;
};
struct Reader {
  Touched touched = nullptr;
  void* context = nullptr;
  bool zero = false;  // nothing is read: all is zero
};
Texel fetch(const Texture& texture, const Coordinates& at, const Reader& reader);
// One channel of the four elements around, in tld4's order.
Texel gather(const Texture& texture, float x, float y, int channel, const Reader& reader);

}  // namespace cudasim::ptx
