#include "agent/operations/tensor_lists.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace memopt::agent {
namespace {

// PyTorch's structures, written down once more, for the compiler to lay out.
template <int kLists, int kTensors, int kBlocks, typename Index>
struct Plain {
  const void* addresses[kLists][kTensors];
  std::int64_t elements[kTensors];
  Index tensor_of_block[kBlocks];
  int chunk_of_block[kBlocks];
  int first;
};
template <typename Scalar, int kLists, int kTensors, int kBlocks, typename Index>
struct Scalars {
  const void* addresses[kLists][kTensors];
  std::int64_t elements[kTensors];
  Scalar scalars[kTensors];
  Index tensor_of_block[kBlocks];
  int chunk_of_block[kBlocks];
};
template <int kLists, int kTensors, int kSteps, int kBlocks, typename Index>
struct Steps {
  const void* addresses[kLists][kTensors];
  std::int64_t elements[kTensors];
  const void* steps[kSteps];
  Index tensor_of_block[kBlocks];
  int chunk_of_block[kBlocks];
  int first;
};
struct ComplexDouble {
  double real, imaginary;
};

std::string name_of(const std::string& type) {
  return "_ZN2at6native57_GLOBAL__N__7e105b8f_24_ForeachBinaryOpScalar_cu_86b9896c25multi_tensor_apply_kernelINS1_" +
         type + "NS1_21BinaryOpScalarFunctorIfLi1ELi1ELi0EEEJSt4plusIfEfEEEvT_T0_DpT1_";
}

// A launch: how many elements each tensor has, which chunk of the first one comes first, and how many thread blocks are
// wanted at most.
template <typename Structure>
std::uint32_t fill(Structure& to, const std::vector<std::int64_t>& elements, std::int64_t first_chunk,
                   std::size_t most) {
  std::uint32_t blocks = 0;
  for (std::size_t t = 0; t < elements.size(); ++t) {
    to.elements[t] = elements[t];
    const std::int64_t chunks = elements[t] / 65536 + (elements[t] % 65536 != 0);
    for (std::int64_t chunk = t == 0 ? first_chunk : 0; chunk < chunks && blocks < most; ++chunk) {
      to.tensor_of_block[blocks] = static_cast<std::remove_reference_t<decltype(to.tensor_of_block[0])>>(t);
      to.chunk_of_block[blocks] = static_cast<int>(chunk);
      ++blocks;
    }
  }
  return blocks;
}

template <typename Structure>
void expect_layout(const std::string& type, std::uint32_t lists) {
  const auto found = tensor_lists_of(name_of(type), sizeof(Structure));
  ASSERT_TRUE(found) << type;
  using S = Structure;
  EXPECT_EQ(found->lists, lists);
  EXPECT_EQ(found->tensors, sizeof(S::elements) / 8) << type;
  EXPECT_EQ(found->blocks, sizeof(S::chunk_of_block) / 4) << type;
  EXPECT_EQ(found->elements, offsetof(S, elements)) << type;
  EXPECT_EQ(found->tensor_of_block, offsetof(S, tensor_of_block)) << type;
  EXPECT_EQ(found->chunk_of_block, offsetof(S, chunk_of_block)) << type;
  EXPECT_EQ(found->index_bytes, sizeof(S::tensor_of_block) / found->blocks) << type;
  if constexpr (requires { &S::steps; }) {
    EXPECT_EQ(found->steps, offsetof(S, steps)) << type;
  } else {
    EXPECT_EQ(found->steps, 0u) << type;
  }
  EXPECT_FALSE(tensor_lists_of(name_of(type), sizeof(S) + 8)) << type;
  EXPECT_FALSE(tensor_lists_of(name_of(type), sizeof(S) - 8)) << type;
}

using Byte = unsigned char;
using Two = std::uint16_t;

TEST(TensorLists, LieWhereTheCompilerPutsThem) {
  expect_layout<Plain<1, 110, 320, Byte>>("18TensorListMetadataILi1EEE", 1);
  expect_layout<Plain<2, 64, 320, Byte>>("18TensorListMetadataILi2EEE", 2);
  expect_layout<Plain<3, 48, 320, Byte>>("18TensorListMetadataILi3EEE", 3);
  expect_layout<Plain<4, 36, 320, Byte>>("18TensorListMetadataILi4EEE", 4);
  expect_layout<Plain<5, 30, 320, Byte>>("18TensorListMetadataILi5EEE", 5);
  expect_layout<Steps<3, 48, 48, 320, Byte>>("32FusedOptimizerTensorListMetadataILi3EEE", 3);
  expect_layout<Steps<4, 36, 36, 320, Byte>>("32FusedOptimizerTensorListMetadataILi4EEE", 4);
  expect_layout<Steps<5, 30, 30, 320, Byte>>("32FusedOptimizerTensorListMetadataILi5EEE", 5);
  expect_layout<Scalars<bool, 1, 96, 320, Byte>>("28TensorListScalarListMetadataIbLi1EEE", 1);
  expect_layout<Scalars<std::int16_t, 2, 64, 320, Byte>>("28TensorListScalarListMetadataIsLi2EEE", 2);
  expect_layout<Scalars<float, 1, 96, 320, Byte>>("28TensorListScalarListMetadataIfLi1EEE", 1);
  expect_layout<Scalars<float, 3, 48, 320, Byte>>("28TensorListScalarListMetadataIfLi3EEE", 3);
  expect_layout<Scalars<double, 4, 36, 320, Byte>>("28TensorListScalarListMetadataIdLi4EEE", 4);
  expect_layout<Scalars<double, 2, 64, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIfEELi2EEE", 2);
  expect_layout<Scalars<ComplexDouble, 1, 72, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIdEELi1EEE", 1);
  expect_layout<Scalars<ComplexDouble, 2, 60, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIdEELi2EEE", 2);
  expect_layout<Scalars<ComplexDouble, 4, 36, 320, Byte>>("28TensorListScalarListMetadataIN3c107complexIdEELi4EEE", 4);
  expect_layout<Plain<1, 770, 2240, Two>>("18TensorListMetadataILi1ELb1EEE", 1);
  expect_layout<Scalars<float, 2, 448, 2240, Two>>("28TensorListScalarListMetadataIfLi2ELb1EEE", 2);
  expect_layout<Steps<4, 252, 252, 2240, Two>>("32FusedOptimizerTensorListMetadataILi4ELb1EEE", 4);
}

TEST(TensorLists, OtherKernelsHaveNone) {
  const std::uint32_t bytes = sizeof(Plain<1, 110, 320, Byte>);
  ASSERT_TRUE(tensor_lists_of(name_of("18TensorListMetadataILi1EEE"), bytes));
  for (const std::string& name :
       {std::string(), std::string("_ZN2at6native25multi_tensor_apply_kernelI"),
        std::string("_ZN2at6native25multi_tensor_apply_kernelINS1_"),
        std::string("_ZN2at6native25multi_tensor_apply_kernelINS"), name_of("18TensorListMetadataILi0EEE"),
        name_of("18TensorListMetadataILi6EEE"), name_of("18TensorListMetadataILi11EE"),
        name_of("18TensorListMetadataILi2EEE"), name_of("18TensorListMetadataILi"),
        name_of("28TensorListScalarListMetadataIfEE"), name_of("17OtherListMetadataILi1EEE"),
        // Somebody else's structure of that name has other members.
        std::string("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi1EE"),
        std::string("_ZN4apex25multi_tensor_apply_kernelINS_18TensorListMetadataILi1EEE")}) {
    EXPECT_FALSE(tensor_lists_of(name, bytes)) << name;
  }
}

class Contents : public testing::Test {
 protected:
  using Structure = Plain<4, 36, 320, Byte>;
  Contents() { std::memset(&structure_, 0xA5, sizeof(structure_)); }
  std::uint32_t used(std::uint32_t blocks) const { return tensors_in_use(lists_, &structure_, blocks); }

  const TensorLists lists_ = *tensor_lists_of(name_of("18TensorListMetadataILi4EEE"), sizeof(Structure));
  Structure structure_;
};

TEST_F(Contents, AreUsedAsFarAsThreadBlocksNameTensors) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::memset(&structure_, static_cast<int>(random() % 256), sizeof(structure_));
    std::vector<std::int64_t> elements(1 + random() % 36);
    for (std::int64_t& count : elements) {
      // Many exactly as large as some chunks.
      count = random() % 3 == 0 ? static_cast<std::int64_t>(65536 * (1 + random() % 3))
                                : static_cast<std::int64_t>(1 + random() % (6 * 65536));
    }
    const std::int64_t chunks = (elements[0] + 65535) / 65536;
    const std::uint32_t blocks =
        fill(structure_, elements, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(chunks)),
             1 + random() % 320);
    const std::uint32_t expected = structure_.tensor_of_block[blocks - 1] + 1u;
    ASSERT_EQ(used(blocks), expected) << "round " << round;
  }
}

TEST_F(Contents, OfAnotherKindAreNotUnderstood) {
  const std::uint32_t blocks = fill(structure_, {100'000, 65536, 200'000}, 0, 320);
  ASSERT_EQ(blocks, 7u);
  ASSERT_EQ(used(blocks), 3u);
  EXPECT_EQ(used(blocks - 1), 3u) << "a tensor may end in the next launch";
  EXPECT_EQ(used(0), 0u);
  EXPECT_EQ(used(321), 0u);
  EXPECT_EQ(tensors_in_use(lists_, nullptr, blocks), 0u);
  const Structure good = structure_;
  const auto refused = [&](auto&& change) {
    structure_ = good;
    change(structure_);
    return used(blocks) == 0;
  };
  EXPECT_TRUE(refused([](Structure& s) { s.tensor_of_block[0] = 1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.tensor_of_block[2] = 2; }));
  EXPECT_TRUE(refused([](Structure& s) { s.tensor_of_block[3] = 36; }));
  EXPECT_TRUE(refused([](Structure& s) { s.tensor_of_block[5] = 1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.chunk_of_block[0] = -1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.chunk_of_block[0] = 2; }));
  EXPECT_TRUE(refused([](Structure& s) { s.chunk_of_block[1] = 0; }));
  EXPECT_TRUE(refused([](Structure& s) { s.chunk_of_block[2] = 1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.chunk_of_block[6] = 4; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[0] = 0; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[0] = -1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[0] = 65536; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[1] = 65537; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[2] = 196'608; }));
}

// Each tensor has a thread block of its own: 36 of them and no more.
TEST_F(Contents, MayBeFull) { EXPECT_EQ(used(fill(structure_, std::vector<std::int64_t>(36, 1), 0, 320)), 36u); }

TEST(TensorLists, OfManyTensorsHaveIndicesOfTwoBytes) {
  using Structure = Plain<1, 770, 2240, Two>;
  const auto lists = tensor_lists_of(name_of("18TensorListMetadataILi1ELb1EEE"), sizeof(Structure));
  ASSERT_TRUE(lists);
  const auto structure = std::make_unique<Structure>();
  EXPECT_EQ(tensors_in_use(*lists, structure.get(), fill(*structure, std::vector<std::int64_t>(600, 70'000), 0, 2240)),
            600u);
}

// PyTorch's structure of a concatenation, for the compiler to lay out.
template <int kInputs, int kStrides>
struct Inputs {
  const void* addresses[kInputs];
  unsigned offset[kInputs];
  unsigned size[kInputs];
  unsigned elements[kInputs];
  bool contiguous[kInputs];
  struct {
    unsigned sizes[4];
    unsigned strides[4];
  } strides[kStrides];
};

std::string cat(const std::string& variant, const std::string& arguments) {
  return "_ZN2at6native40_GLOBAL__N__f1f992fe_8_Shape_cu_49f7391c" + variant + "INS1_10OpaqueTypeILj4EEE" + arguments +
         "EvPT_NS1_25CatArrInputTensorMetadataIS5_T0_XT2_EXT3_EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_";
}

TEST(CatInputs, AreOfAsManyAsTheNameSays) {
  const auto contiguous =
      cat_inputs_of(cat("35CatArrayBatchedCopy_alignedK_contig", "jLi1ELi128ELi1ELi16E"), sizeof(Inputs<128, 1>));
  ASSERT_TRUE(contiguous);
  EXPECT_EQ(contiguous->inputs, 128u);
  const auto strided = cat_inputs_of(cat("19CatArrayBatchedCopy", "jLi4ELi64ELi64E"), sizeof(Inputs<64, 64>));
  ASSERT_TRUE(strided);
  EXPECT_EQ(strided->inputs, 64u);
  const std::string name = cat("26CatArrayBatchedCopy_contig", "jLi3ELi128ELi1E");
  EXPECT_TRUE(cat_inputs_of(name, sizeof(Inputs<128, 1>)));
  EXPECT_FALSE(cat_inputs_of(name, sizeof(Inputs<128, 1>) + 8));
  EXPECT_FALSE(cat_inputs_of(name, sizeof(Inputs<128, 1>) - 8));
  for (const std::string& other :
       {std::string(), cat("19CatArrayBatchedCopy", "mLi1ELi128ELi1E"), cat("19CatArrayBatchedCopy", "jLi1ELi128E"),
        cat("19CatArrayBatchedCopy", "jLi5ELi128ELi1E"), cat("19CatArrayBatchedCopy", "jLi1ELi0ELi1E"),
        cat("19CatArrayBatchedCopy", "jLi1ELi128ELi"), cat("13SomethingElse", "jLi1ELi128ELi1E"),
        "_ZN4mine" + name.substr(13)}) {
    EXPECT_FALSE(cat_inputs_of(other, sizeof(Inputs<128, 1>))) << other;
  }
}

class Concatenation : public testing::Test {
 protected:
  using Structure = Inputs<128, 1>;
  // Of inputs with so many rows of 24 elements.
  void fill(const std::vector<unsigned>& rows) {
    std::memset(&structure_, 0xA5, sizeof(structure_));
    unsigned offset = 300;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      structure_.offset[i] = offset;
      structure_.size[i] = rows[i];
      structure_.elements[i] = rows[i] * 24;
      offset += rows[i];
    }
  }
  bool are(std::uint32_t count) const { return are_inputs({128}, &structure_, count); }

  Structure structure_;
};

TEST_F(Concatenation, IsOfInputsOneBehindTheOther) {
  fill({3, 1, 0, 700, 2});
  EXPECT_TRUE(are(5));
  EXPECT_TRUE(are(1));
  EXPECT_FALSE(are(0));
  EXPECT_FALSE(are(6)) << "what is behind was not written";
  EXPECT_FALSE(are(129));
  EXPECT_FALSE(are_inputs({128}, nullptr, 5));
  const Structure good = structure_;
  const auto refused = [&](auto&& change) {
    structure_ = good;
    change(structure_);
    return !are(5);
  };
  EXPECT_TRUE(refused([](Structure& s) { ++s.offset[1]; }));
  EXPECT_TRUE(refused([](Structure& s) { s.offset[4] = 0; }));
  EXPECT_TRUE(refused([](Structure& s) { s.size[2] = 1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[2] = 24; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[0] += 1; }));
  EXPECT_TRUE(refused([](Structure& s) { s.elements[4] *= 2; }));
  fill({0, 0});
  EXPECT_FALSE(are(2)) << "nothing says that it is one";
  fill(std::vector<unsigned>(128, 5));
  EXPECT_TRUE(are(128));
}

}  // namespace
}  // namespace memopt::agent
