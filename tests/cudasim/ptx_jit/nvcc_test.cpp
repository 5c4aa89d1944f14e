// What nvcc makes of kernels.cu, interpreted and in native code.
#include <fstream>
#include <random>
#include <sstream>

#include "both.h"

namespace {

using ptx_both::Bytes;
using ptx_both::bytes_of;
using ptx_both::Kernel;

std::string kernels() {
  std::ifstream file(KERNELS_PTX);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::uint32_t> random_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t& n : numbers) n = static_cast<std::uint32_t>(random());
  return numbers;
}
std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float& n : numbers) n = static_cast<float>(static_cast<std::int32_t>(random())) / 65536;
  return numbers;
}

TEST(Nvcc, VectorAdd) {
  Kernel kernel(kernels(), "vector_add");
  constexpr std::uint32_t kCount = 1000;
  const auto a = random_floats(kCount, 1), b = random_floats(kCount, 2);
  kernel.run({{4, 1, 1}, {256, 1, 1}}, {bytes_of(a), bytes_of(b), Bytes(4 * kCount)}, {kCount});
  EXPECT_EQ(kernel.compiled.interpreted, "");
  const auto c = kernel.result<float>(2);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(c[i], a[i] + b[i]) << i;
}

TEST(Nvcc, SumOfBlocksWithBarriers) {
  Kernel kernel(kernels(), "block_sum");
  kernel.run({{5, 1, 1}, {256, 1, 1}}, {bytes_of(random_floats(1200, 3)), Bytes(4 * 5)}, {1200});
  EXPECT_EQ(kernel.compiled.interpreted, "");
}

TEST(Nvcc, DivergentLoops) {
  Kernel kernel(kernels(), "collatz");
  kernel.run({{3, 1, 1}, {100, 1, 1}}, {bytes_of(random_numbers(300, 4)), Bytes(4 * 300)}, {290});
  EXPECT_EQ(kernel.compiled.interpreted, "");
}

TEST(Nvcc, OperationsOfWarps) {
  Kernel kernel(kernels(), "warp_sum");
  kernel.run({{4, 1, 1}, {64, 1, 1}}, {bytes_of(random_numbers(250, 5)), Bytes(4 * 80)}, {250});
}

TEST(Nvcc, Calls) {
  Kernel kernel(kernels(), "calls");
  kernel.run({{2, 1, 1}, {96, 1, 1}}, {bytes_of(random_numbers(192, 6)), Bytes(4 * 192)}, {180});
}

TEST(Nvcc, SharedMemoryOfTwoDimensions) {
  Kernel kernel(kernels(), "transpose");
  kernel.run({{3, 3, 1}, {16, 16, 1}}, {bytes_of(random_floats(40 * 40, 7)), Bytes(4 * 40 * 40)}, {40});
  EXPECT_EQ(kernel.compiled.interpreted, "");
}

TEST(Nvcc, LocalMemory) {
  Kernel kernel(kernels(), "locals");
  kernel.run({{2, 1, 1}, {64, 1, 1}}, {bytes_of(random_numbers(128, 8)), Bytes(4 * 128)}, {120});
}

TEST(Nvcc, Bytes) {
  Kernel kernel(kernels(), "bytes");
  kernel.run({{2, 1, 1}, {64, 1, 1}}, {bytes_of(random_numbers(32, 9)), Bytes(2 * 128)}, {120});
}

TEST(Nvcc, Switches) {
  Kernel kernel(kernels(), "choose");
  kernel.run({{2, 1, 1}, {64, 1, 1}}, {bytes_of(random_numbers(128, 10)), Bytes(4 * 128)}, {120});
}

}  // namespace
