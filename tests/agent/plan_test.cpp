#include "agent/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/agent/plan_builder.h"

namespace memopt::agent {
namespace {

using test::PlanBuilder;

std::unique_ptr<const Plan> parse(const PlanBuilder& plan, std::string* error) {
  return parse_plan(plan.bytes(), error);
}

TEST(PlanTest, AValidPlanIsCopiedWhole) {
  std::string error;
  const auto plan = parse(PlanBuilder::small(), &error);
  ASSERT_NE(plan, nullptr) << error;
  EXPECT_EQ(plan->generation, 7u);
  EXPECT_EQ(plan->signature, 0x1234u);
  EXPECT_EQ(plan->operations, 20u);
  EXPECT_EQ(plan->slab_bytes, 16u * 1024);
  EXPECT_EQ(plan->peak_load, 9000u);
  EXPECT_EQ(plan->lower_bound, 8192u);
  EXPECT_EQ(plan->persistent_bytes, 300u);
  EXPECT_EQ(plan->first_iteration, 100u);
  EXPECT_EQ(plan->detected_at, 160u);
  ASSERT_NE(plan->find_lane(0), nullptr);
  ASSERT_NE(plan->find_lane(3), nullptr);
  EXPECT_EQ(plan->find_lane(1), nullptr);
  EXPECT_EQ(plan->find_lane(4), nullptr);
  EXPECT_EQ(plan->find_lane(0)->match, 2u);
  EXPECT_EQ(plan->find_lane(0)->mallocs.size(), 4u);
  EXPECT_EQ(plan->find_lane(3)->mallocs[0].bytes, 512u);
  EXPECT_EQ(plan->places_of(plan->find_lane(0)->mallocs[3]).size(), 2u);
  EXPECT_EQ(plan->places_of(plan->find_lane(0)->mallocs[3])[1].offset, 10240u);
  EXPECT_TRUE(plan->places_of(plan->find_lane(3)->mallocs[1]).empty());
  EXPECT_EQ(plan->persistent, (std::vector<std::uint64_t>{4, 9, 12}));
  EXPECT_TRUE(plan->is_persistent(9));
  EXPECT_FALSE(plan->is_persistent(10));
}

struct Corruption {
  const char* named;  // what the error must say
  std::function<void(PlanBuilder&)> spoil;
};

TEST(PlanTest, EverythingThatIsWrongIsNamed) {
  const std::vector<Corruption> corruptions = {
      {"magic", [](PlanBuilder& plan) { plan.header.magic += 1; }},
      {"format 2: expected 1", [](PlanBuilder& plan) { plan.header.format = 2; }},
      {"header_bytes", [](PlanBuilder& plan) { plan.header.header_bytes -= 8; }},
      {"generation 0", [](PlanBuilder& plan) { plan.header.generation = 0; }},
      {"operations 0", [](PlanBuilder& plan) { plan.header.operations = 0; }},
      {"operations 4294967296", [](PlanBuilder& plan) { plan.header.operations = std::uint64_t{1} << 32; }},
      {"slab_bytes", [](PlanBuilder& plan) { plan.header.slab_bytes += 1; }},
      {"swaps: 1", [](PlanBuilder& plan) { plan.header.swaps.count = 1; }},
      {"replays: 3", [](PlanBuilder& plan) { plan.header.replays.count = 3; }},
      {"lanes: none", [](PlanBuilder& plan) { plan.lanes.clear(); }},
      {"lanes have", [](PlanBuilder& plan) { plan.lanes.pop_back(); }},
      {"lane 0 occurs twice", [](PlanBuilder& plan) { plan.lanes[1].lane = 0; }},
      {"lane 3 begins with malloc", [](PlanBuilder& plan) { plan.lanes[1].first_malloc = 3; }},
      {"lane 3 with 3 mallocs", [](PlanBuilder& plan) { plan.lanes[1].mallocs = 3; }},
      {"lane 0 with 0 mallocs", [](PlanBuilder& plan) { plan.lanes[0].mallocs = 0; }},
      {"lane 3 with 18446744073709551615 mallocs", [](PlanBuilder& plan) { plan.lanes[1].mallocs = UINT64_MAX; }},
      {"match 0", [](PlanBuilder& plan) { plan.lanes[0].match = 0; }},
      {"match 5", [](PlanBuilder& plan) { plan.lanes[0].match = 5; }},
      {"last 1 mallocs occur at 2",
       [](PlanBuilder& plan) {
         plan.lanes[0].match = 1;
         plan.mallocs[0].bytes = plan.mallocs[3].bytes;
         plan.mallocs[0].return_address = plan.mallocs[3].return_address;
         plan.places[0].bytes = 2048;
         plan.places[1].offset = plan.places[5].offset = 2048;
       }},
      {"malloc 0: 0 bytes", [](PlanBuilder& plan) { plan.mallocs[0].bytes = 0; }},
      {"malloc 1 of 1025 bytes", [](PlanBuilder& plan) { plan.mallocs[1].bytes = 1025; }},
      {"malloc 2 born at 20",
       [](PlanBuilder& plan) {
         plan.mallocs[2].born = 20;
         plan.mallocs[2].freed = 21;
       }},
      {"malloc 2 freed at 5", [](PlanBuilder& plan) { plan.mallocs[2].freed = 5; }},
      {"malloc 3 with 2 places: expected 3", [](PlanBuilder& plan) { plan.mallocs[3].freed = 7 + 41; }},
      {"malloc 0 with 1 places: expected 2", [](PlanBuilder& plan) { plan.mallocs[0].freed = 21; }},
      {"malloc 0 with 1 places from 6", [](PlanBuilder& plan) { plan.mallocs[0].first_place = 6; }},
      {"malloc 0 with 1 places from 18446744073709551615",
       [](PlanBuilder& plan) { plan.mallocs[0].first_place = UINT64_MAX; }},
      {"malloc 0 with 4294967295 places", [](PlanBuilder& plan) { plan.mallocs[0].places = UINT32_MAX; }},
      {"malloc 5: expected places that no other malloc lists", [](PlanBuilder& plan) { plan.mallocs[5].places = 1; }},
      {"place 1 at 1025", [](PlanBuilder& plan) { plan.places[1].offset += 1; }},
      {"place 1 at 1024 of 1025", [](PlanBuilder& plan) { plan.places[1].bytes += 1; }},
      {"place 1 at 1024 of 0 bytes", [](PlanBuilder& plan) { plan.places[1].bytes = 0; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].offset = 16 * 1024 - 1024; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].offset = UINT64_MAX - 511; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].bytes = UINT64_MAX - 511; }},
      {"persistent block 0", [](PlanBuilder& plan) { plan.persistent.push_back(0); }},
      // Overlaps: at one time; over the boundary; with what lives always; of one malloc's own places.
      {"mallocs 1 and 0 are both alive at 2", [](PlanBuilder& plan) { plan.places[1].offset = 512; }},
      {"mallocs 4 and 0 are both alive", [](PlanBuilder& plan) { plan.places[5].offset = 512; }},
      {"mallocs 2 and 3 are both alive", [](PlanBuilder& plan) { plan.places[2].offset = 9216; }},
      {"mallocs 3 and 3 are both alive", [](PlanBuilder& plan) { plan.places[4] = plan.places[3]; }},
  };
  for (const Corruption& corruption : corruptions) {
    PlanBuilder plan = PlanBuilder::small();
    corruption.spoil(plan);
    std::string error;
    EXPECT_EQ(parse(plan, &error), nullptr) << corruption.named;
    EXPECT_NE(error.find(corruption.named), std::string::npos)
        << "expected " << corruption.named << "\n     got " << error;
  }
}

TEST(PlanTest, TablesMustLieWithinTheMemory) {
  const auto spoil = [](const std::function<void(shm::PlanHeader&)>& change) {
    std::vector<std::byte> bytes = PlanBuilder::small().bytes();
    shm::PlanHeader header = PlanBuilder::read_header(bytes);
    change(header);
    PlanBuilder::write_header(bytes, header);
    std::string error;
    EXPECT_EQ(parse_plan(bytes, &error), nullptr);
    return error;
  };
  using shm::PlanHeader;
  EXPECT_NE(spoil([](PlanHeader& header) { header.lanes.offset += 4; }).find("lanes table at"), std::string::npos);
  EXPECT_NE(spoil([](PlanHeader& header) { header.mallocs.offset = 8; }).find("mallocs table at 8"), std::string::npos);
  EXPECT_NE(spoil([](PlanHeader& header) { header.places.offset = UINT64_MAX - 7; }).find("places table at"),
            std::string::npos);
  EXPECT_NE(spoil([](PlanHeader& header) { header.persistent.count = UINT64_MAX / 8; }).find("persistent table of"),
            std::string::npos);
  EXPECT_NE(spoil([](PlanHeader& header) { header.mallocs.count = std::uint64_t{1} << 61; }).find("mallocs table of"),
            std::string::npos);
  EXPECT_NE(spoil([](PlanHeader& header) { header.bytes += 8; }).find("the size of the memory"), std::string::npos);
}

TEST(PlanTest, SizeAndChecksumAreChecked) {
  std::vector<std::byte> bytes = PlanBuilder::small().bytes();
  std::string error;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_plan(std::span(bytes).first(size), &error), nullptr) << size;
  }
  bytes.back() = static_cast<std::byte>(~static_cast<unsigned>(bytes.back()));
  EXPECT_EQ(parse_plan(bytes, &error), nullptr);
  EXPECT_NE(error.find("checksum"), std::string::npos) << error;
}

TEST(PlanTest, BlocksThatTouchOrFollowEachOtherDoNotOverlap) {
  PlanBuilder plan = PlanBuilder::small();
  // Malloc 2 is born exactly when malloc 0 would be freed, in its place.
  plan.mallocs[0].freed = 5;
  std::string error;
  EXPECT_NE(parse(plan, &error), nullptr) << error;
}

// The follower relies on it: the lane's last `match` mallocs are found at one place of the cycle alone.
TEST(PlanTest, MatchAgreesWithTheDefinition) {
  std::mt19937_64 random(3);
  std::uint64_t accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    PlanBuilder plan = PlanBuilder::small();
    plan.places.clear();
    plan.mallocs.clear();
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 9);
    plan.header.operations = count + 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      plan.mallocs.push_back({1 + random() % 2, 0x10 + random() % 2, 0, 0, i, i + 1});
    }
    const std::uint32_t match = 1 + static_cast<std::uint32_t>(random() % count);
    plan.lanes = {{0, match, 0, count}};
    const auto word = [&](std::uint32_t end) {  // the `match` mallocs that end before position `end`
      std::vector<std::pair<std::uint64_t, std::uint64_t>> part;
      for (std::uint32_t i = 0; i < match; ++i) {
        const auto& malloc = plan.mallocs[(end + 2 * count - match + i) % count];
        part.emplace_back(malloc.bytes, malloc.return_address);
      }
      return part;
    };
    bool unique = true;
    for (std::uint32_t end = 1; end < count; ++end) unique = unique && word(end) != word(0);
    // Or else at the end of each round, where the sequence is the same mallocs several times over.
    bool every_round = false;
    for (std::uint32_t period = 1; period < count; ++period) {
      if (count % period != 0) continue;
      bool repeats = true;
      for (std::uint32_t i = period; i < count; ++i) {
        repeats = repeats && plan.mallocs[i].bytes == plan.mallocs[i - period].bytes &&
                  plan.mallocs[i].return_address == plan.mallocs[i - period].return_address;
      }
      if (!repeats) continue;
      every_round = true;
      for (std::uint32_t end = 1; end < count; ++end) {
        if (end % period != 0) every_round = every_round && word(end) != word(0);
      }
      break;
    }
    unique = unique || every_round;
    std::string error;
    EXPECT_EQ(parse(plan, &error) != nullptr, unique) << "round " << round << ": " << error;
    accepted += unique ? 1 : 0;
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_LT(accepted, 3700u);
}

// Random plans, judged by looking at every operation of an iteration.
TEST(PlanTest, OverlapAgreesWithTheDefinition) {
  std::mt19937_64 random(4);
  std::uint64_t accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    PlanBuilder plan = PlanBuilder::small();
    plan.places.clear();
    plan.mallocs.clear();
    const std::uint32_t operations = 12;
    plan.header.operations = operations;
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 5);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto born = static_cast<std::uint32_t>(random() % operations);
      const std::uint64_t freed = born + 1 + random() % (random() % 4 == 0 ? 30 : 8);
      const auto needed = static_cast<std::uint32_t>((freed - born + operations - 1) / operations);
      plan.mallocs.push_back({512, 0x100 + i, plan.places.size(), needed, born, freed});
      for (std::uint32_t k = 0; k < needed; ++k) plan.places.push_back({random() % 30 * 512, 512 * (1 + random() % 3)});
    }
    plan.lanes = {{0, 1, 0, count}};
    const auto occupies = [&](const shm::PlannedMalloc& malloc, std::uint64_t time) {
      return malloc.places > 1 || (time >= malloc.born && time < malloc.freed) || time + operations < malloc.freed;
    };
    bool overlap = false;
    for (std::uint64_t time = 0; time < operations; ++time) {
      std::vector<int> taken(40, 0);
      for (const auto& malloc : plan.mallocs) {
        if (!occupies(malloc, time)) continue;
        for (std::uint32_t k = 0; k < malloc.places; ++k) {
          const shm::Place& place = plan.places[malloc.first_place + k];
          for (std::uint64_t at = place.offset; at < place.offset + place.bytes; at += 512) {
            overlap = overlap || taken[at / 512]++ != 0;
          }
        }
      }
    }
    bool inside = true;
    for (const shm::Place& place : plan.places) inside = inside && place.offset + place.bytes <= plan.header.slab_bytes;
    std::string error;
    EXPECT_EQ(parse(plan, &error) != nullptr, !overlap && inside) << "round " << round << ": " << error;
    accepted += !overlap && inside ? 1 : 0;
  }
  EXPECT_GT(accepted, 300u);
  EXPECT_LT(accepted, 2700u);
}

// What a follower does with a plan that was accepted.
void use(const Plan& plan) {
  for (const Plan::Lane& lane : plan.lanes) {
    ASSERT_EQ(plan.find_lane(lane.lane), &lane);
    ASSERT_GE(lane.match, 1u);
    ASSERT_LE(lane.match, lane.mallocs.size());
    for (const shm::PlannedMalloc& malloc : lane.mallocs) {
      ASSERT_LT(malloc.born, plan.operations);
      for (const shm::Place& place : plan.places_of(malloc)) ASSERT_LE(place.offset + place.bytes, plan.slab_bytes);
    }
  }
}

// Random changes of a valid plan's bytes, with a checksum that fits again, so that the checks behind it are reached.
TEST(PlanTest, MutatedPlansAreRefusedOrUsable) {
  const std::vector<std::byte> valid = PlanBuilder::small().bytes();
  std::mt19937_64 random(5);
  const std::uint64_t telling[] = {
      0, 1, 2, 7, 8, 512, UINT64_MAX, ~7u, UINT32_MAX, valid.size(), 1ull << 32, 1ull << 63, UINT64_MAX - 511};
  std::uint64_t accepted = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::vector<std::byte> bytes = valid;
    if (random() % 8 == 0) bytes.resize(random() % (valid.size() + 64) / 8 * 8);
    for (std::uint64_t changes = 1 + random() % 3; changes > 0 && bytes.size() >= 8; --changes) {
      if (random() % 2 == 0) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      } else {
        const std::uint64_t value = telling[random() % std::size(telling)];
        std::memcpy(bytes.data() + random() % (bytes.size() / 8) * 8, &value, 8);
      }
    }
    if (bytes.size() >= sizeof(shm::PlanHeader) && random() % 10 != 0) {
      PlanBuilder::write_header(bytes, PlanBuilder::read_header(bytes));
    }
    std::string error;
    const auto plan = parse_plan(bytes, &error);
    if (plan == nullptr) {
      ASSERT_FALSE(error.empty());
    } else {
      ++accepted;
      use(*plan);
    }
  }
  EXPECT_GT(accepted, 1000u) << "harmless changes are accepted";
}

TEST(PlanTest, LargePlansAreCheckedInReasonableTime) {
  // 200,000 mallocs of one lane, all alike but the last: the slowest that a quadratic check could be given.
  PlanBuilder plan = PlanBuilder::small();
  constexpr std::uint32_t kCount = 200'000;
  plan.mallocs.clear();
  plan.places.clear();
  plan.header.operations = 2 * kCount;
  plan.header.slab_bytes = std::uint64_t{kCount} * 512;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    plan.mallocs.push_back({i + 1 == kCount ? 100u : 200u, 0x10, i, 1, i, i + kCount});
    plan.places.push_back({std::uint64_t{i} * 512, 512});
  }
  plan.lanes = {{0, kCount, 0, kCount}};
  std::string error;
  EXPECT_NE(parse(plan, &error), nullptr) << error;
  plan.places[0].offset = 512;
  EXPECT_EQ(parse(plan, &error), nullptr);
}

}  // namespace
}  // namespace memopt::agent
