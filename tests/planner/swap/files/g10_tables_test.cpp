#include "planner/swap/files/g10_tables.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "planner/swap/model/liveness.h"

namespace memopt::swap {
namespace {

std::string tensor(int number, std::uint64_t bytes, bool weight = false) {
  return "tensor" + std::to_string(number) + " Is weight (global)?: " + (weight ? "1" : "0") +
         ", Size in byte: " + std::to_string(bytes) + ", Range:0--" + std::to_string(bytes) + "\n";
}

std::string weight(int number, std::uint64_t bytes) { return tensor(number, bytes, true); }

const std::string kRule = "____________________________________________________________________\n";

std::string table_head(const std::string& name, std::uint64_t cycles) {
  return "Kernel ID: 0, Name: " + name + "\nParent OP ID:215; Name: " + name +
         "\nExecution Time: " + std::to_string(cycles) + "\nInput Tensors:\n";
}

std::string kernel(const std::string& name, std::uint64_t cycles, const std::string& inputs,
                   const std::string& outputs) {
  return table_head(name, cycles) + inputs + "Output Tensors:\n" + outputs + kRule;
}

Problem table(const std::string& text) {
  input::File file = input::File::holding(text, "f");
  EXPECT_TRUE(is_g10_table(file));
  Problem problem = read_g10_table(file).problem;
  problem.machine = {10, 10, 0, 0};
  EXPECT_NO_THROW(find_liveness(problem));
  return problem;
}

// Each operation as in a plan's file, with its block's id and its time; "+" in front where it continues the one before.
std::string operations_of(const Problem& problem) {
  std::ostringstream out;
  for (const Operation& one : problem.operations) {
    out << (one.continues ? " +" : " ") << "mfrwx"[static_cast<std::size_t>(one.kind)];
    if (one.block != kNoBlock) out << problem.blocks[one.block].id;
    out << '@' << one.time;
  }
  return out.str().substr(1);
}

std::string table_refusal(const std::string& text) {
  input::File file = input::File::holding(text, "f");
  try {
    read_g10_table(file);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "";
}

TEST(G10Tables, KernelsFollowEachOtherAndTensorsLiveAsLongAsTheyAreNamed) {
  const Problem problem = table(kernel("Conv2d_Forward", 12, tensor(7, 100) + weight(1, 50), tensor(2, 300)) +
                                kernel("ReLU_Forward", 24, tensor(2, 300), tensor(3, 300)) +
                                kernel("Conv2d_Apply", 1, tensor(3, 300), weight(9, 50)));
  EXPECT_EQ(operations_of(problem), "m7@0 m2@0 r7@0 +r1@0 +w2@0 f7@10 m3@10 r2@10 +w3@10 f2@30 r3@30 +w9@30 f3@31");
  EXPECT_EQ(problem.period, 31) << "37 cycles, in whole nanoseconds";
  ASSERT_EQ(problem.blocks.size(), 5u);
  EXPECT_EQ(problem.blocks[0], (Block{.id = 7, .bytes = 100, .name = "input"}));
  EXPECT_EQ(problem.blocks[1], (Block{.id = 1, .bytes = 50, .persistent = true, .name = "weight"}));
  EXPECT_EQ(problem.blocks[2], (Block{.id = 2, .bytes = 300, .name = "Conv2d_Forward"}));
}

TEST(G10Tables, WhatIsInputAndOutputIsChangedInPlace) {
  const Problem problem =
      table(kernel("Apply_Grad", 12, tensor(1, 8) + weight(2, 8) + tensor(1, 8), weight(2, 8) + weight(2, 8)) +
            kernel("Add_MultiGredient", 12, tensor(3, 8), tensor(3, 8)));
  EXPECT_EQ(operations_of(problem), "m1@0 r1@0 +r2@0 +w2@0 f1@10 m3@10 r3@10 +w3@10 f3@20");
}

TEST(G10Tables, AKernelWithoutTensorsTakesItsTime) {
  EXPECT_EQ(operations_of(table(kernel("Wait", 12, "", "") + kernel("Fill", 12, tensor(5, 0), tensor(6, 4)))),
            "x@0 m6@10 w6@10 f6@20");
}

TEST(G10Tables, BlanksAreNoMatter) {
  const std::string text = kernel("A", 12, tensor(1, 8), tensor(2, 8)) + kernel("B", 12, tensor(2, 8), "");
  std::string other = "\xef\xbb\xbf\n \r\n";
  for (const char c : text) other += c == '\n' ? " \r\n\n" : std::string(1, c);
  EXPECT_EQ(table(other), table(text));
}

TEST(G10Tables, IsToldByItsFirstLine) {
  const auto is_table = [](const std::string& text) { return is_g10_table(input::File::holding(text, "f")); };
  EXPECT_TRUE(is_table("Kernel ID: 0, Name: A\n"));
  EXPECT_TRUE(is_table("\n  Kernel ID: 0"));
  EXPECT_FALSE(is_table(""));
  EXPECT_FALSE(is_table("Malloc 0xa0 1\nKernel ID: 0\n"));
  EXPECT_FALSE(is_table("{\"Kernel ID: \": 0}"));
  EXPECT_FALSE(is_table(tensor(1, 8))) << "tensors.config says nothing of kernels";
}

TEST(G10Tables, SaysWhatIsWrongOnWhichLine) {
  const std::string made = kernel("A", 12, "", tensor(1, 8));  // 7 lines
  const std::string head = "expected a kernel, such as Kernel ID: 0, Name: Conv2d_Forward, found ";
  const std::string time = "expected Execution Time: and a number from 0 to 1099511627776, found ";
  const std::string line = "expected a tensor, such as tensor1 Is weight (global)?: 0, Size in byte: 4096, or ";
  EXPECT_EQ(table_refusal(""), "f: line 0: " + head + "the end");
  EXPECT_EQ(table_refusal(made + "Malloc 0xa0 1\n"), "f: line 8: " + head + "Malloc 0xa0 1");
  EXPECT_EQ(table_refusal("Kernel ID: x, Name: A\n"), "f: line 1: " + head + "Kernel ID: x, Name: A");
  EXPECT_EQ(table_refusal("Kernel ID: 1\n"), "f: line 1: " + head + "Kernel ID: 1");
  EXPECT_EQ(table_refusal("Kernel ID: 1, Name: A\n"), "f: line 1: expected Parent OP ID: and a number, found the end");
  const std::string begun = "Kernel ID: 1, Name: A\nParent OP ID:2; Name: A\n";
  EXPECT_EQ(table_refusal(begun), "f: line 2: " + time + "the end");
  for (const std::string wrong : {"Execution Time: ", "Execution Time: -1", "Execution Time: 1.5",
                                  "Execution Time: 1099511627777", "Execution Time: 99999999999999999999"}) {
    const std::string shown = wrong.substr(0, wrong.find_last_not_of(' ') + 1);
    EXPECT_EQ(table_refusal(begun + wrong), "f: line 3: " + time + shown);
  }
  EXPECT_EQ(table_refusal(begun + "Execution Time: 5\nInputs:"), "f: line 4: expected Input Tensors:, found Inputs:");
  EXPECT_EQ(table_refusal(table_head("A", 5) + tensor(1, 8)), "f: line 5: expected Output Tensors:, found the end");
  EXPECT_EQ(table_refusal(table_head("A", 5) + kRule).find("f: line 5: " + line + "Output Tensors:, found ____"), 0u);
  EXPECT_EQ(table_refusal(table_head("A", 5) + "Output Tensors:\n" + tensor(1, 8)),
            "f: line 6: expected a rule of underscores, found the end");
  EXPECT_EQ(table_refusal(table_head("A", 5) + "Output Tensors:\n" + table_head("B", 5)),
            "f: line 6: " + line + "a rule of underscores, found Kernel ID: 0, Name: B");
  for (const std::string wrong :
       {"tensor", "tensorx Is weight (global)?: 0, Size in byte: 1", "tensor1 Is weight (global)?: 2, Size in byte: 1",
        "tensor1 Is weight (global)?: 0", "tensor1 Is weight (global)?: 0, Size in byte: -1",
        "tensor1 Is weight (global)?: 0, Size in byte: 1 x", "tensor1 Is weight (global)?: 10, Size in byte: 1",
        "tensor4611686018427387905 Is weight (global)?: 0"}) {
    EXPECT_EQ(table_refusal(table_head("A", 5) + wrong), "f: line 5: " + line + "Output Tensors:, found " + wrong);
  }
  const std::string as = "expected tensor1 as on line 6, found tensor1 Is weight (global)?: ";
  EXPECT_EQ(table_refusal(made + table_head("B", 5) + tensor(1, 9)).find("f: line 12: " + as + "0, Size in byte: 9"),
            0u);
  EXPECT_EQ(table_refusal(made + table_head("B", 5) + weight(1, 8)).find("f: line 12: " + as + "1, Size in byte: 8"),
            0u);
}

// Find_liveness counts sizes up to 2^59; there is a line for each tensor.
TEST(G10Tables, BoundsAreKept) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 38;
  EXPECT_EQ(table(kernel("A", 1, tensor(1, kMost), "")).blocks[0].bytes, kMost);
  EXPECT_EQ(table_refusal(table_head("A", 1) + tensor(1, kMost + 1))
                .find("f: line 5: expected a tensor of at most 274877906944 bytes, found tensor1 "),
            0u);
  const std::string expected = "expected a kernel table of G10's ";
  EXPECT_EQ(table_refusal("Kernel ID: 0, Name: " + std::string(1 << 17, 'A')),
            "f: line 1: " + expected + "in lines of at most 65536 bytes, found a longer one");
  EXPECT_EQ(table_refusal(std::string((1 << 21) + 1, '\n')),
            "f: line 2097153: " + expected + "of at most 2097152 lines, found more");
  std::string longest;
  const std::uint64_t cycles = std::uint64_t{1} << 40;
  for (int k = 0; k < 9830; ++k) longest += kernel("A", cycles, "", "");  // of 6 lines
  EXPECT_EQ(table(longest).operations.size(), 9830u);
  EXPECT_EQ(table_refusal(longest + kernel("A", cycles, "", "")),
            "f: line 58983: expected kernels that take 2^53 ns together at most, found Execution Time: 1099511627776");
}

// A terminal would execute it, and a plan's file could not hold it.
TEST(G10Tables, NamesAreWhatCanBePrinted) {
  EXPECT_EQ(table(kernel("\x1b[31mA\xff", 1, "", tensor(1, 8))).blocks[0].name, "?[31mA?");
}

// What is read of a table that was changed anywhere is an iteration, or it is refused.
TEST(G10Tables, MutationsDoNoHarm) {
  const std::string text = kernel("Conv2d_Forward", 12, tensor(7, 100) + weight(1, 50), tensor(2, 300)) +
                           kernel("ReLU_Forward", 24, tensor(2, 300), tensor(3, 300) + tensor(4, 0)) +
                           kernel("Conv2d_Backward", 48, tensor(3, 300) + tensor(2, 300), tensor(5, 50)) +
                           kernel("Apply_Grad", 6, tensor(5, 50) + weight(1, 50), weight(1, 50));
  std::mt19937_64 random(1);
  const std::string alphabet = "0123456789-,:;?_tTKIO()\n \xff";
  int read = 0, refused = 0;
  for (int k = 0; k < 5000; ++k) {
    std::string changed = text;
    for (std::uint64_t change = 1 + random() % 3; change > 0; --change) {
      const std::size_t at = random() % changed.size();
      const std::uint64_t how = random() % 4;
      if (how == 0) changed.erase(at, 1 + random() % 8);
      if (how == 1) changed.insert(at, 1, alphabet[random() % alphabet.size()]);
      if (how == 2) changed[at] = alphabet[random() % alphabet.size()];
      if (how == 3) {  // a line
        const std::size_t begin = changed.rfind('\n', at) + 1;
        changed.erase(begin, changed.find('\n', at) + 1 - begin);
      }
    }
    PlanFile plan;
    try {
      input::File file = input::File::holding(changed, "f");
      plan = read_g10_table(file);
    } catch (const Invalid&) {
      ++refused;
      continue;
    }
    ++read;
    plan.problem.machine = {1, 1, 0, 0};
    EXPECT_NO_THROW(find_liveness(plan.problem)) << changed;
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace memopt::swap
