// The parser: what it resolves, what it refuses, and the control flow that it finds.
#include "harness.h"
#include "ptx/front/opcodes.h"

namespace ptx_test {
namespace {

std::shared_ptr<const ptx::Program> with_body(const std::string& body) {
  return ptx::parse(
      ".version 8.0\n.target sm_80\n.entry k()\n{\n.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<4>; .reg .f32 "
      "%f<4>;\n" +
      body + "\nret;\n}\n");
}

TEST(Opcodes, TableIsInOrderAndItsWordsAreKnown) {
  std::string_view before;
  for (const ptx::Opcode& row : ptx::opcodes()) {
    EXPECT_EQ(ptx::opcode_named(row.name), &row) << row.name << " is there twice";
    EXPECT_LE(row.min_types, row.max_types) << row.name;
    for (std::string_view list : {row.types, row.modifiers}) {
      while (!list.empty()) {
        const std::size_t end = std::min(list.find(' '), list.size());
        const std::string_view word = list.substr(0, end);
        EXPECT_TRUE(word == "cache" || word == "async" || ptx::type_named(word) || ptx::modifier_named(word))
            << row.name << ": " << word;
        list.remove_prefix(std::min(end + 1, list.size()));
      }
    }
    before = row.name;
  }
  EXPECT_FALSE(before.empty());
}

TEST(Parser, ResolvesOperands) {
  const auto program = with_body(
      "fma.rn.ftz.f32 %f1, %f2, 0f3F800000, 1.5e-3; @!%p1 bra L; mov.u32 %r1, %tid.y;\nL: setp.lt.s32 %p1|%p2, %r2, "
      "-7;");
  const ptx::Function& k = *program->kernel("k");
  ASSERT_EQ(k.problem, "");
  ASSERT_EQ(k.instructions.size(), 5u);
  const ptx::Instruction& fma = k.instructions[0];
  EXPECT_EQ(ptx::text_of(fma), "fma.rn.ftz.f32");
  EXPECT_EQ(fma.operands[0].index, 18u + 1);  // behind 4 predicates, 10 and 4 registers
  EXPECT_EQ(fma.operands[2].value, 0x3F800000u);
  EXPECT_EQ(fma.operands[3].value, std::bit_cast<std::uint32_t>(1.5e-3f));
  EXPECT_TRUE(k.instructions[1].guard_negated);
  EXPECT_EQ(k.instructions[1].operands[0].index, 2u);  // a block
  EXPECT_EQ(k.instructions[2].operands[1].special, ptx::Special::kTidY);
  EXPECT_EQ(k.instructions[3].operands[0].pair, 2u);
  EXPECT_EQ(k.instructions[3].operands[2].value, std::uint64_t{0} - 7);
}

TEST(Parser, ProblemsBelongToTheirFunction) {
  const auto problem = [](const std::string& body) { return with_body(body)->kernel("k")->problem; };
  EXPECT_EQ(problem("wgmma.fence.sync.aligned;"), "line 6: wgmma.fence.sync.aligned");
  EXPECT_EQ(problem("add.up.s32 %r1, %r2, %r3;"), "line 6: add.up.s32");
  EXPECT_EQ(problem("add.s32 %r1, %r2, %r77;"), "line 6: '%r77' is not declared");
  EXPECT_EQ(problem("add.s32 %r1, %r2;"), "line 6: add.s32: too few operands");
  EXPECT_EQ(problem("add.s32 5, %r1, %r2;"), "line 6: add.s32: operand 1 is of the wrong kind");
  EXPECT_EQ(problem("bra NOWHERE;"), "line 6: no label NOWHERE");
  EXPECT_EQ(problem("call nothing;"), "line 6: call of 'nothing', which is not declared");
  // Another kernel of the module is none the worse, and one that calls it is.
  const auto program = ptx::parse(
      ".version 8.0\n.target sm_80\n.func bad() { wgmma.fence.sync.aligned; }\n.entry a() { call bad; ret; }\n.entry "
      "b() { ret; "
      "}");
  EXPECT_EQ(program->problem_of(*program->kernel("a")), "line 3: wgmma.fence.sync.aligned");
  EXPECT_EQ(program->problem_of(*program->kernel("b")), "");
}

// Post-dominators by their definition: b is one of a where every way from a to the end goes through b.
TEST(ControlFlow, PostDominatorsAsDefined) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int blocks = 2 + static_cast<int>(random() % 9);
    std::string body;
    for (int b = 0; b < blocks; ++b) {
      body += "B" + std::to_string(b) + ": add.s32 %r1, %r1, 1;\n";
      const std::string to = "B" + std::to_string(random() % static_cast<unsigned>(blocks));
      if (random() % 3 != 0) body += "@%p1 bra " + to + ";\n";
      if (random() % 5 == 0) body += "@%p2 ret;\n";
    }
    const auto program = with_body(body);
    const ptx::Function& k = *program->kernel("k");
    const auto count = static_cast<std::uint32_t>(k.blocks.size());
    const auto leaves = [&](std::uint32_t b) { return k.instructions[k.blocks[b].last - 1].op == ptx::Op::kRet; };
    const auto reaches_end = [&](std::uint32_t from, std::uint32_t without) {
      std::vector<bool> seen(count);
      std::vector<std::uint32_t> todo{from};
      while (!todo.empty()) {
        const std::uint32_t b = todo.back();
        todo.pop_back();
        if (b == without || seen[b]) continue;
        seen[b] = true;
        if (leaves(b)) return true;
        todo.insert(todo.end(), k.blocks[b].successors.begin(), k.blocks[b].successors.end());
      }
      return false;
    };
    for (std::uint32_t a = 0; a < count; ++a) {
      if (!reaches_end(a, ptx::kNoIndex)) continue;
      // The nearest: the post-dominator that all others post-dominate.
      std::vector<std::uint32_t> found;
      for (std::uint32_t b = 0; b < count; ++b)
        if (b != a && !reaches_end(a, b)) found.push_back(b);
      std::uint32_t nearest = ptx::kNoIndex;
      for (const std::uint32_t b : found) {
        bool first = true;
        for (const std::uint32_t other : found) first &= other == b || !reaches_end(b, other);
        if (first) nearest = b;
      }
      EXPECT_EQ(k.blocks[a].post_dominator, nearest) << body << "block " << a;
    }
  }
}

TEST(Parser, DamageEndsInAProgramOrAnError) {
  std::string text = kernel_text(
      "setp.lt.f32 %p1, %f1, 0f00000000; @%p1 bra L; mov.b64 {%r1, %r2}, %rd1; L: atom.global.add.u32 %r1, [%rd1+4], "
      "5; { .param .b32 x; }");
  std::mt19937 random(3);
  int programs = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (auto n = 1 + random() % 6; n > 0; --n) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged.erase(at, random() % 20);
          break;
        case 1:
          damaged.insert(at, 1, "{}()[];,.%@!|\"-+0xf:$<>"[random() % 23]);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 30));
          break;
        default:
          damaged[at] = static_cast<char>(random());
      }
    }
    try {
      const auto program = ptx::parse(damaged);
      ++programs;
      for (const ptx::Function& f : program->functions) {
        std::string problem;
        if (f.is_kernel && f.is_defined)
          ptx::Executable::make(
              program, f, [](const ptx::Variable&) { return 4096; }, problem);
      }
    } catch (const ptx::ParseError&) {
    }
  }
  EXPECT_GT(programs, 500);
}

}  // namespace
}  // namespace ptx_test
