// Textures and surfaces, mbarrier, and grids whose blocks wait for each other.
#include "ptx/execution/texture.h"

#include <cmath>

#include "harness.h"

namespace ptx_test {
namespace {

// 4 x 3 floats, 10 * y + x, with two of padding a row.
struct Image {
  std::vector<float> bytes = std::vector<float>(3 * 6, -1.0f);
  ptx::Texture texture;
  Image() {
    for (std::size_t y = 0; y < 3; ++y) {
      for (std::size_t x = 0; x < 4; ++x) bytes[y * 6 + x] = static_cast<float>(10 * y + x);
    }
    texture.levels = {{reinterpret_cast<std::uint64_t>(bytes.data()), 24, 72, 4, 3, 1}};
  }
};

class Handle {
 public:
  explicit Handle(const ptx::Texture& texture) : number(ptx::add_texture(texture)) {}
  ~Handle() { ptx::remove_texture(number); }
  const std::uint64_t number;
};

std::uint64_t pair_of(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) | std::uint64_t{std::bit_cast<std::uint32_t>(y)} << 32;
}

float float_of(std::uint64_t slot) { return std::bit_cast<float>(static_cast<std::uint32_t>(slot)); }

// What a fetch of places gives; the handle is the same in all lanes.
Values fetched(const ptx::Texture& texture, const Values& places, const std::string& op = "tex.2d.v4.f32.f32") {
  const Handle handle(texture);
  Values handles{};
  handles.fill(handle.number);
  return computed(
      "mov.b64 {%r1, %r2}, %rd1; mov.b32 %f1, %r1; mov.b32 %f2, %r2; " + op +
          " {%f3, %f4, %f5, %f6}, [%rd2, {%f1, %f2}]; mov.b32 %r3, %f3; mov.b32 %r4, %f6; mov.b64 %rd0, {%r3, %r4};",
      places, handles);
}

TEST(Texture, TheNearestElement) {
  Image image;
  Values places{};
  places[0] = pair_of(0.5f, 0.5f);
  places[1] = pair_of(3.9f, 2.1f);
  places[2] = pair_of(-5.0f, 1.0f);   // clamped
  places[3] = pair_of(99.0f, 99.0f);  // on both sides
  const Values got = fetched(image.texture, places);
  EXPECT_EQ(float_of(got[0]), 0.0f);
  EXPECT_EQ(float_of(got[1]), 23.0f);
  EXPECT_EQ(float_of(got[2]), 10.0f);
  EXPECT_EQ(float_of(got[3]), 23.0f);
  EXPECT_EQ(float_of(got[0] >> 32), 1.0f) << "alpha, which the texture has not";
}

TEST(Texture, LinearFiltering) {
  Image image;
  image.texture.linear = true;
  Values places{};
  places[0] = pair_of(1.0f, 1.0f);    // between four: (0 + 1 + 10 + 11) / 4
  places[1] = pair_of(2.5f, 1.5f);    // on one
  places[2] = pair_of(1.75f, 0.5f);   // a quarter of the way
  places[3] = pair_of(1.501f, 0.5f);  // weights have 8 bits: nothing of the second
  const Values got = fetched(image.texture, places);
  EXPECT_EQ(float_of(got[0]), 5.5f);
  EXPECT_EQ(float_of(got[1]), 12.0f);
  EXPECT_EQ(float_of(got[2]), 1.25f);
  EXPECT_EQ(float_of(got[3]), 1.0f);
}

TEST(Texture, AddressModes) {
  Image image;
  image.texture.normalized = true;
  Values places{};
  places[0] = pair_of(1.125f, 0.1f);   // x: 4.5 elements
  places[1] = pair_of(-0.125f, 0.1f);  // -0.5
  const auto modes = [&](ptx::AddressMode mode) {
    std::ranges::fill(image.texture.modes, mode);
    const Values got = fetched(image.texture, places);
    return std::pair{float_of(got[0]), float_of(got[1])};
  };
  EXPECT_EQ(modes(ptx::AddressMode::kClamp), (std::pair{3.0f, 0.0f}));
  EXPECT_EQ(modes(ptx::AddressMode::kWrap), (std::pair{0.0f, 3.0f}));
  EXPECT_EQ(modes(ptx::AddressMode::kMirror), (std::pair{3.0f, 0.0f}));
  image.texture.border[0] = 7.5f;
  EXPECT_EQ(modes(ptx::AddressMode::kBorder), (std::pair{7.5f, 7.5f}));
}

TEST(Texture, BytesAsFloatsAndAsIntegers) {
  const std::uint8_t bytes[8] = {0, 51, 255, 128, 1, 2, 3, 4};
  ptx::Texture texture;
  texture.kind = ptx::ChannelKind::kUnsigned;
  texture.channel_bytes = 1;
  texture.channels = 4;
  texture.levels = {{reinterpret_cast<std::uint64_t>(bytes), 8, 8, 2, 1, 1}};
  Values places{};
  places.fill(pair_of(0.5f, 0.0f));
  EXPECT_EQ(float_of(fetched(texture, places)[0] >> 32), 128.0f / 255.0f);
  texture.reads_integers = true;
  EXPECT_EQ(fetched(texture, places, "tex.2d.v4.u32.f32")[0] >> 32, 128u);
  texture.kind = ptx::ChannelKind::kSigned;
  EXPECT_EQ(static_cast<std::int32_t>(fetched(texture, places, "tex.2d.v4.s32.f32")[0] >> 32), -128);
  texture.reads_integers = false;
  EXPECT_EQ(float_of(fetched(texture, places)[0] >> 32), -1.0f);
}

TEST(Texture, LinearMemoryByNumber) {
  Image image;
  image.texture.fetched = true;
  image.texture.levels[0] = {reinterpret_cast<std::uint64_t>(image.bytes.data()), 0, 0, 4, 1, 1};
  const Handle handle(image.texture);
  Values numbers{}, handles{};
  handles.fill(handle.number);
  for (std::size_t l = 0; l < 32; ++l) numbers[l] = l == 31 ? 0xffffffff : l;
  const Values got = computed(
      "cvt.u32.u64 %r1, %rd1; tex.1d.v4.f32.s32 {%f3, %f4, %f5, %f6}, [%rd2, {%r1}]; mov.b32 %r3, %f3; cvt.u64.u32 "
      "%rd0, %r3;",
      numbers, handles);
  for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(float_of(got[l]), l < 4 ? static_cast<float>(l) : 0.0f) << l;
}

TEST(Texture, GatherAndQueries) {
  Image image;
  const Handle handle(image.texture);
  Values handles{};
  handles.fill(handle.number);
  const Values got = computed(
      "mov.f32 %f1, 0f3F800000; tld4.r.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f1, %f1}]; txq.width.b32 %r5, "
      "[%rd2];"
      "txq.height.b32 %r6, [%rd2]; mul.lo.u32 %r5, %r5, 100; add.u32 %r5, %r5, %r6; cvt.rzi.u32.f32 %r7, %f3;"
      "cvt.rzi.u32.f32 %r8, %f4; mul.lo.u32 %r7, %r7, 100; add.u32 %r7, %r7, %r8; mov.b64 %rd0, {%r5, %r7};",
      {}, handles);
  EXPECT_EQ(got[0] & 0xffffffff, 403u);
  EXPECT_EQ(got[0] >> 32, 1011u);  // (0, 1), then (1, 1)
}

TEST(Texture, WhatIsNoTextureIsSaid) {
  Values handles{}, out{};
  handles.fill(12345678);
  Module module(kernel_text("mov.f32 %f1, 0f3F800000; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd2, {%f1, %f1}];"));
  ASSERT_EQ(module.make("k"), "");
  const ptx::Outcome outcome =
      module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data(), out.data(), handles.data(), out.data());
  EXPECT_EQ(outcome.stop, ptx::Stop::kAddress);
  EXPECT_NE(outcome.text.find("no texture"), std::string::npos) << outcome.text;
}

TEST(Texture, LayersFacesAndLevels) {
  // Six faces of 2 x 2, each of its number; a layer is a face.
  std::vector<float> faces(24);
  for (std::size_t at = 0; at < 24; ++at) faces[at] = static_cast<float>(at / 4);
  ptx::Texture cube;
  cube.levels = {{reinterpret_cast<std::uint64_t>(faces.data()), 8, 16, 2, 2, 6}};
  const ptx::Reader reader;
  const float directions[6][3] = {{1, 0.2f, 0.1f}, {-1, 0, 0}, {0.3f, 1, 0}, {0, -1, 0}, {0, 0.5f, 1}, {0, 0, -1}};
  for (std::size_t face = 0; face < 6; ++face) {
    ptx::Coordinates at;
    at.x = directions[face][0];
    at.y = directions[face][1];
    at.z = directions[face][2];
    at.is_cube = true;
    at.dimensions = 3;
    EXPECT_EQ(ptx::fetch(cube, at, reader).f[0], static_cast<float>(face)) << face;
    ptx::Coordinates layer;
    layer.x = layer.y = 0.5f;
    layer.layer = static_cast<std::uint32_t>(face);
    EXPECT_EQ(ptx::fetch(cube, layer, reader).f[0], static_cast<float>(face)) << face;
  }
  // Between levels of detail.
  const float small = 100;
  ptx::Texture levels;
  levels.normalized = levels.linear_levels = true;
  levels.most_level = 10;
  levels.levels = {cube.levels[0], {reinterpret_cast<std::uint64_t>(&small), 4, 4, 1, 1, 1}};
  ptx::Coordinates at;
  at.x = at.y = 0.25f;
  at.level = 0.5f;
  EXPECT_EQ(ptx::fetch(levels, at, reader).f[0], 50.0f);
  at.level = 7;
  EXPECT_EQ(ptx::fetch(levels, at, reader).f[0], 100.0f);
}

TEST(Surface, StoresAndLoads) {
  Image image;
  image.texture.is_surface = true;
  const Handle handle(image.texture);
  Values handles{}, rows{};
  handles.fill(handle.number);
  for (std::size_t l = 0; l < 32; ++l) rows[l] = l % 3;
  // Four lanes a row add to what is there; bytes of x. Others are outside and left alone.
  const Values got = computed(
      "cvt.u32.u64 %r1, %rd1; mov.u32 %r2, %tid.x; div.u32 %r2, %r2, 3; shl.b32 %r2, %r2, 2;"
      "suld.b.2d.b32.zero {%r3}, [%rd2, {%r2, %r1}]; mov.b32 %f1, %r3; add.f32 %f1, %f1, 0f3F800000; mov.b32 %r4, %f1;"
      "sust.b.2d.b32.zero [%rd2, {%r2, %r1}], {%r4}; cvt.u64.u32 %rd0, %r3;",
      rows, handles);
  for (std::size_t l = 0; l < 12; ++l) {
    EXPECT_EQ(float_of(got[l]), static_cast<float>(l % 3 * 10 + l / 3)) << l;
    EXPECT_EQ(image.bytes[l % 3 * 6 + l / 3], static_cast<float>(l % 3 * 10 + l / 3 + 1)) << l;
  }
  for (std::size_t l = 12; l < 32; ++l) EXPECT_EQ(got[l], 0u) << l;
  EXPECT_EQ(image.bytes[4], -1.0f);
  Values out{};
  Module module(kernel_text("mov.u32 %r1, -4; suld.b.2d.b32.trap {%r3}, [%rd2, {%r1, %r1}];"));
  ASSERT_EQ(module.make("k"), "");
  EXPECT_EQ(module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data(), out.data(), handles.data(), out.data()).stop,
            ptx::Stop::kAddress);
}

TEST(Mbarrier, WarpsWaitForEachOther) {
  // Two warps; each thread writes, arrives, waits, and reads what the other warp has written. Twice.
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 out)
{
.shared .align 8 .b8 barrier[8]; .shared .align 4 .b8 data[256];
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
mov.u32 %r0, %tid.x; mov.u32 %r1, barrier; mov.u32 %r2, data;
setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
mbarrier.init.shared.b64 [%r1], 64;
READY: bar.sync 0;
shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3; xor.b32 %r5, %r3, 128; add.u32 %r5, %r2, %r5; mov.u32 %r6, 0; mov.u32 %r7, %r0;
ROUND: st.shared.u32 [%r4], %r7;
mbarrier.arrive.shared.b64 %rd1, [%r1];
WAIT: mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; @!%p1 bra WAIT;
ld.shared.u32 %r8, [%r5];
mbarrier.arrive.shared.b64 %rd1, [%r1];
AGAIN: mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; @!%p1 bra AGAIN;
add.u32 %r7, %r8, 1000; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 2; @%p2 bra ROUND;
ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r7;
ret;
}
)";
  Module module(text);
  ASSERT_EQ(module.make("k"), "");
  std::vector<std::uint32_t> out(64);
  const ptx::Outcome outcome = module.run({{1, 1, 1}, {64, 1, 1}}, {}, out.data());
  ASSERT_EQ(outcome.stop, ptx::Stop::kDone) << outcome.text;
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], t + 2000) << t;
}

TEST(CooperativeGrid, BlocksWaitForEachOther) {
  // As grid.sync() does it: the first thread of each block adds to a word and spins until all have.
  const std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 out)
{
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %tid.x;
mov.u32 %r3, %envreg1; mov.u32 %r4, %envreg2; mov.b64 %rd1, {%r4, %r3};
ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd2, %rd3;
setp.ne.u32 %p0, %r2, 0; @%p0 bra WRITTEN;
st.global.u32 [%rd4], %r0; membar.gl;
atom.global.add.u32 %r5, [%rd1+4], 1;
SPIN: ld.acquire.gpu.u32 %r6, [%rd1+4]; setp.ne.u32 %p1, %r6, %r1; @%p1 bra SPIN;
WRITTEN: bar.sync 0;
add.u32 %r7, %r0, 1; rem.u32 %r7, %r7, %r1; mul.wide.u32 %rd5, %r7, 4; add.s64 %rd5, %rd2, %rd5;
ld.global.u32 %r8, [%rd5]; add.s64 %rd4, %rd4, 64; st.global.u32 [%rd4], %r8;
ret;
}
)";
  Module module(text);
  ASSERT_EQ(module.make("k"), "");
  std::vector<std::uint32_t> out(32, 99);
  ptx::Shape shape{{16, 1, 1}, {64, 1, 1}};
  shape.cooperative = true;
  const ptx::Outcome outcome = module.run(shape, {}, out.data());
  ASSERT_EQ(outcome.stop, ptx::Stop::kDone) << outcome.text;
  for (std::uint32_t b = 0; b < 16; ++b) EXPECT_EQ(out[16 + b], (b + 1) % 16) << b;
}

}  // namespace
}  // namespace ptx_test
