#include "agent/process/open_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace memopt::agent {
namespace {

struct Slot {
  std::uint64_t key = 0;
  std::uint64_t value = 0;

  // Few homes, so that chains form, wrap around and are closed again.
  static std::size_t home(std::uint64_t key) noexcept { return key % 40 - 20; }
};
using Table = OpenTable<Slot>;

constinit Table g_table;  // needs no constructor to run

TEST(OpenTable, IsEmptyAtFirst) {
  EXPECT_EQ(g_table.size(), 0u);
  EXPECT_EQ(g_table.find(1), nullptr);
  EXPECT_EQ(g_table.find(0), nullptr);
  EXPECT_TRUE(g_table.slots().empty());
  g_table.clear();
}

TEST(OpenTable, ForgetsAndBeginsAnew) {
  Table table;
  ASSERT_TRUE(table.reserve_one());
  table.insert({7, 70});
  const auto slots = table.slots();
  table.forget();
  EXPECT_EQ(table.find(7), nullptr);
  ASSERT_TRUE(table.reserve_one());
  table.insert({8, 80});
  EXPECT_EQ(table.find(8)->value, 80u);
  table.release();
  EXPECT_EQ(table.find(8), nullptr);
  munmap(slots.data(), slots.size_bytes());
}

class OpenTableModel : public testing::TestWithParam<unsigned> {};

TEST_P(OpenTableModel, AgreesWithAMap) {
  std::mt19937_64 random(GetParam());
  Table table;
  std::unordered_map<std::uint64_t, std::uint64_t> model;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t key = 1 + random() % 900;
    Slot* const found = table.find(key);
    const auto known = model.find(key);
    ASSERT_EQ(found != nullptr, known != model.end());
    if (found != nullptr) {
      ASSERT_EQ(found->value, known->second);
      table.erase(found);
      model.erase(known);
    } else {
      ASSERT_TRUE(table.reserve_one());
      const std::uint64_t value = random();
      table.insert({key, value});
      model.emplace(key, value);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  std::size_t seen = 0;
  for (const Slot& slot : table.slots()) {
    if (slot.key == 0) continue;
    ++seen;
    ASSERT_EQ(model.at(slot.key), slot.value);
  }
  EXPECT_EQ(seen, model.size());
  table.clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find(model.begin()->first), nullptr);
  table.release();
}
INSTANTIATE_TEST_SUITE_P(Seeds, OpenTableModel, testing::Range(1u, 5u));

}  // namespace
}  // namespace memopt::agent
