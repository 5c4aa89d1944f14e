// Every form in which nvcc writes an image says the same; damaged ones end in ImageError.
#include "module/image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

namespace cudasim {
namespace {

std::vector<std::byte> read(const std::string& name) {
  std::ifstream file(std::string(MODULE_IMAGES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(chars.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

const KernelImage& kernel(const Image& image, std::string_view name) {
  for (const KernelImage& k : image.kernels) {
    if (k.name == name) return k;
  }
  throw std::runtime_error("no kernel " + std::string(name));
}

const GlobalImage& global(const Image& image, std::string_view name) {
  for (const GlobalImage& g : image.globals) {
    if (g.name == name) return g;
  }
  throw std::runtime_error("no variable " + std::string(name));
}

// Offsets and sizes as the CUDA ABI lays the structures out, by hand.
const std::vector<KernelParameter> kMixed{{0, 8}, {8, 8}, {16, 4}, {32, 32}, {64, 1}, {72, 16}, {96, 32}};
const std::vector<KernelParameter> kLarge{{0, 5000}, {5000, 4}, {5008, 8}};
const std::vector<KernelParameter> kInstance{{0, 8}, {8, 2}, {16, 8}};
const std::vector<KernelParameter> kPlain{{0, 4}, {8, 8}, {16, 1}, {24, 8}};

struct Case {
  const char* file;
  int device;
  Image::Form form;
  int arch;
};

class Images : public testing::TestWithParam<Case> {};

TEST_P(Images, SayWhatTheSourceSays) {
  const Image image = read_image(read(GetParam().file), GetParam().device);
  EXPECT_EQ(image.form, GetParam().form);
  EXPECT_EQ(image.arch, GetParam().arch);
  ASSERT_EQ(image.kernels.size(), 5u);
  EXPECT_EQ(kernel(image, "_Z5mixedPKfPfi4Widec3OddS2_").parameters, kMixed);
  EXPECT_EQ(kernel(image, "_Z5mixedPKfPfi4Widec3OddS2_").parameter_bytes(), 128u);
  EXPECT_EQ(kernel(image, "_Z5large5LargeiPi").parameters, kLarge);
  EXPECT_EQ(kernel(image, "_Z8instanceIdEvT_sPS0_").parameters, kInstance);
  EXPECT_EQ(kernel(image, "plain").parameters, kPlain);
  const KernelImage& bounded = kernel(image, "_Z7boundedv");
  EXPECT_TRUE(bounded.parameters.empty());
  EXPECT_EQ(bounded.max_threads, 256u);
  EXPECT_EQ(bounded.static_shared_bytes % 1024, 512u);  // from sm_90 on the first KiB is the system's
  EXPECT_EQ(kernel(image, "plain").max_threads, 1024u);
  if (image.form == Image::Form::kCubin) {
    EXPECT_GT(kernel(image, "plain").registers, 0u);
  }

  const int seven = 7;
  const GlobalImage& counter = global(image, "counter");
  ASSERT_EQ(counter.size, 4u);
  ASSERT_EQ(counter.initial.size(), 4u);
  EXPECT_EQ(std::memcmp(counter.initial.data(), &seven, 4), 0);
  EXPECT_EQ(global(image, "table").size, 400u);
  EXPECT_TRUE(global(image, "table").initial.empty());
  const float coefficients[4] = {1, 2, 3, 4};
  const GlobalImage& constant = global(image, "coefficients");
  EXPECT_TRUE(constant.constant);
  ASSERT_EQ(constant.initial.size(), sizeof coefficients);
  EXPECT_EQ(std::memcmp(constant.initial.data(), coefficients, sizeof coefficients), 0);
}

constexpr auto kCubin = Image::Form::kCubin;
constexpr auto kPtx = Image::Form::kPtx;
INSTANTIATE_TEST_SUITE_P(Forms, Images,
                         testing::Values(Case{"sm75.cubin", 75, kCubin, 75}, Case{"sm80.cubin", 80, kCubin, 80},
                                         Case{"sm80.cubin", 86, kCubin, 80}, Case{"sm90.cubin", 90, kCubin, 90},
                                         Case{"sm90a.cubin", 90, kCubin, 90}, Case{"sm120.cubin", 120, kCubin, 120},
                                         Case{"rdc.cubin", 80, kCubin, 80}, Case{"text.ptx", 80, kPtx, 80},
                                         Case{"text.ptx", 90, kPtx, 80}, Case{"debug.ptx", 80, kPtx, 80},
                                         Case{"default.fatbin", 80, kCubin, 80}, Case{"default.fatbin", 90, kCubin, 90},
                                         Case{"default.fatbin", 75, kCubin, 75}, Case{"default.fatbin", 61, kCubin, 75},
                                         Case{"default.fatbin", 120, kPtx, 90}, Case{"all.fatbin", 80, kCubin, 80},
                                         Case{"all.fatbin", 100, kPtx, 90}, Case{"none.fatbin", 90, kCubin, 90},
                                         Case{"none.fatbin", 120, kPtx, 90}, Case{"size.fatbin", 86, kCubin, 80},
                                         Case{"size.fatbin", 120, kPtx, 90}, Case{"speed.fatbin", 80, kCubin, 80},
                                         Case{"speed.fatbin", 120, kPtx, 90}, Case{"balance.fatbin", 80, kCubin, 80},
                                         Case{"variants.fatbin", 90, kCubin, 90},
                                         Case{"variants.fatbin", 103, kCubin, 100},
                                         Case{"variants.fatbin", 100, kCubin, 100}),
                         [](const auto& test) {
                           std::string name = std::string(test.param.file) + "_on_" + std::to_string(test.param.device);
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

CUresult error_of(std::span<const std::byte> bytes, int device) {
  try {
    read_image(bytes, device);
    return CUDA_SUCCESS;
  } catch (const ImageError& problem) {
    EXPECT_NE(std::string(problem.what()), "");
    return problem.error();
  }
}

CUresult error_of(std::string_view text, int device) { return error_of(std::as_bytes(std::span(text)), device); }

TEST(ImageErrors, CodeForAnotherDevice) {
  EXPECT_EQ(error_of(read("sm90.cubin"), 80), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(error_of(read("sm80.cubin"), 90), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(error_of(read("variants.fatbin"), 80), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(error_of(read("variants.fatbin"), 120), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(error_of(read("text.ptx"), 75), CUDA_ERROR_INVALID_PTX);
}

TEST(ImageErrors, Garbage) {
  EXPECT_EQ(error_of("", 80), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(error_of("hello", 80), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(error_of(std::string_view("\0\0\0\0\0\0", 6), 80), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(error_of("\x7f"
                     "ELF",
                     80),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(error_of("\x50\xed\x55\xba", 80), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(error_of("\xb1\x43\x62\x46", 80), CUDA_ERROR_INVALID_IMAGE);
}

TEST(Ptx, WeirdSpacingCommentsAndTypes) {
  const std::string_view text = R"(/* a { comment } */ .version 8.0
.target	sm_70 , debug // } more
.address_size 64
.visible .global .align 8 .b64 pointer[2] = { generic ( other ) , 0x10 } ;
.global .u64 other;.weak .const .f64 pi=0d400921FB54442D18;
.global .v4 .f32 vectors[2][3];
.global .s16 negative = -5;
.extern .global .align 4 .b8 elsewhere[];
.extern .func (.param .b32 r) f (.param .b32 x) ;
.visible .func(.param .b32 r)g(.param .b32 x){ { } ret ; }
.visible .entry k ( .param.u64.ptr.global.align 16 k_0,.param .align 4 .b8 k_1 [ 12 ]
 , .param .u8 k_2, .param .v2 .f32 k_3, .param .texref k_4 ) .maxntid 8 , 4 , 2 .pragma "nounroll" ;
{ .shared .align 16 .b8 s[100]; .shared .u64 t; call (r), g, (x); { st.shared.u32 [s], 1; } }
.section .debug_str { info: .b8 95,90,0 }
)";
  const Image image = read_ptx(std::as_bytes(std::span(text)));
  EXPECT_EQ(image.arch, 70);
  ASSERT_EQ(image.kernels.size(), 1u);
  EXPECT_EQ(image.kernels[0].name, "k");
  EXPECT_EQ(image.kernels[0].parameters, (std::vector<KernelParameter>{{0, 8}, {8, 12}, {20, 1}, {24, 8}, {32, 8}}));
  EXPECT_EQ(image.kernels[0].max_threads, 64u);
  EXPECT_EQ(image.kernels[0].static_shared_bytes, 112u);
  ASSERT_EQ(image.globals.size(), 5u);
  EXPECT_EQ(global(image, "pointer").size, 16u);
  EXPECT_EQ(global(image, "pointer").initial.at(8), std::byte{0x10});
  double pi;
  ASSERT_EQ(global(image, "pi").initial.size(), 8u);
  std::memcpy(&pi, global(image, "pi").initial.data(), 8);
  EXPECT_EQ(pi, 3.141592653589793);
  EXPECT_EQ(global(image, "vectors").size, 96u);
  short negative;
  ASSERT_EQ(global(image, "negative").initial.size(), 2u);
  std::memcpy(&negative, global(image, "negative").initial.data(), 2);
  EXPECT_EQ(negative, -5);
}

TEST(Ptx, MistakesAreNamedWithTheirLine) {
  const auto text_of = [](std::string_view text) -> std::string {
    try {
      read_ptx(std::as_bytes(std::span(text)));
    } catch (const ImageError& problem) {
      EXPECT_EQ(problem.error(), CUDA_ERROR_INVALID_PTX);
      return problem.what();
    }
    return "no error";
  };
  EXPECT_EQ(text_of(".version 8.0\n.target sm_80\n.entry k(\n.param .u64 a .param .u64 b) {}"),
            "PTX line 4: expected ',', found '.param'");
  EXPECT_EQ(text_of(".version 8.0\n.target sm_80\n.entry k() {"), "PTX line 3: a '{' without its '}'");
  EXPECT_EQ(text_of(".version 8.0\n.target best"), "PTX line 2: unknown target 'best'");
  EXPECT_EQ(text_of(".version 8.0\n.target sm_80\n.global .u99 x;"), "PTX line 3: unknown type or attribute '.u99'");
  EXPECT_EQ(text_of(".version 8.0\n.global .b8 x[99999999999999][9999999];"), "PTX line 2: x is too large");
  EXPECT_EQ(text_of(".version 8.0\n"), "PTX line 2: no .target");
}

// Whatever is done to an image, reading it ends, in an image or in ImageError: run under the sanitizers too.
TEST(ImageErrors, RandomDamage) {
  std::mt19937 random(20);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::size_t refused = 0, accepted = 0;
  for (const char* file : {"sm80.cubin", "rdc.cubin", "text.ptx", "debug.ptx", "default.fatbin", "all.fatbin",
                           "speed.fatbin", "none.fatbin"}) {
    const std::vector<std::byte> whole = read(file);
    ASSERT_GT(whole.size(), 100u) << file;
    for (int round = 0; round < 150; ++round) {
      std::vector<std::byte> bytes = whole;
      switch (round % 4) {
        case 0:
          bytes.resize(below(bytes.size()));
          break;
        case 1:
          bytes[below(bytes.size())] = static_cast<std::byte>(below(256));
          break;
        case 2:  // headers are where the numbers are
          for (int i = 0; i < 4; ++i)
            bytes[below(std::min<std::size_t>(bytes.size(), 128))] = static_cast<std::byte>(below(2) * 255);
          break;
        default:
          for (int i = 0; i < 40; ++i) bytes[below(bytes.size())] = static_cast<std::byte>(below(256));
      }
      for (const int device : {80, 120}) (error_of(bytes, device) == CUDA_SUCCESS ? accepted : refused) += 1;
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(accepted, 100u);
}

TEST(ImageAt, FindsItsLength) {
  for (const char* file : {"sm80.cubin", "sm90.cubin", "rdc.cubin", "default.fatbin", "size.fatbin"}) {
    const std::vector<std::byte> bytes = read(file);
    EXPECT_LE(image_at(bytes.data()).size(), bytes.size()) << file;
    EXPECT_EQ(read_image(image_at(bytes.data()), std::string_view(file) == "sm90.cubin" ? 90 : 80).kernels.size(), 5u)
        << file;
  }
  std::vector<std::byte> text = read("text.ptx");
  text.push_back(std::byte{0});
  EXPECT_EQ(read_image(image_at(text.data()), 80).kernels.size(), 5u);

  const std::vector<std::byte> fatbin = read("default.fatbin");
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* data;
    const void* more = nullptr;
  } wrapper;
  wrapper.data = fatbin.data();
  EXPECT_EQ(image_at(&wrapper).data(), fatbin.data());
  EXPECT_EQ(image_at(&wrapper).size(), fatbin.size());
  wrapper.data = nullptr;
  EXPECT_THROW(image_at(&wrapper), ImageError);
}

}  // namespace
}  // namespace cudasim
