#include "agent/process/options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace memopt::agent {
namespace {

TEST(Options, UnsetMeansDefault) {
  const char* const environment[] = {"HOME=/", "MEMOPTIMAL=1", nullptr};
  const Options options(environment);
  for (const shm::Option& option : shm::kOptions) {
    const auto id = static_cast<shm::OptionId>(&option - shm::kOptions.data());
    EXPECT_EQ(options.value(id), option.default_value) << option.name;
  }
  EXPECT_TRUE(options.complaints().empty());
  EXPECT_EQ(Options(nullptr).value(shm::OptionId::kLog), "warn");
}

TEST(Options, GoodValuesAreTaken) {
  const char* const environment[] = {"MEMOPT_DISABLE=1", "MEMOPT_LOG=debug", "MEMOPT_LOG_FILE=/tmp/a b", nullptr};
  const Options options(environment);
  EXPECT_TRUE(options.is_on(shm::OptionId::kDisable));
  EXPECT_EQ(options.value(shm::OptionId::kLog), "debug");
  EXPECT_EQ(options.value(shm::OptionId::kLogFile), "/tmp/a b");
  EXPECT_TRUE(options.complaints().empty());
}

TEST(Options, BadValuesAndUnknownNamesAreNamed) {
  const char* const environment[] = {
      "MEMOPT_DISABLE=yes", "MEMOPT_LOG=", "MEMOPT_LOG_FILE=", "MEMOPT_DISABLED=1", "MEMOPT_X", nullptr};
  const Options options(environment);
  EXPECT_FALSE(options.is_on(shm::OptionId::kDisable));
  EXPECT_EQ(options.value(shm::OptionId::kLog), "warn");
  ASSERT_EQ(options.complaints().size(), 5u);
  EXPECT_EQ(options.complaints()[0], "MEMOPT_DISABLE=yes: expected 0 or 1; using 0");
  EXPECT_EQ(options.complaints()[1], "MEMOPT_LOG=: expected off, error, warn, info or debug; using warn");
  EXPECT_EQ(options.complaints()[2], "MEMOPT_LOG_FILE=: expected a path; it is ignored");
  EXPECT_EQ(options.complaints()[3], "MEMOPT_DISABLED is not an option of memopt; it is ignored");
  EXPECT_EQ(options.complaints()[4], "MEMOPT_X is not an option of memopt; it is ignored");
}

TEST(Options, LimitsAreSizesOrParts) {
  const char* const good[] = {"MEMOPT_LIMIT=60%", "MEMOPT_HOST_LIMIT=1.5GiB", nullptr};
  const Options taken(good);
  EXPECT_EQ(taken.value(shm::OptionId::kLimit), "60%");
  EXPECT_EQ(taken.value(shm::OptionId::kHostLimit), "1.5GiB");
  EXPECT_TRUE(taken.complaints().empty());

  const char* const bad[] = {"MEMOPT_LIMIT=8GB", "MEMOPT_HOST_LIMIT=60%", nullptr};
  const Options refused(bad);
  EXPECT_EQ(refused.value(shm::OptionId::kLimit), "");
  EXPECT_EQ(refused.value(shm::OptionId::kHostLimit), "");
  ASSERT_EQ(refused.complaints().size(), 2u);
  EXPECT_EQ(refused.complaints()[0],
            "MEMOPT_LIMIT=8GB: expected a size (8GiB, 500M) or a part of the device (60%); it is ignored");
  EXPECT_EQ(refused.complaints()[1],
            "MEMOPT_HOST_LIMIT=60%: expected a size in bytes, or with K, M, G or T (8GiB, 500M); it is ignored");
}

TEST(Options, PinsAreASizeAndAFrame) {
  const auto terms = [](std::string_view text) { return shm::pin_terms(text); };
  ASSERT_TRUE(terms("size>=64MiB"));
  EXPECT_EQ(terms("size>=64MiB")->least_bytes, 64u << 20);
  EXPECT_EQ(terms("size>=64MiB")->frame, "");
  ASSERT_TRUE(terms("frame=a|b"));
  EXPECT_EQ(terms("frame=a|b")->least_bytes, shm::PinTerms::kNone);
  EXPECT_EQ(terms("frame=a|b")->frame, "a|b");
  ASSERT_TRUE(terms("size>=1K|frame=^lib.*:fill"));
  EXPECT_EQ(terms("size>=1K|frame=^lib.*:fill")->least_bytes, 1024u);
  EXPECT_EQ(terms("size>=1K|frame=^lib.*:fill")->frame, "^lib.*:fill");
  for (const char* const bad : {"", "64MiB", "size>64MiB", "size>=", "size>=60%", "size>=1K|",
                                "size>=1K|frame=", "frame=", "frame", "size>=1K frame=x"}) {
    EXPECT_FALSE(terms(bad)) << bad;
  }
  const char* const environment[] = {"MEMOPT_PIN=64MiB", nullptr};
  const Options refused(environment);
  EXPECT_EQ(refused.value(shm::OptionId::kPin), "");
  ASSERT_EQ(refused.complaints().size(), 1u);
  EXPECT_EQ(refused.complaints()[0],
            "MEMOPT_PIN=64MiB: expected size>=SIZE, frame=REGEX, or both with a bar between; it is ignored");
}

TEST(Options, WaitsAreSeconds) {
  const shm::Option& option = *shm::find_option("MEMOPT_SYNC_PLAN");
  const std::pair<const char*, std::uint32_t> good[] = {{"0", 0},       {"1", 10},    {"2", 2},    {"45", 45},
                                                        {"3600", 3600}, {"1s", 1},    {"60s", 60}, {"5min", 300},
                                                        {"500ms", 1},   {"1h", 3600}, {"0s", 0}};
  for (const auto& [text, seconds] : good) {
    EXPECT_TRUE(option.accepts(text)) << text;
    EXPECT_EQ(shm::wait_seconds(text), seconds) << text;
  }
  for (const char* const bad :
       {"", "3601", "9999", "00001", "-1", "10 s", "1.5", "yes", "5m", "1.1h", "61min", "s", "99999999999999999999h"}) {
    EXPECT_FALSE(option.accepts(bad)) << bad;
    EXPECT_EQ(shm::wait_seconds(bad), 0u) << bad;
  }
}

TEST(Options, RingsArePowersOfTwo) {
  const shm::Option& option = *shm::find_option("MEMOPT_RING");
  const std::pair<const char*, std::uint64_t> good[] = {{"128K", 128 << 10}, {"16M", 16 << 20},    {"16MiB", 16 << 20},
                                                        {"1G", 1 << 30},     {"1048576", 1 << 20}, {"0.5G", 512 << 20}};
  for (const auto& [text, bytes] : good) {
    EXPECT_TRUE(option.accepts(text)) << text;
    EXPECT_EQ(shm::ring_bytes(text), bytes) << text;
  }
  for (const char* const bad : {"", "64K", "2G", "3M", "16MB", "16", "50%", "-1M", "99999999999999999999999M"}) {
    EXPECT_FALSE(option.accepts(bad)) << bad;
  }
}

TEST(Options, SamplingsAreNumbers) {
  const shm::Option& option = *shm::find_option("MEMOPT_DEVICE_TIMES");
  for (const auto& [text, every] : {std::pair<const char*, std::uint32_t>{"0", 0}, {"16", 16}, {"65536", 65536}}) {
    EXPECT_TRUE(option.accepts(text)) << text;
    EXPECT_EQ(shm::sampling(text), every) << text;
  }
  for (const char* const bad : {"", "65537", "99999", "000016", "99999999999999999999", "-1", "1 "}) {
    EXPECT_FALSE(option.accepts(bad)) << bad;
  }
}

TEST(Options, EveryDefaultIsAcceptedOrEmpty) {
  for (const shm::Option& option : shm::kOptions) {
    EXPECT_TRUE(option.default_value.empty() || option.accepts(option.default_value)) << option.name;
    EXPECT_TRUE(option.name.starts_with(shm::kOptionPrefix)) << option.name;
    EXPECT_EQ(shm::find_option(option.name), &option);
  }
}

}  // namespace
}  // namespace memopt::agent
