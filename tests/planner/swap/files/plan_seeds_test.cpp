// The fuzzer's seeds, and simple mutations of them, without libFuzzer: the fuzzer's own function must come back.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "planner/swap/files/plan_file.h"
#include "planner/swap/simulation/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::getenv("PLAN_SEEDS"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

void feed(const std::string& text) {
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), 0);
}

TEST(PlanSeeds, AreReadAndMostHold) {
  const auto all = seeds();
  ASSERT_GE(all.size(), 5U);
  std::size_t held = 0;
  for (const std::string& text : all) {
    feed(text);
    const memopt::swap::PlanFile plan = memopt::swap::parse_plan(text);
    held += !verify(plan.problem, plan.decisions).fault;
  }
  EXPECT_GE(held, all.size() - 1);
}

TEST(PlanSeeds, MutationsDoNoHarm) {
  std::mt19937_64 random(1);
  const std::string alphabet = "0123456789-.,:[]{}\"eEntrfmwx \xff";
  for (const std::string& seed : seeds()) {
    for (int k = 0; k < 1500; ++k) {
      std::string text = seed;
      for (std::uint64_t change = 1 + random() % 3; change > 0; --change) {
        const std::size_t at = random() % text.size();
        const std::uint64_t how = random() % 4;
        if (how == 0) text.erase(at, 1 + random() % 8);
        if (how == 1) text.insert(at, 1, alphabet[random() % alphabet.size()]);
        if (how == 2) text[at] = alphabet[random() % alphabet.size()];
        if (how == 3) text.insert(at, text.substr(random() % text.size(), random() % 32));
        if (text.empty()) break;
      }
      feed(text);
    }
  }
}

}  // namespace
