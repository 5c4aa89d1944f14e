// Floating-point instructions against exact arithmetic: f32 by f64 and its error, f16 and bf16 by search.
#include <cfenv>
#include <cmath>

#include "harness.h"

namespace ptx_test {
namespace {

float f32(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
double f64(std::uint64_t bits) { return std::bit_cast<double>(bits); }
std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

Values floats(std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values{};
  const float edges[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, -3e-39f, INFINITY, -INFINITY, 3.4e38f, 1.5f, NAN, 0.1f};
  for (auto& v : values) {
    v = random() % 3 == 0 ? bits(edges[random() % 12])
                          : bits(std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                                            static_cast<int>(random() % 60) - 60));
  }
  return values;
}

std::string single(const std::string& instruction) {
  return "{ .reg .b32 x, y, z; cvt.u32.u64 x, %rd1; cvt.u32.u64 y, %rd2; cvt.u32.u64 z, %rd3;\n"
         "mov.b32 %f1, x; mov.b32 %f2, y; mov.b32 %f3, z; }\n" +
         instruction + "\n{ .reg .b32 x; mov.b32 x, %f0; cvt.u64.u32 %rd0, x; }";
}

// The f32 that lies where `mode` says of the exact a + b, a * b and so on, given as a value and what it lacks.
float rounded(double value, double lost, int mode) {
  float nearest = static_cast<float>(value);
  const auto error = [&](float candidate) { return (value - candidate) + lost; };
  if (!std::isfinite(value)) return nearest;
  if (mode == FE_TONEAREST) {
    // The conversion has rounded `value` correctly; `lost` decides ties alone.
    for (const float other : {std::nextafter(nearest, INFINITY), std::nextafter(nearest, -INFINITY)}) {
      if (std::isfinite(other) && std::fabs(error(other)) < std::fabs(error(nearest))) nearest = other;
    }
    return nearest;
  }
  if (mode == FE_DOWNWARD || (mode == FE_TOWARDZERO && value > 0))
    return error(nearest) < 0 ? std::nextafter(nearest, -INFINITY) : nearest;
  return error(nearest) > 0 ? std::nextafter(nearest, INFINITY) : nearest;
}

bool same(std::uint64_t got, float want) { return want != want ? got == 0x7fffffff : got == bits(want); }

TEST(Floating, SumsAndProductsInEveryRounding) {
  const struct {
    const char* suffix;
    int mode;
  } kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& m : kModes) {
    for (std::uint32_t seed = 1; seed < 6; ++seed) {
      const Values a = floats(seed), b = floats(seed + 50);
      const Values sums = computed(single("add." + std::string(m.suffix) + ".f32 %f0, %f1, %f2;"), a, b);
      const Values products = computed(single("mul." + std::string(m.suffix) + ".f32 %f0, %f1, %f2;"), a, b);
      for (std::size_t l = 0; l < 32; ++l) {
        const float x = f32(a[l]), y = f32(b[l]);
        const double product = double{x} * double{y}, sum = double{x} + double{y};
        const double back = sum - x, lost = (x - (sum - back)) + (y - back);
        if (!std::isfinite(sum) || std::fabs(sum) > 3e38) {
          if (m.mode == FE_TONEAREST) {
            EXPECT_TRUE(same(sums[l], x + y));
          }
        } else if (sum != 0) {
          EXPECT_TRUE(same(sums[l], rounded(sum, lost, m.mode)))
              << m.suffix << ' ' << x << ' ' << y << ' ' << f32(sums[l]);
        }
        if (!std::isfinite(product) || std::fabs(product) > 3e38) {
          if (m.mode == FE_TONEAREST) {
            EXPECT_TRUE(same(products[l], x * y));
          }
        } else if (product != 0 && std::fabs(product) > 1e-44) {
          EXPECT_TRUE(same(products[l], rounded(product, 0, m.mode))) << m.suffix << ' ' << x << '*' << y;
        }
      }
    }
  }
}

TEST(Floating, FusedIsExactAndUnfusedIsNot) {
  Values a{}, b{}, c{};
  const float x = 1.0f + 0x1p-12f;
  a.fill(bits(x));
  b.fill(bits(x));
  c.fill(bits(-(1.0f + 0x1p-11f)));
  EXPECT_EQ(f32(computed(single("fma.rn.f32 %f0, %f1, %f2, %f3;"), a, b, c)[5]), 0x1p-24f);
  EXPECT_EQ(f32(computed(single("mul.f32 %f0, %f1, %f2; add.f32 %f0, %f0, %f3;"), a, b, c)[5]), 0.0f);
}

TEST(Floating, FlushSaturateMinMaxAndSigns) {
  for (std::uint32_t seed = 1; seed < 6; ++seed) {
    const Values a = floats(seed), b = floats(seed + 9);
    const Values flushed = computed(single("add.ftz.f32 %f0, %f1, 0f00000000;"), a);
    const Values saturated = computed(single("add.sat.f32 %f0, %f1, %f2;"), a, b);
    const Values least = computed(single("min.f32 %f0, %f1, %f2;"), a, b);
    const Values least_nan = computed(single("min.NaN.f32 %f0, %f1, %f2;"), a, b);
    const Values absolute = computed(single("abs.f32 %f0, %f1;"), a);
    const Values sign = computed(single("copysign.f32 %f0, %f1, %f2;"), a, b);
    for (std::size_t l = 0; l < 32; ++l) {
      const float x = f32(a[l]), y = f32(b[l]);
      if (std::fpclassify(x) == FP_SUBNORMAL) {
        EXPECT_EQ(f32(flushed[l]), 0.0f);
      }
      const float sum = x + y;
      EXPECT_EQ(f32(saturated[l]), sum > 1 ? 1.0f : sum > 0 ? sum : 0.0f);
      if (x != x || y != y) {
        EXPECT_EQ(least_nan[l], 0x7fffffffu);
        EXPECT_TRUE(same(least[l], x != x ? y : x));
      } else if (x != y) {
        EXPECT_EQ(f32(least[l]), std::min(x, y));
      } else {
        EXPECT_EQ(std::signbit(f32(least[l])), std::signbit(x) || std::signbit(y));
      }
      EXPECT_EQ(absolute[l], a[l] & 0x7fffffff);
      EXPECT_EQ(sign[l], (a[l] & 0x80000000) | (b[l] & 0x7fffffff));
    }
  }
}

TEST(Floating, DoublesAndQuotients) {
  Values a{}, b{}, c{};
  std::mt19937_64 random(7);
  for (std::size_t l = 0; l < 32; ++l) {
    a[l] = bits(std::ldexp(static_cast<double>(random()), -70));
    b[l] = bits(-std::ldexp(static_cast<double>(random()), -60));
    c[l] = bits(static_cast<double>(random()));
  }
  const auto run = [&](const std::string& op) {
    return computed("mov.b64 %fd1, %rd1; mov.b64 %fd2, %rd2; mov.b64 %fd3, %rd3;" + op + " mov.b64 %rd0, %fd0;", a, b,
                    c);
  };
  const Values sum = run("add.f64 %fd0, %fd1, %fd2;"), fused = run("fma.rn.f64 %fd0, %fd1, %fd2, %fd3;"),
               quotient = run("div.rn.f64 %fd0, %fd1, %fd2;"), root = run("sqrt.rn.f64 %fd0, %fd1;");
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(f64(sum[l]), f64(a[l]) + f64(b[l]));
    EXPECT_EQ(f64(fused[l]), std::fma(f64(a[l]), f64(b[l]), f64(c[l])));
    EXPECT_EQ(f64(quotient[l]), f64(a[l]) / f64(b[l]));
    EXPECT_EQ(f64(root[l]), std::sqrt(f64(a[l])));
  }
}

TEST(Floating, ApproximationsAreWithinTheirTolerance) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = bits(0.1f + 0.37f * static_cast<float>(l));
  const struct {
    const char* op;
    double (*exact)(double);
  } kOps[] = {{"sin.approx.f32", std::sin},
              {"cos.approx.f32", std::cos},
              {"ex2.approx.f32", std::exp2},
              {"lg2.approx.f32", std::log2},
              {"tanh.approx.f32", std::tanh},
              {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }},
              {"rcp.approx.f32", [](double x) { return 1 / x; }},
              {"sqrt.approx.f32", std::sqrt}};
  for (const auto& op : kOps) {
    const Values got = computed(single(std::string(op.op) + " %f0, %f1;"), a);
    for (std::size_t l = 0; l < 32; ++l) {
      const double want = op.exact(f32(a[l]));
      EXPECT_NEAR(f32(got[l]), want, std::fabs(want) * 0x1p-22 + 0x1p-22) << op.op << f32(a[l]);
    }
  }
}

// Every value of the format by its bits, from the definition.
double small(unsigned b, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int e = static_cast<int>(b >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int m = static_cast<int>(b) & ((1 << mantissa_bits) - 1);
  const double magnitude =
      e == 0 ? std::ldexp(m, 1 - bias - mantissa_bits) : std::ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits);
  return (b >> 15 & 1) != 0 ? -magnitude : magnitude;
}

void check_halves(const std::string& type, int exponent_bits, int mantissa_bits) {
  std::mt19937 random(11);
  const unsigned infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const auto nearest = [&](double exact) {
    unsigned best = 0;
    for (unsigned b = 0; b <= infinity; ++b) {
      const double distance = std::fabs(std::fabs(exact) - small(b, exponent_bits, mantissa_bits));
      const double held = std::fabs(std::fabs(exact) - small(best, exponent_bits, mantissa_bits));
      if (distance < held || (distance == held && b % 2 == 0)) best = b;
    }
    return best | (exact < 0 ? 0x8000u : 0u);
  };
  Values a{}, b{}, c{};
  for (std::size_t l = 0; l < 32; ++l) {
    for (Values* v : {&a, &b, &c}) (*v)[l] = random() % infinity | (random() % 2 << 15);
  }
  const std::string in = "cvt.u16.u64 %rs1, %rd1; cvt.u16.u64 %rs2, %rd2; cvt.u16.u64 %rs3, %rd3;";
  const Values sum = computed(in + "add.rn." + type + " %rs0, %rs1, %rs2; cvt.u64.u16 %rd0, %rs0;", a, b);
  const Values product = computed(in + "mul.rn." + type + " %rs0, %rs1, %rs2; cvt.u64.u16 %rd0, %rs0;", a, b);
  const Values fused = computed(in + "fma.rn." + type + " %rs0, %rs1, %rs2, %rs3; cvt.u64.u16 %rd0, %rs0;", a, b, c);
  for (std::size_t l = 0; l < 32; ++l) {
    const auto value = [&](std::uint64_t bits_) {
      return small(static_cast<unsigned>(bits_), exponent_bits, mantissa_bits);
    };
    const double x = value(a[l]), y = value(b[l]);
    if (x + y != 0) {
      EXPECT_EQ(sum[l], nearest(x + y)) << type << ' ' << x << '+' << y;
    }
    EXPECT_EQ(product[l] & 0x7fff, nearest(x * y) & 0x7fff) << type << ' ' << x << '*' << y;
    const double exact = x * y + value(c[l]);  // 16 to 22 bits each: inexact only far from a tie of the format
    if (std::fabs(exact) > 1e-6) {
      EXPECT_EQ(fused[l] & 0x7fff, nearest(exact) & 0x7fff) << type << ' ' << x << '*' << y;
    }
  }
}

TEST(Halves, AreRoundedOnce) {
  check_halves("f16", 5, 10);
  check_halves("bf16", 8, 7);
}

TEST(Halves, PairsAreTwo) {
  Values a{}, b{};
  a.fill(0x3c004000);  // 1, 2
  b.fill(0x40003c00);  // 2, 1
  const Values got = computed(
      "cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; fma.rn.f16x2 %r0, %r1, %r2, %r1; cvt.u64.u32 %rd0, %r0;", a, b);
  EXPECT_EQ(got[3], 0x42004400u);  // 1 * 2 + 1, 2 * 1 + 2
}

TEST(Conversions, Integers) {
  Values a{};
  a.fill(0xfffffffffffffff0);
  EXPECT_EQ(computed("cvt.s32.s8 %r0, %rd1; cvt.u64.u32 %rd0, %r0;", a)[0], 0xfffffff0u);
  EXPECT_EQ(computed("cvt.u32.u8 %r0, %rd1; cvt.u64.u32 %rd0, %r0;", a)[0], 0xf0u);
  EXPECT_EQ(computed("cvt.sat.u8.s32 %r0, %rd1; cvt.u64.u32 %rd0, %r0;", a)[0], 0u);
  EXPECT_EQ(computed("cvt.s64.s16 %rd0, %rd1;", a)[0], a[0]);
}

TEST(Conversions, FloatsToIntegers) {
  const struct {
    const char* type;
    float x;
    std::uint64_t want;
  } kCases[] = {{"rzi.s32", 2.9f, 2},
                {"rzi.s32", -2.9f, 0xfffffffe},
                {"rni.s32", 2.5f, 2},
                {"rni.s32", 3.5f, 4},
                {"rmi.s32", -2.1f, 0xfffffffd},
                {"rpi.s32", 2.1f, 3},
                {"rzi.s32", 1e20f, 0x7fffffff},
                {"rzi.s32", -1e20f, 0x80000000},
                {"rzi.u32", -5.0f, 0},
                {"rzi.u32", 1e20f, 0xffffffff},
                {"rzi.s32", NAN, 0}};
  for (const auto& c : kCases) {
    Values a{};
    a.fill(bits(c.x));
    EXPECT_EQ(computed("cvt.u32.u64 %r1, %rd1; mov.b32 %f1, %r1; cvt." + std::string(c.type) +
                           ".f32 %r0, %f1; cvt.u64.u32 %rd0, %r0;",
                       a)[0],
              c.want)
        << c.type << c.x;
  }
}

TEST(Conversions, ToFloats) {
  Values a{};
  a.fill(0x7fffffc1);  // between two floats
  const auto to = [&](const char* rounding) {
    return f32(computed("cvt.u32.u64 %r1, %rd1; cvt." + std::string(rounding) +
                            ".f32.u32 %f0, %r1; mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;",
                        a)[0]);
  };
  EXPECT_EQ(to("rn"), 2147483648.0f);
  EXPECT_EQ(to("rz"), 2147483520.0f);
  EXPECT_EQ(to("rp"), 2147483648.0f);
  // To f16 and back, to bf16, and the pair with the first operand high.
  a.fill(bits(1.0f + 0x1p-11f));
  EXPECT_EQ(
      computed("cvt.u32.u64 %r1, %rd1; mov.b32 %f1, %r1; cvt.rn.f16.f32 %rs0, %f1; cvt.u64.u16 %rd0, %rs0;", a)[0],
      0x3c00u);
  EXPECT_EQ(
      computed("cvt.u32.u64 %r1, %rd1; mov.b32 %f1, %r1; cvt.rp.f16.f32 %rs0, %f1; cvt.u64.u16 %rd0, %rs0;", a)[0],
      0x3c01u);
  EXPECT_EQ(computed("cvt.u32.u64 %r1, %rd1; mov.b32 %f1, %r1; mov.f32 %f2, 0f40000000; cvt.rn.bf16x2.f32 %r0, %f1, "
                     "%f2; cvt.u64.u32 %rd0, %r0;",
                     a)[0],
            0x3f804000u);
}

}  // namespace
}  // namespace ptx_test
