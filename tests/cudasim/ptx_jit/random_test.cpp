// Random programs: arithmetic, guards, divergent branches and loops, shared memory between barriers, operations of
// warps.
#include <cstdlib>
#include <random>
#include <string>

#include "both.h"

namespace {

using ptx_both::Bytes;
using ptx_both::bytes_of;
using ptx_both::Kernel;

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  std::string kernel() {
    std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 in, .param .u64 out)
{
.shared .align 4 .b8 buffer[512];
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b32 %t<6>; .reg .f32 %f<8>; .reg .b64 %d<10>; .reg .f64 %g<4>;
mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mad.lo.s32 %t1, %t1, 128, %t0;
ld.param.u64 %d8, [in]; mul.wide.u32 %d9, %t1, 32; add.s64 %d8, %d8, %d9;
ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d8]; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d8+16];
)";
    for (int i = 0; i < 8; ++i) {
      const std::string n = std::to_string(i);
      text += "mov.b32 %f" + n + ", %r" + n + "; cvt.u16.u32 %h" + n + ", %r" + n + "; setp.lt.s32 %p" + n + ", %r" +
              n + ", " + std::to_string(static_cast<int>(random_())) + "; cvt.s64.s32 %d" + n + ", %r" + n + ";\n";
      if (i < 4) text += "cvt.f64.s32 %g" + n + ", %r" + n + ";\n";
    }
    body_ = &text;
    block(4, 0);
    text += "ld.param.u64 %d8, [out]; mul.wide.u32 %d9, %t1, 128; add.s64 %d8, %d8, %d9;\n";
    for (int i = 0; i < 8; ++i) {
      const std::string n = std::to_string(i), at = std::to_string(4 * i);
      text += "st.global.u32 [%d8+" + at + "], %r" + n + "; st.global.f32 [%d8+" + std::to_string(32 + 4 * i) +
              "], %f" + n + "; st.global.u16 [%d8+" + std::to_string(64 + 2 * i) + "], %h" + n + ";\n";
      if (i < 6) text += "st.global.u64 [%d8+" + std::to_string(80 + 8 * i) + "], %d" + n + ";\n";
    }
    return text + "ret;\n}\n";
  }

 private:
  std::uint32_t any(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }
  std::string pick(std::initializer_list<const char*> words) {
    return words.begin()[any(static_cast<std::uint32_t>(words.size()))];
  }
  std::string r() { return "%r" + std::to_string(any(8)); }
  std::string h() { return "%h" + std::to_string(any(8)); }
  std::string f() { return "%f" + std::to_string(any(8)); }
  std::string d() { return "%d" + std::to_string(any(8)); }
  std::string g() { return "%g" + std::to_string(any(4)); }
  std::string p() { return "%p" + std::to_string(any(8)); }
  std::string r_or_number() { return any(3) == 0 ? std::to_string(any(40)) : r(); }
  void add(const std::string& text) { *body_ += text + "\n"; }

  // `diverged`: not all lanes of the block come here.
  void block(int depth, int diverged) {
    const std::uint32_t count = 3 + any(5);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t kind = any(12);
      if (depth > 0 && kind == 0) {
        choice(depth, diverged);
      } else if (depth > 0 && kind == 1) {
        loop(depth, diverged);
      } else if (kind == 2) {
        memory(diverged);
      } else {
        instruction(diverged);
      }
    }
  }
  void choice(int depth, int diverged) {
    const std::string label = "L" + std::to_string(labels_++), condition = p();
    add(std::string("@") + (any(2) == 0 ? "!" : "") + condition + " bra " + label + "_else;");
    block(depth - 1, diverged + 1);
    if (any(8) == 0 && loops_.size() > 0) add("@" + p() + " bra " + loops_.back() + "_end;");
    add("bra.uni " + label + "_end;");
    add(label + "_else:");
    if (any(2) == 0) block(depth - 1, diverged + 1);
    add(label + "_end:");
  }
  void loop(int depth, int diverged) {
    const std::string label = "L" + std::to_string(labels_++);
    const std::string counter = "%t" + std::to_string(2 + loops_.size());
    const bool uniform = any(2) == 0;
    add(uniform ? "mov.u32 " + counter + ", " + std::to_string(1 + any(4)) + ";"
                : "and.b32 " + counter + ", " + r() + ", 7;");
    loops_.push_back(label);
    add(label + ":");
    if (loops_.size() <= 3) block(depth - 1 - (loops_.size() == 3 ? depth - 1 : 0), diverged + (uniform ? 0 : 1) + 1);
    add("setp.gt.s32 %p7, " + counter + ", 0; sub.s32 " + counter + ", " + counter + ", 1;");
    add("@%p7 bra " + label + ";");
    add(label + "_end:");
    loops_.pop_back();
  }
  void memory(int diverged) {
    if (diverged > 0) return instruction(diverged);
    add("shl.b32 %r8, %t0, 2; mov.u32 %r9, buffer; add.u32 %r8, %r8, %r9;");
    add("st.shared.u32 [%r8], " + r() + "; bar.sync 0;");
    add("and.b32 %r10, " + r() + ", 508; add.u32 %r10, %r10, %r9; ld.shared.u32 " + r() + ", [%r10]; bar.sync 0;");
  }
  void instruction(int diverged) {
    const std::string guard = any(5) == 0 ? std::string("@") + (any(2) == 0 ? "!" : "") + p() + " " : "";
    const auto three = [&](const std::string& op) { return op + " " + r() + ", " + r() + ", " + r_or_number() + ";"; };
    std::string text;
    switch (any(diverged == 0 ? 24 : 22)) {
      case 0:
        text = three(pick({"add.s32", "sub.u32", "mul.lo.s32", "mul.hi.u32", "mul.hi.s32"}));
        break;
      case 1:
        text = three(pick({"div.u32", "div.s32", "rem.u32", "rem.s32"}));
        break;
      case 2:
        text = three(pick({"min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"}));
        break;
      case 3:
        text = three(pick({"shl.b32", "shr.u32", "shr.s32"}));
        break;
      case 4:
        text = pick({"popc.b32 ", "clz.b32 ", "brev.b32 ", "not.b32 ", "cnot.b32 ", "abs.s32 ", "neg.s32 "}) + r() +
               ", " + r() + ";";
        break;
      case 5:
        text = pick({"mad.lo.s32 ", "mad.hi.u32 ", "sad.s32 ", "sad.u32 ", "bfe.u32 ", "bfe.s32 "}) + r() + ", " + r() +
               ", " + r_or_number() + ", " + r_or_number() + ";";
        break;
      case 6:
        text = "bfi.b32 " + r() + ", " + r() + ", " + r() + ", " + r_or_number() + ", " + r_or_number() + ";";
        break;
      case 7:
        text = "lop3.b32 " + r() + ", " + r() + ", " + r() + ", " + r() + ", " + std::to_string(any(256)) + ";";
        break;
      case 8:
        text = "prmt.b32 " + r() + ", " + r() + ", " + r() + ", " + std::to_string(any(65536)) + ";";
        break;
      case 9:
        text = pick({"shf.l.wrap.b32 ", "shf.r.clamp.b32 ", "shf.l.clamp.b32 "}) + r() + ", " + r() + ", " + r() +
               ", " + r_or_number() + ";";
        break;
      case 10:
        text = pick({"add.f32 ", "sub.f32 ", "mul.f32 ", "div.rn.f32 ", "add.ftz.f32 ", "mul.sat.f32 ", "min.f32 ",
                     "max.ftz.f32 ", "mul.rz.f32 "}) +
               f() + ", " + f() + ", " + f() + ";";
        break;
      case 11:
        text = pick({"fma.rn.f32 ", "fma.rn.ftz.f32 ", "fma.rn.sat.f32 "}) + f() + ", " + f() + ", " + f() + ", " +
               f() + ";";
        break;
      case 12:
        text = pick({"sqrt.rn.f32 ", "rcp.rn.f32 ", "neg.f32 ", "abs.ftz.f32 ", "ex2.approx.f32 ", "rsqrt.approx.f32 ",
                     "cvt.rni.f32.f32 ", "cvt.rmi.ftz.f32.f32 ", "cvt.sat.f32.f32 "}) +
               f() + ", " + f() + ";";
        break;
      case 13:
        text = pick({"cvt.rn.f32.s32 ", "cvt.rn.f32.u32 ", "mov.b32 "}) + f() + ", " + r() + ";";
        break;
      case 14:
        text = pick({"cvt.rzi.s32.f32 ", "cvt.rni.u32.f32 ", "cvt.rpi.s32.f32 ", "cvt.rmi.ftz.u32.f32 "}) + r() + ", " +
               f() + ";";
        break;
      case 15:
        text = "setp." + pick({"eq", "ne", "lt", "le", "gt", "ge"}) + pick({".s32 ", ".u32 "}) + p() + "|" + p() +
               ", " + r() + ", " + r_or_number() + ";";
        break;
      case 16:
        text = "setp." + pick({"eq", "neu", "lt", "leu", "gtu", "ge", "num", "nan"}) + pick({".f32 ", ".ftz.f32 "}) +
               p() + ", " + f() + ", " + f() + ";";
        break;
      case 17:
        text = "selp.b32 " + r() + ", " + r() + ", " + r_or_number() + ", " + p() + ";";
        break;
      case 18:
        text = pick({"add.s64 ", "sub.s64 ", "mul.lo.s64 ", "xor.b64 ", "min.s64 ", "max.u64 ", "mul.hi.u64 "}) + d() +
               ", " + d() + ", " + d() + ";";
        break;
      case 19:
        text = pick({"mul.wide.s32 ", "mul.wide.u32 "}) + d() + ", " + r() + ", " + r_or_number() + "; cvt.u32.u64 " +
               r() + ", " + d() + ";";
        break;
      case 20:
        text = pick({"add.s16 ", "mul.lo.u16 ", "max.s16 ", "sub.u16 ", "rem.s16 ", "div.u16 "}) + h() + ", " + h() +
               ", " + h() + "; cvt.s32.s16 " + r() + ", " + h() + ";";
        break;
      case 21:
        text = pick({"add.f64 ", "mul.f64 ", "div.rn.f64 "}) + "%g0, %g1, %g2; cvt.rn.f32.f64 " + f() + ", " + g() +
               "; cvt.f64.f32 %g1, %f1; fma.rn.f64 %g2, %g0, %g1, %g3;";
        break;
      case 22:
        return add("shfl.sync." + pick({"up", "down", "bfly", "idx"}) + ".b32 " + r() + "|" + p() + ", " + r() + ", " +
                   r_or_number() + ", " + pick({"31", "0", "0x1807", "0x100f"}) + ", -1;");
      default:
        return add("vote.sync." + pick({"ballot.b32 %r3", "any.pred %p2", "all.pred %p3", "uni.pred %p4"}) + ", " +
                   p() + ", -1; activemask.b32 %r5;");
    }
    // The guard belongs to the first of several.
    add(guard + text);
  }

  std::mt19937 random_;
  std::string* body_ = nullptr;
  int labels_ = 0;
  std::vector<std::string> loops_;
};

// Each is compiled, which takes most of the time. PTX_TEST_PROGRAMS: more of them.
std::uint32_t programs() {
  const char* const given = std::getenv("PTX_TEST_PROGRAMS");
  return given == nullptr ? 12 : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}

TEST(Random, ProgramsAreTheSameInNativeCode) {
  for (std::uint32_t seed = 1; seed <= programs(); ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = Generator(seed).kernel();
    std::mt19937 random(seed + 1000);
    std::vector<std::uint32_t> in(2 * 128 * 8);
    for (std::uint32_t& n : in) {
      const std::uint32_t edges[] = {0,          1,          0xffffffff, 0x80000000, 0x7fffffff,
                                     0x3f800000, 0x7f800000, 0x00000003, 0xff800000, 31};
      n = random() % 3 == 0 ? edges[random() % 10] : static_cast<std::uint32_t>(random() >> random() % 32);
    }
    Kernel kernel(text, "k");
    // The last warp is not full.
    kernel.run({{2, 1, 1}, {120, 1, 1}}, {bytes_of(in), Bytes(2 * 128 * 128)});
    if (HasFailure()) {
      ADD_FAILURE() << text;
      return;
    }
  }
}

}  // namespace
