#include "tools/memoptctl/report/names.h"

#include <gtest/gtest.h>

namespace memopt::tools {
namespace {

TEST(KernelName, IsWhatPeopleKnowTheKernelBy) {
  EXPECT_EQ(kernel_name("_Z6im2colPKfPfi"), "im2col(float const*, float*, int)");
  EXPECT_EQ(kernel_name("cudasim_matrix_product"), "cudasim_matrix_product");
  EXPECT_EQ(kernel_name(""), "");
}

TEST(KernelName, OfOneThatWasCutOffIsReadAsFarAsItGoes) {
  EXPECT_EQ(kernel_name("_ZN2at6native29vectorized_elementwise_k~45304367cfc28b3a"),
            "at::native::vectorized_elementwise_k…4530");
  EXPECT_EQ(kernel_name("_ZN2at55_GLOBAL__N__0123456789~0123"), "at::(anonymous)…0123");
}

// Lengths that lie, and digits without an end.
TEST(KernelName, IsLeftAsItIsWhereItIsNoName) {
  EXPECT_EQ(kernel_name("_Z"), "_Z");
  EXPECT_EQ(kernel_name("_ZN~"), "_ZN~");
  EXPECT_EQ(kernel_name("_ZN99999999999999999999999999x~ab"), "x…ab");
  EXPECT_EQ(kernel_name("_Z<script>"), "_Z<script>");
}

TEST(Names, EqualOnesHaveOneNumber) {
  Names names;
  EXPECT_EQ(names.number("a"), 0u);
  EXPECT_EQ(names.number("b"), 1u);
  EXPECT_EQ(names.number("a"), 0u);
  EXPECT_EQ(names.all(), (std::vector<std::string>{"a", "b"}));
}

TEST(Stacks, EqualOnesHaveOneNumber) {
  Stacks stacks;
  for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(stacks.number({i, i + 1}), i);
  EXPECT_EQ(stacks.number({7, 8}), 7u);
  EXPECT_EQ(stacks.size(), 1000u);
  EXPECT_EQ(stacks[7], (std::vector<std::uint32_t>{7, 8}));
}

}  // namespace
}  // namespace memopt::tools
