#include <array>
#include <cstring>
#include <string>

#include "device.h"
#include "fact.h"

namespace facts {
namespace {

constexpr std::size_t kWords = sizeof(CUtensorMap) / sizeof(std::uint64_t);
using Encoded = std::array<std::uint64_t, kWords>;

Encoded encode(CUdeviceptr address, CUtensorMapDataType type, unsigned element, unsigned rank) {
  alignas(64) CUtensorMap map;
  std::memset(&map, 0, sizeof map);
  const cuuint64_t sizes[5] = {64, 32, 8, 4, 2};
  cuuint64_t strides[4] = {64ull * element, 64ull * 32 * element, 64ull * 32 * 8 * element,
                           64ull * 32 * 8 * 4 * element};
  const cuuint32_t box[5] = {16, 8, 1, 1, 1};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CALL(cuTensorMapEncodeTiled, &map, type, rank, reinterpret_cast<void*>(address), sizes, strides, box, steps,
       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  Encoded words;
  std::memcpy(words.data(), &map, sizeof map);
  return words;
}

std::string hex(std::uint64_t word) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(word));
  return text;
}

Json hex(const Encoded& words) {
  Json all = Json::array();
  for (const std::uint64_t word : words) all.push_back(hex(word));
  return all;
}

}  // namespace

void tensor_map(const Settings& settings, Findings& findings) {
  if (driver().cuTensorMapEncodeTiled == nullptr) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  const Device device;
  CUdeviceptr allocation = 0;
  const std::size_t bytes = settings.small ? std::size_t{4} << 20 : std::size_t{1} << 30;
  CALL(cuMemAlloc, &allocation, bytes);
  // Whatever bit below is turned, the address stays within the allocation.
  const CUdeviceptr block = (allocation + bytes / 2 - 1) / (bytes / 2) * (bytes / 2);
  for (const auto& [name, type, element, rank] : {std::tuple{"float32_rank_2", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4u, 2u},
                                                  std::tuple{"float16_rank_3", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2u, 3u},
                                                  std::tuple{"uint8_rank_5", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1u, 5u}}) {
    findings.attempt(name, [&, type = type, element = element, rank = rank] {
      const Encoded base = encode(block, type, element, rank);
      Json words_equal = Json::array();
      for (std::size_t i = 0; i < kWords; ++i) {
        if (base[i] == block) words_equal.push_back(i);
      }
      // Which bits of the map follow the bits of the address: one bit of the address at a time.
      Encoded touched{};
      bool plain = true;  // each address bit is the same bit of word 0
      unsigned bits = 0;
      for (std::uint64_t bit = 16; bit < bytes / 4; bit <<= 1) {
        const Encoded moved = encode(block ^ bit, type, element, rank);
        ++bits;
        for (std::size_t i = 0; i < kWords; ++i) {
          touched[i] |= base[i] ^ moved[i];
          plain = plain && (base[i] ^ moved[i]) == (i == 0 ? bit : 0);
        }
      }
      return Json{{"address", hex(block)},
                  {"map", hex(base)},
                  {"words_equal_to_the_address", words_equal},
                  {"bits_that_follow_the_address", hex(touched)},
                  {"address_bits_tried", bits},
                  {"each_is_the_same_bit_of_word_0", plain}};
    });
  }
}

}  // namespace facts
