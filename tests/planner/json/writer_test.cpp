// What is written is JSON that reads as what was meant, with the lines that were asked for.
#include "planner/json/writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "planner/json/tree.h"

namespace memopt::json {
namespace {

std::string written(const std::function<void(Writer&)>& write) {
  std::ostringstream out;
  Writer writer(out);
  write(writer);
  return std::move(out).str();
}

template <typename Value>
std::string spelled(const Value& value) {
  return written([&](Writer& writer) { writer.value(value); });
}

TEST(JsonWriter, ElementsAreSpacedAsTheirListSays) {
  const std::string text = written([](Writer& writer) {
    writer.begin_object({.before = "\n", .between = "\n", .colon = " ", .after = "\n"});
    writer.member("name", "x");
    writer.name("list");
    writer.begin_list({.before = "\n", .between = "\n", .after = "\n"});
    for (std::uint64_t i = 0; i < 2; ++i) {
      writer.begin_list();
      writer.value('m');
      writer.value(i);
      writer.end_list();
    }
    writer.end_list();
    writer.name("empty");
    writer.begin_list({.before = "\n", .between = "\n", .after = "\n"});
    writer.end_list();
    writer.between(" ");
    writer.member("same_line", true);
    writer.name("none");
    writer.null();
    writer.end_object();
  });
  EXPECT_EQ(text,
            "{\n\"name\": \"x\",\n\"list\": [\n[\"m\",0],\n[\"m\",1]\n],\n\"empty\": [\n], \"same_line\": true, "
            "\"none\": null\n}");
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST(JsonWriter, NumbersReadAsTheSame) {
  EXPECT_EQ(spelled(std::uint64_t{18446744073709551615U}), "18446744073709551615");
  EXPECT_EQ(spelled(std::int64_t{-1}), "-1");
  EXPECT_EQ(spelled(47200.0), "47200");
  EXPECT_EQ(spelled(-3.0), "-3");
  EXPECT_EQ(spelled(9007199254740991.0), "9007199254740991");
  EXPECT_EQ(spelled(12.150668286755772), "12.150668286755772");
  EXPECT_EQ(spelled(std::numeric_limits<double>::infinity()), "null");
  std::mt19937_64 random(1);
  for (int k = 0; k < 10'000; ++k) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(nlohmann::json::parse(spelled(value)).get<double>(), value);
  }
}

TEST(JsonWriter, DigitsAreFixedWhereTheyAreAskedFor) {
  const auto fixed = [](double value, int digits) {
    return written([&](Writer& writer) { writer.fixed(value, digits); });
  };
  EXPECT_EQ(fixed(1, 4), "1.0000");
  EXPECT_EQ(fixed(0.00005, 4), "0.0001");
  EXPECT_EQ(fixed(123456.75, 1), "123456.8");
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 1).size(), 311U);
  EXPECT_EQ(fixed(std::numeric_limits<double>::quiet_NaN(), 1), "null");
}

TEST(JsonWriter, StringsReadAsTheSame) {
  for (const std::string text :
       {"plain", "", "a \"quoted\\ one\"", "line\nand tab\t", "gr\xc3\xbc\xc3\x9f", "\x01\x1f", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(nlohmann::json::parse(spelled(text)).get<std::string>(), text);
  }
  EXPECT_EQ(nlohmann::json::parse(spelled(std::string("no UTF-8: \xff"))).get<std::string>(), "no UTF-8: \xef\xbf\xbd");
}

}  // namespace
}  // namespace memopt::json
