// Threads together: divergence, loops, barriers, calls, memory, warp operations, matrices, faults.
#include <map>
#include <set>

#include "harness.h"

namespace ptx_test {
namespace {

TEST(Divergence, PathsMeetAgain) {
  // Nested branches and a loop whose trip count differs by lane; behind them all lanes vote.
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = l * 7 % 11;
  const Values got = computed(R"(
cvt.u32.u64 %r1, %rd1; mov.u32 %r2, 0; mov.u32 %r3, 0;
LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
add.u32 %r3, %r3, 10; bra NEXT;
EVEN: add.u32 %r3, %r3, 1;
NEXT: add.u32 %r2, %r2, 1; bra LOOP;
DONE: vote.sync.ballot.b32 %r5, 1, 0xffffffff;
cvt.u64.u32 %rd0, %r3; cvt.u64.u32 %rd4, %r5; shl.b64 %rd4, %rd4, 32; or.b64 %rd0, %rd0, %rd4;)",
                              a);
  for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], 0xffffffff00000000u | ((a[l] + 1) / 2 + a[l] / 2 * 10)) << l;
}

TEST(Divergence, LanesMayReturnOrWaitForEachOther) {
  // A lock within a warp: the lane that has it must go on though others spin.
  Values lock{}, a{}, out{};
  Module module(kernel_text(R"(
mov.u64 %rd5, 0; ld.param.u64 %rd6, [b];
SPIN: atom.global.cas.b64 %rd4, [%rd6], 0, 1; setp.ne.u64 %p1, %rd4, 0; @%p1 bra SPIN;
ld.global.u64 %rd5, [%rd6+8]; add.u64 %rd5, %rd5, 1; st.global.u64 [%rd6+8], %rd5;
atom.global.exch.b64 %rd4, [%rd6], 0;
mov.u64 %rd0, %rd5;)"));
  ASSERT_EQ(module.make("k"), "");
  EXPECT_EQ(module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data(), a.data(), lock.data(), a.data()).stop,
            ptx::Stop::kDone);
  EXPECT_EQ(lock[1], 32u);
  EXPECT_EQ(std::set<std::uint64_t>(out.begin(), out.end()).size(), 32u);
}

TEST(Divergence, TablesOfTargets) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = l % 3;
  const Values got = computed(R"(
cvt.u32.u64 %r1, %rd1;
T: .branchtargets A, B, C;
brx.idx %r1, T;
A: mov.u64 %rd0, 100; bra END;
B: mov.u64 %rd0, 200; bra END;
C: mov.u64 %rd0, 300;
END: )",
                              a);
  for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], (l % 3 + 1) * 100);
}

TEST(WarpOperations, Shuffles) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = 1000 + l;
  const auto run = [&](const std::string& op) {
    return computed("cvt.u32.u64 %r1, %rd1; " + op +
                        " selp.b32 %r2, 1, 0, %p1; cvt.u64.u32 %rd0, %r0; cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, "
                        "32; or.b64 %rd0, %rd0, %rd4;",
                    a);
  };
  const Values up = run("shfl.sync.up.b32 %r0|%p1, %r1, 2, 0, -1;"),
               down = run("shfl.sync.down.b32 %r0|%p1, %r1, 3, 0x1f, -1;"),
               fly = run("shfl.sync.bfly.b32 %r0|%p1, %r1, 5, 0x1f, -1;"),
               idx = run("shfl.sync.idx.b32 %r0|%p1, %r1, 1, 0x181f, -1;");
  for (std::uint64_t l = 0; l < 32; ++l) {
    const auto pair = [](std::uint64_t value, bool in) { return value + 1000 + (std::uint64_t{in} << 32); };
    EXPECT_EQ(up[l], l >= 2 ? pair(l - 2, true) : pair(l, false));
    EXPECT_EQ(down[l], l + 3 < 32 ? pair(l + 3, true) : pair(l, false));
    EXPECT_EQ(fly[l], pair(l ^ 5, true));
    EXPECT_EQ(idx[l], pair(l / 8 * 8 + 1, true));  // segments of 8
  }
}

TEST(WarpOperations, VoteMatchRedux) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = l % 4;
  const Values same = computed("cvt.u32.u64 %r1, %rd1; match.any.sync.b32 %r0, %r1, -1; cvt.u64.u32 %rd0, %r0;", a);
  const Values sum = computed("cvt.u32.u64 %r1, %rd1; redux.sync.add.u32 %r0, %r1, -1; cvt.u64.u32 %rd0, %r0;", a);
  const Values some = computed(
      "setp.eq.u64 %p1, %rd1, 3; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1; selp.u64 %rd0, 1, "
      "0, %p2; selp.u64 %rd4, 2, 0, %p3; or.b64 %rd0, %rd0, %rd4;",
      a);
  for (std::size_t l = 0; l < 32; ++l) {
    EXPECT_EQ(same[l], 0x11111111u << l % 4);
    EXPECT_EQ(sum[l], 48u);
    EXPECT_EQ(some[l], 1u);
  }
}

// As cooperative groups' labeled_partition does: lanes of one instruction, each with the mask of its group.
TEST(WarpOperations, GroupsWithMasksOfTheirOwn) {
  Values a{}, b{};
  for (std::size_t l = 0; l < 32; ++l) {
    a[l] = l * 7 % 13;
    b[l] = l % 3;
  }
  const auto run = [&](const std::string& body) {
    return computed("cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; match.any.sync.b32 %r3, %r2, -1;" + body +
                        "cvt.u64.u32 %rd0, %r0;",
                    a, b);
  };
  const Values most = run("redux.sync.max.u32 %r0, %r1, %r3;");
  const Values odd = run("and.b32 %r4, %r1, 1; setp.ne.u32 %p1, %r4, 0; vote.sync.ballot.b32 %r0, %p1, %r3;");
  const Values any = run("setp.gt.u32 %p1, %r1, 11; vote.sync.any.pred %p2, %p1, %r3; selp.u32 %r0, 1, 0, %p2;");
  const Values same = run("and.b32 %r4, %r1, 1; match.any.sync.b32 %r0, %r4, %r3;");
  // The groups' lanes come by two ways: each group is complete where the later ones have come.
  const Values met = run(R"(
setp.lt.u32 %p1, %lane, 16; @%p1 bra LOW; add.u32 %r1, %r1, 100; bra BOTH;
LOW: add.u32 %r1, %r1, 200;
BOTH: redux.sync.max.u32 %r0, %r1, %r3;)");
  for (std::size_t l = 0; l < 32; ++l) {
    std::uint64_t want_most = 0, want_odd = 0, want_any = 0, want_same = 0, want_met = 0;
    for (std::size_t other = l % 3; other < 32; other += 3) {
      want_most = std::max(want_most, a[other]);
      want_odd |= (a[other] & 1) << other;
      want_any |= a[other] > 11 ? 1 : 0;
      want_same |= std::uint64_t{(a[other] & 1) == (a[l] & 1)} << other;
      want_met = std::max(want_met, a[other] + (other < 16 ? 200 : 100));
    }
    EXPECT_EQ(most[l], want_most) << l;
    EXPECT_EQ(odd[l], want_odd) << l;
    EXPECT_EQ(any[l], want_any) << l;
    EXPECT_EQ(same[l], want_same) << l;
    EXPECT_EQ(met[l], want_met) << l;
  }
}

TEST(Predicates, CombineAndSelect) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = l;
  const Values got = computed(R"(
setp.lt.u64 %p1|%p2, %rd1, 10; setp.gt.and.u64 %p3, %rd1, 4, %p1; setp.eq.or.u64 %p4, %rd1, 20, !%p2;
and.pred %p5, %p3, %p4; not.pred %p5, %p5; selp.u64 %rd0, 1, 2, %p5; @%p2 add.u64 %rd0, %rd0, 10; @!%p2 add.u64 %rd0, %rd0, 20;)",
                              a);
  for (std::uint64_t l = 0; l < 32; ++l) {
    const bool p3 = l > 4 && l < 10, p4 = l == 20 || l < 10;
    EXPECT_EQ(got[l], (p3 && p4 ? 2u : 1u) + (l < 10 ? 20u : 10u));
  }
}

constexpr const char* kReduction = R"(.version 8.6
.target sm_80
.address_size 64
.shared .align 4 .b8 buffer[1024];
.extern .shared .align 16 .b8 dynamic[];
.entry sum(.param .u64 in, .param .u64 out)
{
.reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<10>;
mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;
mad.lo.s32 %r4, %r3, %r2, %r1;
ld.param.u64 %rd1, [in]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r5, [%rd1];
mov.u32 %r6, buffer; shl.b32 %r7, %r1, 2; add.u32 %r8, %r6, %r7; st.shared.u32 [%r8], %r5;
bar.sync 0;
shr.u32 %r9, %r2, 1;
L: setp.eq.u32 %p1, %r9, 0; @%p1 bra END;
setp.ge.u32 %p2, %r1, %r9; @%p2 bra SKIP;
add.u32 %r10, %r1, %r9; shl.b32 %r10, %r10, 2; add.u32 %r10, %r6, %r10;
ld.shared.u32 %r11, [%r10]; ld.shared.u32 %r12, [%r8]; add.u32 %r12, %r12, %r11; st.shared.u32 [%r8], %r12;
SKIP: bar.sync 0;
shr.u32 %r9, %r9, 1; bra L;
END: setp.ne.u32 %p3, %r1, 0; @%p3 ret;
ld.shared.u32 %r13, [buffer]; st.shared.u32 [dynamic+4], %r13; ld.shared.u32 %r13, [dynamic+4];
ld.param.u64 %rd3, [out]; red.global.add.u32 [%rd3], %r13;
ret;
}
)";

TEST(Blocks, SharedMemoryAndBarriers) {
  Module module(kReduction);
  ASSERT_EQ(module.make("sum"), "");
  EXPECT_EQ(module.program->kernel("sum")->static_shared_bytes, 1024u);
  std::vector<std::uint32_t> in(256 * 5);
  std::uint32_t want = 0, out = 0;
  for (std::uint32_t i = 0; i < in.size(); ++i) want += in[i] = i * i + 3;
  const ptx::Outcome outcome = module.run({{5, 1, 1}, {256, 1, 1}, 16}, {}, in.data(), &out);
  EXPECT_EQ(outcome.stop, ptx::Stop::kDone) << outcome.text;
  EXPECT_EQ(out, want);
}

TEST(Blocks, BarrierReductionsAndDeadlock) {
  const auto text = [](const std::string& body) {
    return ".version 8.6\n.target sm_80\n.entry k(.param .u64 out) { .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 "
           "%rd<5>;\n"
           "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n" +
           body + " ret; }";
  };
  Module count(text("setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r2, 0, %p1; st.global.u32 [%rd1], %r2;"));
  ASSERT_EQ(count.make("k"), "");
  std::vector<std::uint32_t> out(96);
  EXPECT_EQ(count.run({{1, 1, 1}, {96, 1, 1}}, {}, out.data()).stop, ptx::Stop::kDone);
  EXPECT_EQ(out, std::vector<std::uint32_t>(96, 40));
  Module stuck(text("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; bra B; A: bar.sync 2; B: bar.sync 0;"));
  ASSERT_EQ(stuck.make("k"), "");
  EXPECT_EQ(stuck.run({{1, 1, 1}, {96, 1, 1}}, {}, out.data()).stop, ptx::Stop::kDeadlock);
}

TEST(Functions, CallsThroughNamesAndPointers) {
  const char* const text = R"(.version 8.6
.target sm_80
.func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) factorial(.param .b32 x) { .reg .pred %p; .reg .b32 %r<5>; ld.param.b32 %r1, [x];
setp.le.u32 %p, %r1, 1; @%p bra ONE; sub.u32 %r2, %r1, 1;
{ .param .b32 a0; st.param.b32 [a0], %r2; .param .b32 r0; call.uni (r0), factorial, (a0); ld.param.b32 %r3, [r0]; }
mul.lo.u32 %r3, %r3, %r1; st.param.b32 [r], %r3; ret;
ONE: st.param.b32 [r], 1; ret; }
.global .u64 table[2] = { twice, factorial };
.entry k(.param .u64 out) { .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 7;
{ .param .b32 a0; st.param.b32 [a0], %r2; .param .b32 r0; call (r0), factorial, (a0); ld.param.b32 %r3, [r0]; }
setp.lt.u32 %p1, %r1, 16; mov.u64 %rd3, twice; mov.u64 %rd4, factorial; selp.u64 %rd3, %rd3, %rd4, %p1;
{ .param .b32 a0; st.param.b32 [a0], %r2; .param .b32 r0; P: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r0), %rd3, (a0), P; ld.param.b32 %r4, [r0]; }
add.u32 %r3, %r3, %r4;
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3; ret; })";
  Module module(text);
  ASSERT_EQ(module.make("k"), "");
  std::array<std::uint32_t, 32> out{};
  const ptx::Outcome outcome = module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data());
  ASSERT_EQ(outcome.stop, ptx::Stop::kDone) << outcome.text;
  for (std::uint32_t l = 0; l < 32; ++l) {
    std::uint32_t f = 1;
    for (std::uint32_t i = 2; i <= l % 7; ++i) f *= i;
    EXPECT_EQ(out[l], f + (l < 16 ? 2 * (l % 7) : f)) << l;
  }
}

TEST(Memory, LocalVectorsAndGenericAddresses) {
  Values a{};
  for (std::size_t l = 0; l < 32; ++l) a[l] = l * 0x0101010101010101;
  const Values got = computed(R"(
.local .align 16 .b8 depot[64]; .shared .align 8 .b8 s[256];
mov.u64 %rd4, depot; st.local.v2.u64 [%rd4+16], {%rd1, %rd1}; cvta.local.u64 %rd5, %rd4; ld.v2.u32 {%r1, %r2}, [%rd5+24];
mov.u32 %r3, s; mad.lo.u32 %r3, %lane, 8, %r3; st.shared.v2.u32 [%r3], {%r1, %r2}; cvt.u64.u32 %rd6, %r3; cvta.shared.u64 %rd6, %rd6;
isspacep.shared %p1, %rd6; isspacep.global %p2, %rd6; ld.s8 %r4, [%rd6]; cvt.s64.s32 %rd0, %r4; @!%p1 mov.u64 %rd0, 7; @%p2 mov.u64 %rd0, 8;)",
                              a);
  for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l);
}

TEST(Memory, AtomicsReturnWhatWasThere) {
  Values counters{}, a{}, out{};
  counters[1] = 5;
  Module module(kernel_text(R"(
ld.param.u64 %rd4, [b]; atom.global.add.u64 %rd0, [%rd4], 1; atom.global.inc.u32 %r1, [%rd4+8], 6; atom.global.max.s32 %r2, [%rd4+16], %lane;
mov.f32 %f1, 0f3f800000; red.global.add.f32 [%rd4+24], %f1; mov.b32 %r3, 0x3c003c00; atom.global.add.noftz.f16x2 %r4, [%rd4+32], %r3;)"));
  ASSERT_EQ(module.make("k"), "");
  EXPECT_EQ(module.run({{1, 1, 1}, {32, 1, 1}}, {}, out.data(), a.data(), counters.data(), a.data()).stop,
            ptx::Stop::kDone);
  for (std::size_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], l);
  EXPECT_EQ(counters[0], 32u);
  EXPECT_EQ(counters[1], (5u + 32) % 7);
  EXPECT_EQ(counters[2], 31u);
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(counters[3])), 32.0f);
  EXPECT_EQ(counters[4], 0x50005000u);  // 32.0 twice
}

TEST(Memory, EachTouchedByteIsReported) {
  std::map<std::uint64_t, int> seen;  // by address: 1 read, 2 written, 4 by an atomic
  const auto touched = [](void* context, std::uint64_t address, std::uint32_t bytes, ptx::Access access) {
    for (std::uint32_t b = 0; b < bytes; ++b)
      (*static_cast<std::map<std::uint64_t, int>*>(context))[address + b] |= 1 << static_cast<int>(access);
  };
  Module module(kReduction);
  ASSERT_EQ(module.make("sum"), "");
  std::vector<std::uint32_t> in(64, 1);
  std::uint32_t out = 0;
  EXPECT_EQ(module.run({{1, 1, 1}, {64, 1, 1}, 16}, {touched, &seen}, in.data(), &out).stop, ptx::Stop::kDone);
  EXPECT_EQ(seen.size(), 64u * 4 + 4);
  for (const auto& [address, how] : seen) EXPECT_EQ(how, address - reinterpret_cast<std::uint64_t>(&out) < 4 ? 4 : 1);
}

TEST(Faults, AreNamed) {
  const auto stop = [](const std::string& body) {
    Module module(kernel_text(body));
    EXPECT_EQ(module.make("k"), "") << body;
    Values v{};
    return module.run({{1, 1, 1}, {32, 1, 1}}, {}, v.data(), v.data(), v.data(), v.data()).stop;
  };
  EXPECT_EQ(stop("trap;"), ptx::Stop::kTrap);
  EXPECT_EQ(stop("ld.param.u64 %rd4, [a]; ld.global.u32 %r1, [%rd4+2];"), ptx::Stop::kMisaligned);
  EXPECT_EQ(stop(".shared .b32 s[4]; ld.shared.u32 %r1, [s+16];"), ptx::Stop::kAddress);
}

TEST(Matrices, ProductsOfEveryType) {
  // Each lane's fragments by the ISA's tables for m16n8k16, from matrices of small whole numbers.
  std::array<std::array<int, 16>, 16> ma{};
  std::array<std::array<int, 8>, 16> mb{};
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) ma[i][j] = (i * 5 + j * 3) % 7 - 3;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) mb[i][j] = (i * 2 + j * 11) % 5 - 2;
  const auto half = [](int x) -> std::uint64_t {  // f16 of -3 to 3
    constexpr std::uint16_t kBits[] = {0, 0x3c00, 0x4000, 0x4200};
    return kBits[x < 0 ? -x : x] | (x < 0 ? 0x8000 : 0);
  };
  Values a{}, b{}, c{};
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, t = l % 4;
    const auto pair_a = [&](int row, int column) { return half(ma[row][column]) | half(ma[row][column + 1]) << 16; };
    a[l] = pair_a(g, 2 * t) | pair_a(g + 8, 2 * t) << 32;
    c[l] = pair_a(g, 2 * t + 8) | pair_a(g + 8, 2 * t + 8) << 32;
    const auto pair_b = [&](int row) { return half(mb[row][g]) | half(mb[row + 1][g]) << 16; };
    b[l] = pair_b(2 * t) | pair_b(2 * t + 8) << 32;
  }
  for (int part = 0; part < 4; ++part) {
    const Values got = computed(R"(
mov.b64 {%r1, %r2}, %rd1; mov.b64 {%r3, %r4}, %rd3; mov.b64 {%r5, %r6}, %rd2; mov.f32 %f9, 0f3f800000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f9, %f9, %f9, %f9};
cvt.rzi.s64.f32 %rd0, %f)" + std::to_string(part) +
                                    ";",
                                a, b, c);
    for (int l = 0; l < 32; ++l) {
      const int row = l / 4 + part / 2 * 8, column = l % 4 * 2 + part % 2;
      int want = 1;
      for (int k = 0; k < 16; ++k) want += ma[row][k] * mb[k][column];
      EXPECT_EQ(static_cast<std::int64_t>(got[l]), want) << part << ' ' << l;
    }
  }
}

TEST(Matrices, LoadedFromSharedMemory) {
  Values a{};
  const Values got = computed(R"(
.shared .align 16 .b16 s[256];
mul.lo.u32 %r1, %lane, 16; mov.u32 %r2, s; and.b32 %r3, %lane, 7; mad.lo.u32 %r4, %r3, 16, %r2;
setp.ge.u32 %p1, %lane, 8; @%p1 bra LOAD;
mul.lo.u32 %r5, %lane, 8; cvt.u16.u32 %rs1, %r5; mov.u32 %r6, 0;
FILL: mad.lo.u32 %r7, %r6, 2, %r4; st.shared.u16 [%r7], %rs1; add.u16 %rs1, %rs1, 1; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 8; @%p2 bra FILL;
LOAD: bar.warp.sync -1;
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r4]; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r9}, [%r4];
cvt.u64.u32 %rd0, %r8; cvt.u64.u32 %rd4, %r9; shl.b64 %rd4, %rd4, 32; or.b64 %rd0, %rd0, %rd4;)",
                              a);
  for (std::uint64_t l = 0; l < 32; ++l) {
    const std::uint64_t g = l / 4, t = l % 4 * 2;
    EXPECT_EQ(got[l], (g * 8 + t) | (g * 8 + t + 1) << 16 | (t * 8 + g) << 32 | ((t + 1) * 8 + g) << 48);
  }
}

struct WmmaCase {
  const char* shape;
  int m, n, k;
  const char *a, *b, *c, *d;  // types
  int a_registers, b_registers;
  bool a_rows, b_rows, c_rows, shared;
};

// Small whole numbers: exact in all types.
void put(std::vector<std::byte>& bytes, std::size_t at, const std::string& type, int x) {
  const auto write = [&](auto value) {
    bytes.resize(std::max(bytes.size(), (at + 1) * sizeof value));
    std::memcpy(bytes.data() + at * sizeof value, &value, sizeof value);
  };
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (type == "f64") return write(static_cast<double>(x));
  if (type == "f32" || type == "tf32") return write(single);
  if (type == "s32") return write(x);
  if (type == "s8" || type == "u8") return write(static_cast<std::int8_t>(x));
  if (type == "bf16") return write(static_cast<std::uint16_t>(single >> 16));
  // The same exponent and mantissa, of f32's with a bias of 127 and 23 bits.
  write(
      static_cast<std::uint16_t>(x == 0 ? 0 : (single >> 16 & 0x8000) | ((single & 0x7fffffff) - (112u << 23)) >> 13));
}

std::string registers(const char* prefix, int count) {
  std::string text = "{";
  for (int at = 0; at < count; ++at) text += (at == 0 ? "%" : ", %") + std::string(prefix) + std::to_string(at);
  return text + "}";
}

void check_wmma(const WmmaCase& w) {
  const bool least = *w.a == 'u';  // types without a sign
  const auto a_of = [&](int row, int k) { return (row * 5 + k * 3) % 7 - (least ? 0 : 3); };
  const auto b_of = [&](int k, int column) { return (k * 2 + column * 11) % 5 - (least ? 0 : 2); };
  const auto c_of = [](int row, int column) { return (row * 3 + column) % 9 - 4; };
  // A stride that is longer than a row.
  const std::size_t a_stride = static_cast<std::size_t>(w.a_rows ? w.k : w.m) + 8,
                    b_stride = static_cast<std::size_t>(w.b_rows ? w.n : w.k) + 16,
                    c_stride = static_cast<std::size_t>(w.c_rows ? w.n : w.m) + 4;
  const auto at = [](bool rows, std::size_t stride, int row, int column) {
    return rows ? static_cast<std::size_t>(row) * stride + static_cast<std::size_t>(column)
                : static_cast<std::size_t>(column) * stride + static_cast<std::size_t>(row);
  };
  std::vector<std::byte> a, b, c, wanted, got(32 * 64 * 8, std::byte{0xee});
  for (int row = 0; row < w.m; ++row)
    for (int k = 0; k < w.k; ++k) put(a, at(w.a_rows, a_stride, row, k), w.a, a_of(row, k));
  for (int k = 0; k < w.k; ++k)
    for (int column = 0; column < w.n; ++column) put(b, at(w.b_rows, b_stride, k, column), w.b, b_of(k, column));
  wanted = got;
  for (int row = 0; row < w.m; ++row) {
    for (int column = 0; column < w.n; ++column) {
      put(c, at(w.c_rows, c_stride, row, column), w.c, c_of(row, column));
      int sum = c_of(row, column);
      for (int k = 0; k < w.k; ++k) sum += a_of(row, k) * b_of(k, column);
      put(wanted, at(!w.c_rows, w.c_rows ? static_cast<std::size_t>(w.m) : static_cast<std::size_t>(w.n), row, column),
          w.d, sum);
    }
  }
  const auto accumulators = [&](const char* type) {
    return *type == 'f' && type[1] == '1' ? w.m * w.n / 64 : w.m * w.n / 32;
  };
  const auto layout = [](bool rows) { return std::string(rows ? ".row" : ".col"); };
  const std::string shape = std::string(".") + w.shape, sync = ".sync.aligned";
  const auto bits = [](const char* type) { return std::string(std::strcmp(type, "f64") == 0 ? "b64" : "b32"); };
  const std::string types = std::strcmp(w.a, "f16") == 0 ? std::string(".") + w.d + "." + w.c
                                                         : std::string(".") + w.d + "." + w.a + "." + w.b + "." + w.c;
  std::string text = R"(.version 8.6
.target sm_80
.address_size 64
.shared .align 32 .b8 tile[4096];
.entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
.reg .pred %more; .reg .b32 %s, %lane, %x, %y; .reg .b64 %p<5>, %q;
.reg .)" + bits(w.a) +
                     " %a<8>, %b<8>; .reg ." + bits(w.c) + " %c<8>, %d<8>;\n" +
                     "ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; ld.param.u64 %p3, [c]; ld.param.u64 %p4, [d];\n";
  text += "wmma.load.a" + sync + layout(w.a_rows) + shape + ".global." + w.a + " " + registers("a", w.a_registers) +
          ", [%p1], " + std::to_string(a_stride) + ";\n";
  text += "mov.u32 %s, " + std::to_string(b_stride) + "; wmma.load.b" + sync + layout(w.b_rows) + shape + "." + w.b +
          " " + registers("b", w.b_registers) + ", [%p2], %s;\n";
  text += "wmma.load.c" + sync + layout(w.c_rows) + shape + "." + w.c + " " + registers("c", accumulators(w.c)) +
          ", [%p3], " + std::to_string(c_stride) + ";\n";
  text += "wmma.mma" + sync + layout(w.a_rows) + layout(w.b_rows) + shape + types + " " +
          registers("d", accumulators(w.d)) + ", " + registers("a", w.a_registers) + ", " +
          registers("b", w.b_registers) + ", " + registers("c", accumulators(w.c)) + ";\n";
  const std::string store = "wmma.store.d" + sync + layout(!w.c_rows) + shape;
  const std::string values = registers("d", accumulators(w.d));
  if (w.shared) {
    text += store + ".shared." + w.d + " [tile], " + values + R"(;
bar.sync 0; mov.u32 %lane, %tid.x; shl.b32 %x, %lane, 2;
COPY: mov.u32 %y, tile; add.u32 %y, %y, %x; ld.shared.b32 %y, [%y]; cvt.u64.u32 %q, %x; add.s64 %q, %q, %p4; st.global.b32 [%q], %y;
add.u32 %x, %x, 128; setp.lt.u32 %more, %x, )" +
            std::to_string(w.m * w.n * (std::strcmp(w.d, "f16") == 0 ? 2 : 4)) + "; @%more bra COPY;\n";
  } else {
    text += store + "." + w.d + " [%p4], " + values + ";\n";
  }
  Module module(text + "ret;\n}\n");
  ASSERT_EQ(module.make("k"), "") << text;
  EXPECT_EQ(module.run({{1, 1, 1}, {32, 1, 1}}, {}, a.data(), b.data(), c.data(), got.data()).stop, ptx::Stop::kDone);
  EXPECT_EQ(got, wanted) << text;
}

TEST(Matrices, LoadedMultipliedAndStoredAsAWhole) {
  for (const WmmaCase& w :
       {WmmaCase{"m16n16k16", 16, 16, 16, "f16", "f16", "f32", "f32", 8, 8, true, false, true, false},
        {"m16n16k16", 16, 16, 16, "f16", "f16", "f16", "f32", 8, 8, false, true, false, true},
        {"m32n8k16", 32, 8, 16, "f16", "f16", "f16", "f16", 8, 8, true, true, true, true},
        {"m8n32k16", 8, 32, 16, "f16", "f16", "f32", "f16", 8, 8, false, false, false, false},
        {"m16n16k16", 16, 16, 16, "bf16", "bf16", "f32", "f32", 4, 4, true, false, true, false},
        {"m32n8k16", 32, 8, 16, "bf16", "bf16", "f32", "f32", 8, 2, false, true, true, false},
        {"m16n16k8", 16, 16, 8, "tf32", "tf32", "f32", "f32", 4, 4, true, false, false, true},
        {"m8n8k4", 8, 8, 4, "f64", "f64", "f64", "f64", 1, 1, true, false, true, false},
        {"m16n16k16", 16, 16, 16, "s8", "s8", "s32", "s32", 2, 2, true, false, true, true},
        {"m8n32k16", 8, 32, 16, "u8", "u8", "s32", "s32", 1, 4, false, true, false, false}})
    check_wmma(w);
}

TEST(Matrices, FragmentsOfOtherSizesAreMissing) {
  const auto problem = [](const std::string& body) {
    Module module(kernel_text(body));
    return module.make("k");
  };
  EXPECT_NE(problem("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd1], 16;"), "");
  EXPECT_NE(problem("wmma.load.a.sync.aligned.row.m16n16k16.f32 {%f1, %f2, %f3, %f4}, [%rd1], 16;"), "");
  EXPECT_NE(problem("wmma.store.a.sync.aligned.row.m8n8k4.f64 [%rd1], {%rd1, %rd2}, 16;"), "");
  EXPECT_NE(problem("wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64 {%rd1, %rd2}, {%rd1}, {%rd1}, {%rd1, %rd2};"), "");
  EXPECT_NE(problem("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%rd2}, %rd1, 16;"), "");
  EXPECT_NE(problem("wmma.load.a.sync.aligned.m8n8k4.f64 {%rd2}, [%rd1], 16;"), "");
}

}  // namespace
}  // namespace ptx_test
