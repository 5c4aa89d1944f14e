#include "shm/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace memopt::shm {
namespace {

constexpr std::uint64_t kKib = std::uint64_t{1} << 10;
constexpr std::uint64_t kMib = kKib << 10;
constexpr std::uint64_t kGib = kMib << 10;
constexpr std::uint64_t kTib = kGib << 10;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

// The table of options checks values where it is compiled, too.
static_assert(size_bytes("8GiB") == 8 * kGib && limit_bytes("60%", 1000) == 600);
static_assert(!is_size("8GB") && !is_limit("101%"));
static_assert(is_new_limit("none") && is_new_limit("60%") && is_new_limit("6GiB") && !is_limit("none"));
static_assert(!is_new_limit("") && !is_new_limit("None") && !is_new_limit("0"));
// The longest goes into a request.
static_assert(is_new_limit("0000000000000000000000000000000000000001"));
static_assert(!is_new_limit("00000000000000000000000000000000000000001"));

TEST(Sizes, BytesAndPowersOf1024) {
  EXPECT_EQ(size_bytes("1"), 1u);
  EXPECT_EQ(size_bytes("1048576"), kMib);
  EXPECT_EQ(size_bytes("64KiB"), 64 * kKib);
  EXPECT_EQ(size_bytes("64K"), 64 * kKib);
  EXPECT_EQ(size_bytes("500MiB"), 500 * kMib);
  EXPECT_EQ(size_bytes("8GiB"), 8 * kGib);
  EXPECT_EQ(size_bytes("8G"), 8 * kGib);
  EXPECT_EQ(size_bytes("2TiB"), 2 * kTib);
  EXPECT_EQ(size_bytes("007M"), 7 * kMib);
  EXPECT_EQ(size_bytes("512B"), 512u);
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("0.0001K"), 0u);
  EXPECT_FALSE(parse_bytes("1.5B") || parse_bytes("8GB") || parse_bytes("60%"));
}

TEST(Sizes, PartsOfAUnit) {
  EXPECT_EQ(size_bytes("1.5GiB"), 3 * kGib / 2);
  EXPECT_EQ(size_bytes("0.5K"), 512u);
  EXPECT_EQ(size_bytes("0.001K"), 1u);  // down to a whole byte
  EXPECT_EQ(size_bytes("0.999999T"), kTib * 999'999 / 1'000'000);
  EXPECT_EQ(size_bytes("1.250000M"), 5 * kMib / 4);
}

TEST(Sizes, NothingElse) {
  for (const char* text :
       {"",    " ",    "8GB", "8gb",  "8g",    "8giB", "8GIB",    "8Gi",       "B",     "8iB",    "100iB",
        "iB",  "GiB",  "G",   ".G",   ".5G",   "5.G",  "1.5",     "1.0",       "1..5G", "1.5.2G", "1,5G",
        "-1G", "+1G",  "1e9", "0x10", "8 GiB", " 8G",  "8G ",     "8GiBiB",    "8GG",   "8P",     "inf",
        "nan", "none", "0",   "0G",   "0.0G",  "60%",  "0.0001K", "1.0000001G"}) {
    EXPECT_FALSE(is_size(text)) << text;
    EXPECT_EQ(size_bytes(text), 0u) << text;
  }
  EXPECT_FALSE(is_size(std::string_view("8\0G", 3)));
}

TEST(Sizes, TooLargeIsRefused) {
  EXPECT_EQ(size_bytes(std::to_string(kMost)), kMost);
  EXPECT_FALSE(is_size(std::to_string(kMost + 1)));
  EXPECT_EQ(size_bytes("4194304T"), kMost);
  EXPECT_FALSE(is_size("4194304.1T"));
  EXPECT_FALSE(is_size("4194305T"));
  // Each would be small again if products were taken modulo 2^64.
  for (const char* text : {"18446744073709551616", "18446744073709551617", "40000000000000000000", "17179869184G",
                           "16777216T", "99999999T", "100000000000000000000000000000000000000"}) {
    EXPECT_FALSE(is_size(text)) << text;
  }
}

TEST(Limits, SizesAreLimits) {
  EXPECT_EQ(limit_bytes("8GiB", 1), 8 * kGib);
  EXPECT_EQ(limit_bytes("1048576", 0), kMib);
  EXPECT_EQ(limit_bytes("8GB", 80 * kGib), 0u);
}

TEST(Limits, PartsOfTheDevice) {
  EXPECT_EQ(limit_bytes("60%", 1000), 600u);
  EXPECT_EQ(limit_bytes("12.5%", 1000), 125u);
  EXPECT_EQ(limit_bytes("100%", 80 * kGib), 80 * kGib);
  EXPECT_EQ(limit_bytes("100.000%", 7), 7u);
  EXPECT_EQ(limit_bytes("50%", 7), 3u);  // down to a whole byte
  EXPECT_EQ(limit_bytes("0.000001%", 100'000'000), 1u);
  EXPECT_EQ(limit_bytes("33.333333%", 80 * kGib), 28633115020u);
  EXPECT_EQ(limit_bytes("100%", ~std::uint64_t{0}), ~std::uint64_t{0});
  EXPECT_EQ(limit_bytes("60%", 0), 0u);
}

TEST(Limits, OtherPartsAreNone) {
  for (const char* text : {"%", "0%", "0.0%", "-1%", "101%", "100.000001%", "100.005%", "1e1%", "60 %", " 60%", "60%%",
                           "%60", ".5%", "60.%", "60G%", "60%G", "0.0000001%", "18446744073709551716%"}) {
    EXPECT_FALSE(is_limit(text)) << text;
    EXPECT_EQ(limit_bytes(text, 1000), 0u) << text;
  }
}

// Against another way to the same number.
TEST(Limits, PercentagesAreExact) {
  for (std::uint64_t part = 1; part <= 100'000'000; part += 7'919'993) {
    const std::string decimals = std::to_string(part % 1'000'000);
    const std::string text =
        std::to_string(part / 1'000'000) + "." + std::string(6 - decimals.size(), '0') + decimals + "%";
    for (const std::uint64_t total : {std::uint64_t{1}, 3 * kMib + 1, 139 * kGib + 12345, ~std::uint64_t{0}}) {
      const auto expected = static_cast<std::uint64_t>(static_cast<unsigned __int128>(total) * part / 100'000'000);
      EXPECT_EQ(limit_bytes(text, total), expected) << text << " of " << total;
    }
  }
}

TEST(Limits, PartsMayBeMoreThanAll) {
  EXPECT_EQ(part_of(*parse_part("150%"), 1000), 1500u);
  EXPECT_EQ(part_of(*parse_part("0%"), 1000), 0u);
  EXPECT_EQ(part_of(*parse_part("100%"), kMost), kMost);
  EXPECT_FALSE(part_of(*parse_part("200%"), kMost));
  EXPECT_FALSE(parse_part("60") || parse_part("-1%") || parse_part("%"));
}

}  // namespace
}  // namespace memopt::shm
