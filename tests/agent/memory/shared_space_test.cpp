// Room in windows that small blocks share, against the plainest way to look for it.
#include "agent/memory/shared_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "agent/memory/blocks.h"
#include "agent/memory/shared_windows.h"

namespace memopt::agent {
namespace {

constexpr std::uint64_t kUnit = 512;

Release used_by(StreamSlot slot, std::uint64_t position) {
  Release release;
  release.add(StreamUse{slot, position});
  return release;
}

// A window of which each unit is known.
class Model {
 public:
  explicit Model(std::size_t units) : units_(units) {}

  // The lowest run that is large enough; the number of units if there is none.
  std::size_t find(std::size_t count) const {
    std::size_t free = 0;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      free = units_[i].owner == nullptr ? free + 1 : 0;
      if (free == count) return i + 1 - count;
    }
    return units_.size();
  }
  std::size_t largest() const {
    std::size_t free = 0;
    std::size_t most = 0;
    for (const Unit& unit : units_) {
      free = unit.owner == nullptr ? free + 1 : 0;
      most = std::max(most, free);
    }
    return most;
  }
  std::uint64_t last_use(std::size_t begin, std::size_t end) const {
    std::uint64_t last = 0;
    for (std::size_t i = begin; i < end; ++i) last = std::max(last, units_[i].used);
    return last;
  }
  void set(std::size_t begin, std::size_t end, const Block* owner, std::uint64_t used) {
    for (std::size_t i = begin; i < end; ++i) units_[i] = {owner, used};
  }
  const Block* owner(std::size_t unit) const { return units_[unit].owner; }
  std::size_t size() const { return units_.size(); }

 private:
  struct Unit {
    const Block* owner = nullptr;
    std::uint64_t used = 0;
  };
  std::vector<Unit> units_;
};

struct Held {
  std::unique_ptr<Block> block = std::make_unique<Block>();
  Span* span = nullptr;
};

struct Shape {
  std::size_t units;
  std::size_t largest;  // block
  unsigned odds;        // of 16: the next step frees
};

class SharedSpaceModel : public testing::TestWithParam<Shape> {};

TEST_P(SharedSpaceModel, AgreesWithAnArray) {
  const Shape shape = GetParam();
  std::mt19937 random(static_cast<unsigned>(shape.units + shape.largest));
  OwnershipMap map;
  map.grow(shape.units * kUnit, {});
  SharedSpace space(map);
  Model model(shape.units);
  std::vector<Held> held;
  std::uint64_t clock = 0;
  std::size_t refused = 0;
  for (int step = 0; step < 4000; ++step) {
    // Now and then mostly frees for a while, so that runs grow together.
    const unsigned odds = step / 500 % 4 == 3 ? 14 : shape.odds;
    if (!held.empty() && random() % 16 < odds) {
      Held& one = held[random() % held.size()];
      const std::size_t begin = one.span->begin / kUnit;
      const std::size_t end = one.span->end / kUnit;
      ++clock;
      space.give_back(one.span, used_by(1, clock));
      model.set(begin, end, nullptr, clock);
      std::swap(one, held.back());
      held.pop_back();
    } else if (random() % 8 == 0) {
      // Where the caller says, in the middle of what is free.
      const std::size_t begin = random() % shape.units;
      std::size_t end = begin;
      while (end < shape.units && end - begin < shape.largest && model.owner(end) == nullptr) ++end;
      if (begin == end) continue;
      Held one;
      Release former;
      one.span = space.take_at(begin * kUnit, end * kUnit, one.block.get(), &former);
      ASSERT_NE(one.span, nullptr) << "step " << step;
      ASSERT_EQ(one.span->begin, begin * kUnit);
      ASSERT_EQ(one.span->end, end * kUnit);
      ASSERT_EQ(former.count == 0 ? 0 : former.uses[0].position, model.last_use(begin, end));
      model.set(begin, end, one.block.get(), 0);
      held.push_back(std::move(one));
    } else {
      const std::size_t count =
          1 + random() % (random() % 4 == 0 ? shape.largest : std::min<std::size_t>(4, shape.largest));
      const std::size_t begin = model.find(count);
      Held one;
      Release former;
      one.span = space.take(count * kUnit, one.block.get(), &former);
      ASSERT_EQ(one.span == nullptr, begin == model.size()) << "step " << step;
      if (one.span == nullptr) {
        ++refused;
        EXPECT_TRUE(former.empty());
        continue;
      }
      ASSERT_EQ(one.span->begin, begin * kUnit) << "step " << step;
      ASSERT_EQ(one.span->end, (begin + count) * kUnit);
      ASSERT_EQ(former.count == 0 ? 0 : former.uses[0].position, model.last_use(begin, begin + count));
      model.set(begin, begin + count, one.block.get(), 0);
      held.push_back(std::move(one));
    }
    ASSERT_EQ(space.largest(), model.largest() * kUnit) << "step " << step;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t offset = random() % (shape.units * kUnit);
      const Span* const span = space.find(offset);
      ASSERT_NE(span, nullptr);
      ASSERT_LE(span->begin, offset);
      ASSERT_LT(offset, span->end);
      ASSERT_EQ(span->owner, model.owner(offset / kUnit));
    }
    ASSERT_EQ(space.find(shape.units * kUnit), nullptr);
    if (step % 100 == 0) {
      ASSERT_TRUE(map.consistent());
    }
  }
  while (!held.empty()) {
    space.give_back(held.back().span, used_by(1, ++clock));
    held.pop_back();
  }
  EXPECT_EQ(space.largest(), shape.units * kUnit) << "neighbours count as one run";
  EXPECT_EQ(space.last_uses().uses[0].position, clock);
  Block whole;
  Release former;
  ASSERT_NE(space.take(shape.units * kUnit, &whole, &former), nullptr);
  EXPECT_EQ(former.uses[0].position, clock);
  EXPECT_EQ(space.largest(), 0u);
  if (shape.units < 10000) {
    EXPECT_GT(refused, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedSpaceModel,
                         testing::Values(Shape{1, 1, 4}, Shape{40, 12, 5}, Shape{64, 64, 6}, Shape{129, 70, 5},
                                         Shape{1000, 300, 6}, Shape{4096, 900, 6}, Shape{12288, 4000, 7},
                                         Shape{65536, 4096, 4}));

TEST(SharedSpace, LastUsesAreThoseSinceTheLastTaking) {
  OwnershipMap map;
  map.grow(10 * kUnit, {});
  SharedSpace space(map);
  EXPECT_TRUE(space.last_uses().empty());
  Block block;
  Release former;
  Span* const span = space.take(kUnit, &block, &former);
  space.give_back(span, used_by(3, 7));
  ASSERT_EQ(space.last_uses().count, 1u);
  EXPECT_EQ(space.last_uses().uses[0].position, 7u);
}

// Windows come and go, and fill and empty.
TEST(SharedWindows, TheFirstThatHasRoomIsFound) {
  std::mt19937 random(1);
  SharedWindows shared;
  std::vector<std::unique_ptr<Window>> windows;
  std::vector<std::pair<Window*, Held>> held;
  std::uint64_t bytes = 0;
  std::size_t most = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::size_t count = 1 + random() % 60;
    Window* expected = nullptr;
    for (const auto& window : windows) {
      if (window->space->largest() < count * kUnit) continue;
      if (expected == nullptr || window->slot < expected->slot) expected = window.get();
    }
    Window* found = shared.find(count * kUnit);
    ASSERT_EQ(found, expected) << "step " << step;
    if (found == nullptr && windows.size() < 40) {
      shared.make_room();
      auto window = std::make_unique<Window>();
      window->bytes = (64 + random() % 64) * kUnit;
      window->map.grow(window->bytes, {});
      window->space = std::make_unique<SharedSpace>(window->map);
      shared.add(window.get());
      bytes += window->bytes;
      found = window.get();
      windows.push_back(std::move(window));
    }
    if (found != nullptr && random() % 8 != 0) {
      Held one;
      Release former;
      one.span = found->space->take(count * kUnit, one.block.get(), &former);
      ASSERT_NE(one.span, nullptr);
      shared.changed(*found);
      held.emplace_back(found, std::move(one));
    }
    for (std::size_t frees = random() % (step / 300 % 2 == 0 ? 2 : 5); frees != 0 && !held.empty(); --frees) {
      std::swap(held.back(), held[random() % held.size()]);
      Window& window = *held.back().first;
      window.space->give_back(held.back().second.span, {});
      shared.changed(window);
      held.pop_back();
    }
    const auto empty = std::find_if(windows.begin(), windows.end(), [](const auto& w) { return !w->map.has_owner(); });
    if (empty != windows.end() && random() % 4 == 0) {
      bytes -= (*empty)->bytes;
      shared.remove(empty->get());
      windows.erase(empty);
    }
    ASSERT_EQ(shared.bytes(), bytes);
    most = std::max(most, windows.size());
  }
  EXPECT_GT(most, 16u);
}

}  // namespace
}  // namespace memopt::agent
