#include "planner/exchange/pickle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace memopt::exchange {
namespace {

std::string refusal(std::string_view bytes) {
  try {
    const Pickle pickle(bytes);
  } catch (const PickleError& error) {
    return error.what();
  }
  return "";
}

TEST(Pickle, WhatIsWrittenIsRead) {
  std::ostringstream out;
  PickleWriter writer(out);
  const std::int64_t numbers[] = {0, 1, 255, 256, 65535, 65536, -1, -129, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  writer.begin_dict();
  writer.value("numbers");
  writer.begin_list();
  for (const std::int64_t number : numbers) writer.value(number);
  writer.value(~std::uint64_t{0});
  writer.end_list();
  const std::uint32_t list = writer.remember();
  writer.member("text", std::string(300, 'x'));
  writer.value("again");
  writer.refer(list);
  writer.member("true", true);
  writer.value("none");
  writer.none();
  writer.end_dict();
  writer.finish();
  const std::string bytes = out.str();
  const Pickle pickle(bytes);
  const auto found = pickle.elements(pickle.find(pickle.root(), "numbers").value());
  ASSERT_EQ(found.size(), 13u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(pickle.integer(found[i]), numbers[i]);
  EXPECT_EQ(pickle.integer(found[12]), -1);  // the same 64 bits
  EXPECT_EQ(pickle.text(pickle.find(pickle.root(), "text").value()), std::string(300, 'x'));
  EXPECT_EQ(pickle.find(pickle.root(), "again"), pickle.find(pickle.root(), "numbers"));
  EXPECT_EQ(pickle.kind(pickle.find(pickle.root(), "none").value()), Pickle::Kind::kNone);
  EXPECT_FALSE(pickle.find(pickle.root(), "some"));
}

// Nothing that a pickle names is run: what would be, is an error.
TEST(Pickle, CodeIsRefused) {
  const std::string_view code[] = {
      "\x80\x04"
      "cos\nsystem\n(X\x02\x00\x00\x00lstR.",
      "\x80\x02"
      "ios\nsystem\n.",
      "\x80\x04\x8c\x02os\x8c\x06system\x93.",
      "\x80\x02"
      "}\x85R.",
      "\x80\x02}b.",
      "\x80\x02P1\n.",
      "\x80\x02NQ.",
      "\x80\x02))\x81.",
      "\x80\x04)}\x92.",
      "\x80\x02\x82\x01."};
  for (const std::string_view bytes : code) {
    EXPECT_NE(refusal(bytes).find("names code to be run"), std::string::npos) << testing::PrintToString(bytes);
  }
}

TEST(Pickle, SaysWhatIsWrong) {
  using namespace std::string_view_literals;
  const std::pair<std::string_view, const char*> wrong[] = {
      {""sv, "expected a pickle of protocol 2 to 5"},
      {"N."sv, "expected a pickle of protocol 2 to 5"},
      {"\x80\x06N."sv, "expected a pickle of protocol 2 to 5"},
      {"\x80\x04"sv, "byte 2: the pickle is cut off"},
      {"\x80\x04X\xff\xff\xff\xff"sv, "cut off"},
      {"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"sv, "cut off"},
      {"\x80\x04."sv, "expected one value at its end"},
      {"\x80\x04("sv, "cut off"},
      {"\x80\x04(N."sv, "expected one value at its end"},
      {"\x80\x04"
       "e."sv,
       "a mark is missing"},
      {"\x80\x04(Na."sv, "a value is missing"},
      {"\x80\x04N(Ne."sv, "expected a list to add to"},
      {"\x80\x04](Nu."sv, "a value is missing"},
      {"\x80\x04](NNu."sv, "expected a dict to add to"},
      {"\x80\x04}(Nu."sv, "a value is missing"},
      {"\x80\x04h\x05."sv, "was not remembered"},
      {"\x80\x04Nq\x05."sv, "one after the other"},
      {"\x80\x04\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01."sv, "at most 64 bits"},
      {"\x80\x04\x8f."sv, "of a kind that snapshots do not have (opcode 143)"}};
  for (const auto& [bytes, message] : wrong) {
    EXPECT_NE(refusal(bytes).find(message), std::string::npos)
        << testing::PrintToString(bytes) << ": " << refusal(bytes);
  }
}

// A list may be in itself; what is read of it has an end.
TEST(Pickle, ValuesMayBeInThemselves) {
  const Pickle pickle(
      std::string_view("\x80\x04]\x94h\x00"
                       "a.",
                       8));
  ASSERT_EQ(pickle.elements(pickle.root()).size(), 1u);
  EXPECT_EQ(pickle.elements(pickle.root())[0], pickle.root());
}

TEST(Pickle, AnyBytesAreReadOrRefused) {
  std::mt19937_64 random(2);
  static constexpr std::string_view kOpcodes =
      "(.012NJKMGTUXBCaed}l]t)suqrhj\x80\x85\x86\x87\x88\x89\x8a\x8c\x8d\x8e\x94\x95";
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes("\x80\x04");
    for (std::uint64_t left = random() % 40; left > 0; --left) {
      bytes += random() % 4 == 0 ? static_cast<char>(random() % 5) : kOpcodes[random() % kOpcodes.size()];
    }
    bytes += '.';
    try {
      const Pickle pickle(bytes);
      for (const Pickle::Value value : pickle.elements(pickle.root())) pickle.text(value);
      pickle.find(pickle.root(), "segments");
    } catch (const PickleError&) {
    }
  }
}

}  // namespace
}  // namespace memopt::exchange
