// Random PTX programs with a second opinion: trees of 32-bit operations, branches and bounded loops, written as PTX and
// evaluated thread by thread in C++. For comparing whatever executes PTX.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ptx_test {

class RandomProgram {
 public:
  static constexpr int kRegisters = 8;
  using Registers = std::array<std::uint32_t, kRegisters>;

  explicit RandomProgram(std::uint32_t seed) : random_(seed) { body_ = statements(4); }

  // Kernel k(out): each thread writes its registers, kRegisters words, to out + 4 * kRegisters * its number in the
  // grid.
  std::string text() const {
    std::string out =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out)\n{\n.reg .pred %p<200>; .reg .b32 "
        "%r<8>; "
        ".reg .b32 %t, %n<200>; .reg .b64 %a, %b;\n"
        "mov.u32 %t, %tid.x; mov.u32 %n199, %ntid.x; mov.u32 %n198, %ctaid.x; mad.lo.u32 %t, %n199, %n198, %t;\n";
    for (int r = 0; r < kRegisters; ++r)
      out += "mad.lo.u32 " + reg(r) + ", %t, " + std::to_string(2654435761u * static_cast<unsigned>(r + 1)) + ", " +
             std::to_string(r) + ";\n";
    int labels = 0;
    write(body_, out, labels);
    out += "ld.param.u64 %a, [out]; mul.wide.u32 %b, %t, 32; add.u64 %a, %a, %b;\n";
    for (int r = 0; r < kRegisters; ++r) out += "st.global.u32 [%a+" + std::to_string(4 * r) + "], " + reg(r) + ";\n";
    return out + "ret;\n}\n";
  }

  Registers evaluated(std::uint32_t thread) const {
    Registers r{};
    for (int i = 0; i < kRegisters; ++i)
      r[i] = thread * (2654435761u * static_cast<unsigned>(i + 1)) + static_cast<unsigned>(i);
    evaluate(body_, r);
    return r;
  }

 private:
  struct Node {
    enum class Kind { kOperation, kIf, kLoop } kind;
    int op, d, a, b, c;
    std::vector<Node> first, second;  // then and else; a loop's body
  };
  struct Operation {
    const char* name;
    std::uint32_t (*compute)(std::uint32_t, std::uint32_t, std::uint32_t);
    int operands;
  };
  using U = std::uint32_t;
  static constexpr Operation kOperations[] = {
      {"add.u32", [](U a, U b, U) { return a + b; }, 2},
      {"sub.u32", [](U a, U b, U) { return a - b; }, 2},
      {"mul.lo.u32", [](U a, U b, U) { return a * b; }, 2},
      {"mul.hi.u32", [](U a, U b, U) { return static_cast<U>(std::uint64_t{a} * b >> 32); }, 2},
      {"mad.lo.u32", [](U a, U b, U c) { return a * b + c; }, 3},
      {"and.b32", [](U a, U b, U) { return a & b; }, 2},
      {"xor.b32", [](U a, U b, U) { return a ^ b; }, 2},
      {"or.b32", [](U a, U b, U) { return a | b; }, 2},
      {"not.b32", [](U a, U, U) { return ~a; }, 1},
      {"popc.b32", [](U a, U, U) { return static_cast<U>(std::popcount(a)); }, 1},
      {"clz.b32", [](U a, U, U) { return static_cast<U>(std::countl_zero(a)); }, 1},
      {"min.s32", [](U a, U b, U) { return static_cast<int>(a) < static_cast<int>(b) ? a : b; }, 2},
      {"max.u32", [](U a, U b, U) { return a > b ? a : b; }, 2},
      {"shr.s32", [](U a, U b, U) { return static_cast<U>(static_cast<int>(a) >> (b > 31 ? 31 : b)); }, 2},
      {"shl.b32", [](U a, U b, U) { return b > 31 ? 0 : a << b; }, 2},
      {"div.u32", [](U a, U b, U) { return b == 0 ? ~U{0} : a / b; }, 2},
  };

  static std::string reg(int r) { return "%r" + std::to_string(r); }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  std::vector<Node> statements(int depth) {
    std::vector<Node> nodes;
    for (int n = 1 + below(4); n > 0; --n) {
      Node node{Node::Kind::kOperation,
                below(std::size(kOperations)),
                below(kRegisters),
                below(kRegisters),
                below(kRegisters),
                below(kRegisters),
                {},
                {}};
      const int what = depth == 0 ? 0 : below(5);
      if (what == 3) {
        node.kind = Node::Kind::kIf;
        node.first = statements(depth - 1);
        if (below(2) == 0) node.second = statements(depth - 1);
      } else if (what == 4) {
        node.kind = Node::Kind::kLoop;
        node.first = statements(depth - 1);
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  // An if compares a with b; a loop runs (a & 3) times, as a is before it.
  static void write(const std::vector<Node>& nodes, std::string& out, int& labels) {
    for (const Node& node : nodes) {
      const std::string n = std::to_string(labels);
      if (node.kind != Node::Kind::kOperation) ++labels;
      if (node.kind == Node::Kind::kOperation) {
        const Operation& op = kOperations[node.op];
        out += std::string(op.name) + " " + reg(node.d) + ", " + reg(node.a) +
               (op.operands > 1 ? ", " + reg(node.b) : "") + (op.operands > 2 ? ", " + reg(node.c) : "") + ";\n";
      } else if (node.kind == Node::Kind::kIf) {
        out += "setp.lt.s32 %p" + n + ", " + reg(node.a) + ", " + reg(node.b) + "; @!%p" + n + " bra ELSE" + n + ";\n";
        write(node.first, out, labels);
        out += "bra END" + n + ";\nELSE" + n + ":\n";
        write(node.second, out, labels);
        out += "END" + n + ":\n";
      } else {
        out += "and.b32 %n" + n + ", " + reg(node.a) + ", 3;\nLOOP" + n + ": setp.eq.u32 %p" + n + ", %n" + n +
               ", 0; @%p" + n + " bra END" + n + ";\n";
        write(node.first, out, labels);
        out += "sub.u32 %n" + n + ", %n" + n + ", 1; bra LOOP" + n + ";\nEND" + n + ":\n";
      }
    }
  }

  static void evaluate(const std::vector<Node>& nodes, Registers& r) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::kOperation) {
        r[node.d] = kOperations[node.op].compute(r[node.a], r[node.b], r[node.c]);
      } else if (node.kind == Node::Kind::kIf) {
        evaluate(static_cast<int>(r[node.a]) < static_cast<int>(r[node.b]) ? node.first : node.second, r);
      } else {
        for (std::uint32_t times = r[node.a] & 3; times > 0; --times) evaluate(node.first, r);
      }
    }
  }

  std::mt19937 random_;
  std::vector<Node> body_;
};

}  // namespace ptx_test
