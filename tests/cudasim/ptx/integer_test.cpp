// Integer instructions against what C++ says of the same numbers, 128 bits wide.
#include "harness.h"

namespace ptx_test {
namespace {

using Wide = __int128;

struct Type {
  const char* name;
  unsigned bits;
  bool is_signed;
};
constexpr Type kTypes[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                           {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

Wide number(std::uint64_t bits, const Type& t) {
  const Wide value = t.bits == 64 ? Wide{bits} : Wide{bits & ((std::uint64_t{1} << t.bits) - 1)};
  return t.is_signed && (value >> (t.bits - 1) & 1) != 0 ? value - (Wide{1} << t.bits) : value;
}
std::uint64_t bits_of(Wide value, unsigned bits) {
  const auto low = static_cast<std::uint64_t>(value);
  return bits == 64 ? low : low & ((std::uint64_t{1} << bits) - 1);
}

// Registers of the type's width take the inputs, and give the result of `result_bits`.
std::string body(const Type& t, const std::string& instruction, unsigned result_bits, unsigned c_bits = 0,
                 unsigned b_bits = 0) {
  const auto reg = [](unsigned bits, int n) {
    return (bits == 16 ? "%rs" : bits == 32 ? "%r" : "%rd") + std::to_string(n);
  };
  const auto in = [&](unsigned bits, int n) {
    return bits == 64 ? ""
                      : "cvt.u" + std::to_string(bits) + ".u64 " + reg(bits, n) + ", %rd" + std::to_string(n) + ";\n";
  };
  const unsigned cb = c_bits == 0 ? t.bits : c_bits, bb = b_bits == 0 ? t.bits : b_bits;
  std::string text = in(t.bits, 1) + in(bb, 2) + in(cb, 3);
  std::string filled = instruction;
  const auto fill = [&](const std::string& what, const std::string& by) {
    for (std::size_t at; (at = filled.find(what)) != std::string::npos;) filled.replace(at, what.size(), by);
  };
  fill("TYPE", t.name);
  fill("$d", reg(result_bits, result_bits == 64 ? 0 : 0));
  fill("$a", reg(t.bits, 1));
  fill("$b", reg(bb, 2));
  fill("$c", reg(cb, 3));
  text += filled + "\n";
  if (result_bits != 64) text += "cvt.u64.u" + std::to_string(result_bits) + " %rd0, " + reg(result_bits, 0) + ";\n";
  return text;
}

template <class Expected>
void check(const Type& t, const std::string& instruction, Expected expected, unsigned result_bits = 0,
           unsigned c_bits = 0, unsigned b_bits = 0) {
  const unsigned rb = result_bits == 0 ? t.bits : result_bits;
  for (std::uint32_t seed = 1; seed < 4; ++seed) {
    const Values a = interesting(t.bits, seed), b = interesting(b_bits == 0 ? t.bits : b_bits, seed + 10),
                 c = interesting(c_bits == 0 ? t.bits : c_bits, seed + 20);
    const Values got = computed(body(t, instruction, rb, c_bits, b_bits), a, b, c);
    for (std::size_t l = 0; l < 32; ++l) {
      const Type tb{"", b_bits == 0 ? t.bits : b_bits, b_bits == 0 && t.is_signed};
      const Type tc{"", c_bits == 0 ? t.bits : c_bits, t.is_signed};
      const Wide want = expected(number(a[l], t), number(b[l], tb), number(c[l], tc));
      ASSERT_EQ(got[l], bits_of(want, rb))
          << t.name << ' ' << instruction << " of " << std::hex << a[l] << ' ' << b[l] << ' ' << c[l];
    }
  }
}

TEST(Integer, SumsProductsAndQuotients) {
  for (const Type& t : kTypes) {
    check(t, "add.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a + b; });
    check(t, "sub.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a - b; });
    check(t, "mul.lo.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    });
    check(t, "mul.hi.TYPE $d, $a, $b;", [&](Wide a, Wide b, Wide) {
      if (t.bits == 64 && !t.is_signed)
        return static_cast<Wide>((static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >> 64);
      return a * b >> t.bits;
    });
    check(t, "mad.lo.TYPE $d, $a, $b, $c;", [](Wide a, Wide b, Wide c) {
      return static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) +
                               static_cast<unsigned __int128>(c));
    });
    check(t, "div.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return b == 0 ? Wide{-1} : a / b; });
    check(t, "rem.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return b == 0 ? a : a % b; });
    check(t, "min.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a < b ? a : b; });
    check(t, "max.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a > b ? a : b; });
    check(t, "sad.TYPE $d, $a, $b, $c;", [](Wide a, Wide b, Wide c) { return (a < b ? b - a : a - b) + c; });
    if (t.is_signed) {
      check(t, "abs.TYPE $d, $a;", [](Wide a, Wide, Wide) { return a < 0 ? -a : a; });
      check(t, "neg.TYPE $d, $a;", [](Wide a, Wide, Wide) { return -a; });
    }
    if (t.bits != 64) {
      check(
          t, "mul.wide.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a * b; }, 2 * t.bits);
      check(
          t, "mad.wide.TYPE $d, $a, $b, $c;", [](Wide a, Wide b, Wide c) { return a * b + c; }, 2 * t.bits, 2 * t.bits);
    }
  }
}

TEST(Integer, SaturationAndTwentyFourBits) {
  const Type s32 = kTypes[3], u32 = kTypes[2];
  const auto clamp = [](Wide x) { return x > INT32_MAX ? Wide{INT32_MAX} : x < INT32_MIN ? Wide{INT32_MIN} : x; };
  check(s32, "add.sat.TYPE $d, $a, $b;", [&](Wide a, Wide b, Wide) { return clamp(a + b); });
  check(s32, "sub.sat.TYPE $d, $a, $b;", [&](Wide a, Wide b, Wide) { return clamp(a - b); });
  check(s32, "mad.hi.sat.TYPE $d, $a, $b, $c;", [&](Wide a, Wide b, Wide c) { return clamp((a * b >> 32) + c); });
  const auto low = [](Wide x, bool is_signed) {
    const Wide bits = x & 0xffffff;
    return is_signed && (bits & 0x800000) != 0 ? bits - 0x1000000 : bits;
  };
  for (const Type& t : {s32, u32}) {
    check(t, "mul24.lo.TYPE $d, $a, $b;",
          [&](Wide a, Wide b, Wide) { return low(a, t.is_signed) * low(b, t.is_signed); });
    check(t, "mul24.hi.TYPE $d, $a, $b;",
          [&](Wide a, Wide b, Wide) { return low(a, t.is_signed) * low(b, t.is_signed) >> 16; });
    check(t, "mad24.lo.TYPE $d, $a, $b, $c;",
          [&](Wide a, Wide b, Wide c) { return low(a, t.is_signed) * low(b, t.is_signed) + c; });
  }
}

TEST(Integer, LogicAndShifts) {
  constexpr Type kBits[] = {{"b16", 16, false}, {"b32", 32, false}, {"b64", 64, false}};
  for (const Type& t : kBits) {
    check(t, "and.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a & b; });
    check(t, "or.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a | b; });
    check(t, "xor.TYPE $d, $a, $b;", [](Wide a, Wide b, Wide) { return a ^ b; });
    check(t, "not.TYPE $d, $a;", [](Wide a, Wide, Wide) { return ~a; });
    check(t, "cnot.TYPE $d, $a;", [](Wide a, Wide, Wide) { return Wide{a == 0}; });
    check(
        t, "shl.TYPE $d, $a, $b;",
        [&](Wide a, Wide b, Wide) {
          return b >= t.bits ? Wide{0} : static_cast<Wide>(static_cast<unsigned __int128>(a) << static_cast<int>(b));
        },
        0, 0, 32);
  }
  for (const Type& t : kTypes) {
    check(
        t, "shr.TYPE $d, $a, $b;",
        [&](Wide a, Wide b, Wide) { return b >= t.bits ? (a < 0 ? Wide{-1} : Wide{0}) : a >> static_cast<int>(b); }, 0,
        0, 32);
  }
}

TEST(Integer, Bits) {
  constexpr Type kBits[] = {{"b32", 32, false}, {"b64", 64, false}};
  const auto bit = [](Wide x, int at) { return static_cast<int>(x >> at & 1); };
  for (const Type& t : kBits) {
    const int n = static_cast<int>(t.bits);
    check(
        t, "popc.TYPE $d, $a;",
        [&](Wide a, Wide, Wide) {
          Wide count = 0;
          for (int i = 0; i < n; ++i) count += bit(a, i);
          return count;
        },
        32);
    check(
        t, "clz.TYPE $d, $a;",
        [&](Wide a, Wide, Wide) {
          int i = 0;
          while (i < n && bit(a, n - 1 - i) == 0) ++i;
          return Wide{i};
        },
        32);
    check(t, "brev.TYPE $d, $a;", [&](Wide a, Wide, Wide) {
      Wide r = 0;
      for (int i = 0; i < n; ++i) r |= static_cast<Wide>(static_cast<unsigned __int128>(bit(a, i)) << (n - 1 - i));
      return r;
    });
    check(t, "bfi.TYPE $d, $a, $b, 5, 9;",
          [&](Wide a, Wide b, Wide) { return (b & ~(Wide{0x1ff} << 5)) | (a & 0x1ff) << 5; });
  }
  for (const Type& t : {kTypes[2], kTypes[3], kTypes[4], kTypes[5]}) {
    const int n = static_cast<int>(t.bits);
    // The definition of the ISA, bit by bit.
    check(
        t, "bfe.TYPE $d, $a, $b, $c;",
        [&](Wide a, Wide b, Wide c) {
          const int position = static_cast<int>(b & 0xff), length = static_cast<int>(c & 0xff);
          const int sign = !t.is_signed || length == 0 ? 0 : bit(a, std::min(position + length - 1, n - 1));
          Wide r = 0;
          for (int i = 0; i < n; ++i)
            r |= static_cast<Wide>(
                static_cast<unsigned __int128>(i < length && position + i < n ? bit(a, position + i) : sign) << i);
          return r;
        },
        0, 32, 32);
    check(
        t, "bfind.TYPE $d, $a;",
        [&](Wide a, Wide, Wide) {
          const Wide x = a < 0 ? ~a : a;
          int i = n - 1;
          while (i >= 0 && bit(x, i) == 0) --i;
          return Wide{i};
        },
        32);
  }
  const Type b32 = kBits[0];
  check(b32, "lop3.TYPE $d, $a, $b, $c, 0xca;", [](Wide a, Wide b, Wide c) { return (a & b) | (~a & c); });
  check(b32, "lop3.TYPE $d, $a, $b, $c, 0x96;", [](Wide a, Wide b, Wide c) { return a ^ b ^ c; });
  check(b32, "shf.l.wrap.TYPE $d, $a, $b, $c;",
        [](Wide a, Wide b, Wide c) { return (b << 32 | a) << static_cast<int>(c & 31) >> 32; });
  check(b32, "shf.r.clamp.TYPE $d, $a, $b, $c;",
        [](Wide a, Wide b, Wide c) { return (b << 32 | a) >> static_cast<int>(c < 32 ? c : 32); });
  check(b32, "prmt.TYPE $d, $a, $b, $c;", [](Wide a, Wide b, Wide c) {
    Wide r = 0;
    for (int i = 0; i < 4; ++i) {
      const int s = static_cast<int>(c >> 4 * i & 15);
      const int byte = static_cast<int>((s & 4) != 0 ? b >> 8 * (s & 3) : a >> 8 * (s & 3)) & 0xff;
      r |= Wide{(s & 8) == 0 ? byte : byte >= 128 ? 255 : 0} << 8 * i;
    }
    return r;
  });
  check(b32, "fns.TYPE $d, $a, 0, 3;", [&](Wide a, Wide, Wide) {
    int left = 3;
    for (int i = 0; i < 32; ++i)
      if (bit(a, i) != 0 && --left == 0) return Wide{i};
    return Wide{-1};
  });
}

TEST(Integer, DotProductsAndCarries) {
  const Type s32 = kTypes[3], u32 = kTypes[2];
  const auto part = [](Wide x, int bits, int at, bool is_signed) {
    const Wide value = x >> bits * at & ((Wide{1} << bits) - 1);
    return is_signed && value >> (bits - 1) != 0 ? value - (Wide{1} << bits) : value;
  };
  check(s32, "dp4a.s32.s32 $d, $a, $b, $c;", [&](Wide a, Wide b, Wide c) {
    for (int i = 0; i < 4; ++i) c += part(a, 8, i, true) * part(b, 8, i, true);
    return c;
  });
  check(u32, "dp4a.u32.s32 $d, $a, $b, $c;", [&](Wide a, Wide b, Wide c) {
    for (int i = 0; i < 4; ++i) c += part(a, 8, i, false) * part(b, 8, i, true);
    return c;
  });
  check(u32, "dp2a.hi.u32.u32 $d, $a, $b, $c;", [&](Wide a, Wide b, Wide c) {
    for (int i = 0; i < 2; ++i) c += part(a, 16, i, false) * part(b, 8, i + 2, false);
    return c;
  });
  // 128 bits in halves: the high one shows the carry, or the borrow.
  const Type u64 = kTypes[4];
  using U = unsigned __int128;
  check(u64, "add.cc.TYPE %rd4, $a, $b; addc.TYPE $d, $a, $c;", [](Wide a, Wide b, Wide c) {
    return a + c + static_cast<Wide>((static_cast<U>(a) + static_cast<U>(b)) >> 64);
  });
  check(u64, "sub.cc.TYPE %rd4, $a, $b; subc.TYPE $d, $a, $c;",
        [](Wide a, Wide b, Wide c) { return a - c - (a < b ? 1 : 0); });
  check(u32, "mad.lo.cc.TYPE %r4, $a, $b, $c; madc.hi.TYPE $d, $a, $b, $c;",
        [](Wide a, Wide b, Wide c) { return (a * b >> 32) + c + (((a * b & 0xffffffff) + c) >> 32); });
}

}  // namespace
}  // namespace ptx_test
