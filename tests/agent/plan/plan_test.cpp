#include "agent/plan/plan.h"

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

// Mallocs that list the same places may use them at the same time, as long as there are enough.
TEST(PlanTest, MallocsShareAPool) {
  PlanBuilder built = PlanBuilder::small();
  built.mallocs[5] = {2000, 0xe000, 3, 2, 9, 20};  // while malloc 3 is there once
  std::string error;
  const auto plan = parse(built, &error);
  ASSERT_NE(plan, nullptr) << error;
  EXPECT_EQ(plan->places_of(plan->mallocs[5]).data(), plan->places_of(plan->mallocs[3]).data());
  built.mallocs[5].bytes = 2049;
  EXPECT_EQ(parse(built, &error), nullptr);
  EXPECT_NE(error.find("malloc 5 of 2049 bytes in a place of 2048"), std::string::npos) << error;
}

TEST(PlanTest, SwapsAreCopiedWhole) {
  const PlanBuilder built = PlanBuilder::swapping();
  std::string error;
  const auto plan = parse(built, &error);
  ASSERT_NE(plan, nullptr) << error;
  EXPECT_EQ(plan->chunk_bytes, 1024u);
  EXPECT_EQ(plan->period_ns, 5'000'000u);
  EXPECT_EQ(plan->added_ns, 1000u);
  EXPECT_EQ(plan->points.size(), built.points.size());
  ASSERT_EQ(plan->pages.size(), 3u);
  EXPECT_EQ(plan->pages[1].address, 0x10400u);
  EXPECT_EQ(plan->pages[1].place.offset, 16384u);
  EXPECT_EQ(plan->swaps_of(0, false).size(), 0u);
  ASSERT_EQ(plan->swaps_of(4, false).size(), 1u);
  EXPECT_EQ(plan->swaps_of(4, false)[0].out_after, 17u);
  EXPECT_EQ(plan->swaps_of(4, true).size(), 0u);
  ASSERT_EQ(plan->swaps_of(0, true).size(), 2u);
  EXPECT_EQ(plan->swaps_of(0, true)[1].need, 18u);
}

TEST(PlanTest, ChunksThatItKeepsAreCopiedByOffset) {
  PlanBuilder built = PlanBuilder::small();
  built.header.chunk_bytes = 1024;
  built.chunks = {{0x10000, 2048}, {0x8000, 0}};
  std::string error;
  const auto plan = parse(built, &error);
  ASSERT_NE(plan, nullptr) << error;
  ASSERT_EQ(plan->chunks.size(), 2u);
  EXPECT_EQ(plan->chunks[0].address, 0x8000u);
  EXPECT_EQ(plan->chunks[1].offset, 2048u);
}

struct Corruption {
  const char* named;  // what the error must say
  std::function<void(PlanBuilder&)> spoil;
};

// Each change alone must be refused, for the reason named.
void expect_refused(const PlanBuilder& valid, const std::vector<Corruption>& corruptions) {
  for (const Corruption& corruption : corruptions) {
    PlanBuilder plan = valid;
    corruption.spoil(plan);
    std::string error;
    EXPECT_EQ(parse(plan, &error), nullptr) << corruption.named;
    EXPECT_NE(error.find(corruption.named), std::string::npos)
        << "expected " << corruption.named << "\n     got " << error;
  }
}

TEST(PlanTest, EverythingThatIsWrongIsNamed) {
  const std::vector<Corruption> corruptions = {
      {"magic", [](PlanBuilder& plan) { plan.header.magic += 1; }},
      {"format 1: expected 6", [](PlanBuilder& plan) { plan.header.format = 1; }},
      {"header_bytes", [](PlanBuilder& plan) { plan.header.header_bytes -= 8; }},
      {"generation 0", [](PlanBuilder& plan) { plan.header.generation = 0; }},
      {"operations 0", [](PlanBuilder& plan) { plan.header.operations = 0; }},
      {"operations 4294967296", [](PlanBuilder& plan) { plan.header.operations = std::uint64_t{1} << 32; }},
      {"slab_bytes", [](PlanBuilder& plan) { plan.header.slab_bytes += 1; }},
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
      {"malloc 5 with 1 places from 4: expected the same places as malloc 3",
       [](PlanBuilder& plan) {
         plan.mallocs[5].first_place = 4;
         plan.mallocs[5].places = 1;
       }},
      {"malloc 5 with 3 places from 3: expected the same places as malloc 3",
       [](PlanBuilder& plan) {
         plan.mallocs[5].first_place = 3;
         plan.mallocs[5].places = 3;
       }},
      // With malloc 3, of which two live from operation 7 to 8.
      {"malloc 3 and 1 others with 2 places: expected 3",
       [](PlanBuilder& plan) {
         plan.mallocs[5] = plan.mallocs[3];
         plan.mallocs[5].return_address = 0xe000;
         plan.mallocs[5].born = 7;
         plan.mallocs[5].freed = 8;
       }},
      {"malloc 5 and malloc 0 are both there at 3",
       [](PlanBuilder& plan) {
         plan.mallocs[5].places = 1;
         plan.mallocs[5].born = 3;
         plan.mallocs[5].freed = 4;
       }},
      {"place 1 at 1025", [](PlanBuilder& plan) { plan.places[1].offset += 1; }},
      {"place 1 at 1024 of 1025", [](PlanBuilder& plan) { plan.places[1].bytes += 1; }},
      {"place 1 at 1024 of 0 bytes", [](PlanBuilder& plan) { plan.places[1].bytes = 0; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].offset = 16 * 1024 - 1024; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].offset = UINT64_MAX - 511; }},
      {"within the slab", [](PlanBuilder& plan) { plan.places[4].bytes = UINT64_MAX - 511; }},
      {"persistent block 0", [](PlanBuilder& plan) { plan.persistent.push_back(0); }},
      // Overlaps: at one time; over the boundary; with what lives always; of one malloc's own places.
      {"malloc 1 and malloc 0 are both there at 2", [](PlanBuilder& plan) { plan.places[1].offset = 512; }},
      {"malloc 4 and malloc 0 are both there", [](PlanBuilder& plan) { plan.places[5].offset = 512; }},
      {"malloc 2 and malloc 3 are both there", [](PlanBuilder& plan) { plan.places[2].offset = 9216; }},
      {"malloc 3 and malloc 3 are both there", [](PlanBuilder& plan) { plan.places[4] = plan.places[3]; }},
  };
  expect_refused(PlanBuilder::small(), corruptions);
}

TEST(PlanTest, EverythingThatIsWrongAboutChunksIsNamed) {
  PlanBuilder valid = PlanBuilder::small();
  valid.header.chunk_bytes = 1024;
  valid.chunks = {{0x8000, 0}, {0x10000, 2048}};
  const std::vector<Corruption> corruptions = {
      {"chunk_bytes 0", [](PlanBuilder& plan) { plan.header.chunk_bytes = 0; }},
      {"chunk_bytes 1000", [](PlanBuilder& plan) { plan.header.chunk_bytes = 1000; }},
      {"chunk 0 of address 0x0", [](PlanBuilder& plan) { plan.chunks[0].address = 0; }},
      {"chunk 0 of address 0x8200", [](PlanBuilder& plan) { plan.chunks[0].address = 0x8200; }},
      {"chunk 1 of address 0x10000 at 512", [](PlanBuilder& plan) { plan.chunks[1].offset = 512; }},
      {"two of address 0x8000", [](PlanBuilder& plan) { plan.chunks[1].address = 0x8000; }},
      {"two of offset 0x0", [](PlanBuilder& plan) { plan.chunks[1].offset = 0; }},
  };
  expect_refused(valid, corruptions);
}

TEST(PlanTest, EverythingThatIsWrongAboutSwapsIsNamed) {
  using shm::kNoPosition;
  const std::vector<Corruption> corruptions = {
      {"chunk_bytes 0", [](PlanBuilder& plan) { plan.header.chunk_bytes = 0; }},
      {"chunk_bytes 1000", [](PlanBuilder& plan) { plan.header.chunk_bytes = 1000; }},
      {"chunk_bytes 1024: expected 0",
       [](PlanBuilder& plan) {
         plan = PlanBuilder::small();
         plan.header.chunk_bytes = 1024;
       }},
      {"pages: 3 entries: expected none",
       [](PlanBuilder& plan) {
         const auto pages = plan.pages;
         plan = PlanBuilder::small();
         plan.header.slab_bytes = 32 * 1024;
         plan.header.chunk_bytes = 1024;
         plan.pages = pages;
       }},
      {"pages 1 of address 0x10200", [](PlanBuilder& plan) { plan.pages[1].address = 0x10200; }},
      {"pages 0 of address 0x0", [](PlanBuilder& plan) { plan.pages[0].address = 0; }},
      {"pages 0 of address 0x10000, 1536 bytes", [](PlanBuilder& plan) { plan.pages[0].place.bytes = 1536; }},
      {"expected addresses", [](PlanBuilder& plan) { plan.pages[2].address = ~std::uint64_t{1023}; }},
      {"pages 1 of address 0x10000: expected at least 0x10400",
       [](PlanBuilder& plan) { plan.pages[1].address = 0x10000; }},
      {"pages 1 of address 0x10400: expected at least 0x10800",
       [](PlanBuilder& plan) { plan.pages[0].place.bytes = 2048; }},
      {"place of pages 1 at 1 of", [](PlanBuilder& plan) { plan.pages[1].place.offset = 1; }},
      {"within the slab", [](PlanBuilder& plan) { plan.pages[2].place.offset = 32 * 1024; }},
      {"point 2 at operation 20", [](PlanBuilder& plan) { plan.points[2].rank = 20; }},
      {"point 2 at operation 5: expected more than 5", [](PlanBuilder& plan) { plan.points[2].rank = 5; }},
      {"point 0 in lane 2", [](PlanBuilder& plan) { plan.points[0].lane = 2; }},
      {"behind malloc 4 of lane 0", [](PlanBuilder& plan) { plan.points[0].malloc = 4; }},
      {"behind 21 operations", [](PlanBuilder& plan) { plan.points[0].operations = 21; }},
      {"point 0: flags 0x2", [](PlanBuilder& plan) { plan.points[0].flags = 2; }},
      {"swap 0: out_after 3: expected a point", [](PlanBuilder& plan) { plan.points.erase(plan.points.begin()); }},
      {"swap 1: need 25: expected a point for operation 5",
       [](PlanBuilder& plan) {
         plan.points.erase(plan.points.begin() + 1);
         plan.swaps[0].in_after = plan.swaps[3].in_after = 3;
       }},
      {"flags 0x4", [](PlanBuilder& plan) { plan.swaps[0].flags = 4; }},
      {"block by block", [](PlanBuilder& plan) { std::swap(plan.swaps[0], plan.swaps[1]); }},
      {"block by block", [](PlanBuilder& plan) { std::swap(plan.swaps[2], plan.swaps[3]); }},
      {"of malloc 6", [](PlanBuilder& plan) { plan.swaps[2].block = 6; }},
      {"not planned", [](PlanBuilder& plan) { plan.swaps[2].block = 5; }},
      {"of pages 3", [](PlanBuilder& plan) { plan.swaps[5].block = 3; }},
      {"a block at 512", [](PlanBuilder& plan) { plan.places[5].offset = 512; }},
      {"1024 bytes at 16896", [](PlanBuilder& plan) { plan.pages[0].place.offset = 16896; }},
      {"after 1: expected 2 to 8", [](PlanBuilder& plan) { plan.swaps[0].out_after = 1; }},
      {"after 9: expected 2 to 8", [](PlanBuilder& plan) { plan.swaps[0].out_after = 9; }},
      {"in this order", [](PlanBuilder& plan) { plan.swaps[0].in_after = 2; }},
      {"in this order", [](PlanBuilder& plan) { plan.swaps[0].need = 5; }},
      {"in this order", [](PlanBuilder& plan) { plan.swaps[0].need = 10; }},
      {"for nothing", [](PlanBuilder& plan) { plan.swaps[0].need = kNoPosition; }},
      {"they come back",
       [](PlanBuilder& plan) { plan.swaps[5].in_after = kNoPosition, plan.swaps[5].need = kNoPosition; }},
      {"expected less than 20, and that", [](PlanBuilder& plan) { plan.swaps[5].out_after = 20; }},
      {"needed at 38: expected at most 37", [](PlanBuilder& plan) { plan.swaps[5].need = 38; }},
      {"back from the one before", [](PlanBuilder& plan) { plan.swaps[3].need = 9; }},
      {"back from the one before", [](PlanBuilder& plan) { plan.swaps[3] = {4, 0, 18, kNoPosition, kNoPosition, 6}; }},
      // Overlaps: one that leaves too late, comes back too early; pages.
      {"malloc 2 and malloc 1 are both there at 4", [](PlanBuilder& plan) { plan.swaps[0].out_after = 5; }},
      {"malloc 1 and malloc 2 are both there at 4", [](PlanBuilder& plan) { plan.swaps[0].in_after = 3; }},
      {"pages 0 and pages 1 are both there at 9", [](PlanBuilder& plan) { plan.swaps[4].in_after = 8; }},
      {"pages 2 and pages 0", [](PlanBuilder& plan) { plan.pages[2].place.offset = 16384; }},
  };
  expect_refused(PlanBuilder::swapping(), corruptions);
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
    std::vector<std::pair<std::uint64_t, std::uint32_t>> pools;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto born = static_cast<std::uint32_t>(random() % operations);
      const std::uint64_t freed = born + 1 + random() % (random() % 4 == 0 ? 30 : 8);
      const auto needed = static_cast<std::uint32_t>((freed - born + operations - 1) / operations);
      if (!pools.empty() && random() % 3 == 0) {
        const auto [first, places] = pools[random() % pools.size()];
        if (places >= needed) {
          plan.mallocs.push_back({512, 0x100 + i, first, places, born, freed});
          continue;
        }
      }
      pools.emplace_back(plan.places.size(), needed);
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
      for (const auto& [first, places] : pools) {
        std::uint64_t live = 0;
        for (const auto& malloc : plan.mallocs) {
          if (malloc.first_place != first) continue;
          for (std::uint64_t later = time; later < malloc.freed; later += operations) live += later >= malloc.born;
        }
        overlap = overlap || live > places;
      }
      for (const auto& malloc : plan.mallocs) {
        bool again = false;
        for (const auto* before = plan.mallocs.data(); before != &malloc && malloc.places > 1; ++before) {
          again = again || before->first_place == malloc.first_place;
        }
        if (again || !occupies(malloc, time)) continue;
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

// Random swaps of random blocks, judged by looking at every operation of some iterations.
TEST(PlanTest, SwapsAgreeWithTheDefinition) {
  std::mt19937_64 random(6);
  std::uint64_t accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    PlanBuilder plan = PlanBuilder::small();
    plan.places.clear();
    plan.mallocs.clear();
    constexpr std::uint64_t kOperations = 10, kIterations = 6;
    plan.header.operations = kOperations;
    plan.header.chunk_bytes = 1024;
    plan.persistent = {5};
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 4);
    // By block (behind them pages): the operations at which it is there, of the instance born in iteration 0.
    std::vector<std::vector<bool>> there(count + 1, std::vector<bool>(kOperations * kIterations));
    const auto stay = [&](std::uint32_t block, std::uint64_t from, std::uint64_t to) {
      for (; from < to; ++from) there[block][from] = true;
    };
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t born = random() % kOperations, freed = born + 1 + random() % 14;
      plan.mallocs.push_back({512, 0x100 + i, i, 1, static_cast<std::uint32_t>(born), freed});
      plan.places.push_back({random() % 4 * 1024, 512 * (1 + random() % 3)});
      std::uint64_t from = born;
      while (random() % 3 != 0) {
        const std::uint64_t out = from + random() % 4, in = out + random() % 8, need = in + 1 + random() % 2;
        if (out >= freed) break;
        const bool returns = need < freed;
        plan.swaps.push_back({i, shm::kSwapCopies, out, returns ? in : shm::kNoPosition,
                              returns ? need : shm::kNoPosition, plan.swaps.size()});
        stay(i, from, out + 1);
        from = returns ? in + 1 : freed;
        if (!returns || need > in + 1) break;
      }
      stay(i, from, freed);
    }
    plan.pages = {{0x100000, {random() % 4 * 1024, 1024}}};
    stay(count, 0, kOperations * kIterations);
    if (random() % 2 == 0) {
      const std::uint64_t out = random() % kOperations, in = out + random() % (kOperations - 1);
      plan.swaps.push_back({0, shm::kSwapPages, out, in, in + 1, 0});
      for (std::uint64_t time = out + 1; time <= in; ++time) there[count][time % kOperations] = false;
      for (std::size_t time = kOperations; time < there[count].size(); ++time) {
        there[count][time] = there[count][time - kOperations];
      }
    }
    if (plan.swaps.empty()) continue;
    for (std::uint64_t rank = 0; rank < kOperations; ++rank)
      plan.points.push_back({rank, 0, 0, static_cast<std::uint32_t>(rank), 0});
    plan.lanes = {{0, count, 0, count}};
    // In the last of the iterations, each block is there as what was born in it or in one before.
    bool overlap = false;
    for (std::uint64_t time = 0; time < kOperations; ++time) {
      std::vector<int> taken(20, 0);
      const auto take = [&](const shm::Place& place) {
        for (std::uint64_t at = place.offset; at < place.offset + place.bytes; at += 512) {
          overlap = overlap || taken[at / 512]++ != 0;
        }
      };
      for (std::uint32_t i = 0; i < count; ++i) {
        for (std::uint64_t age = 0; age < kIterations; ++age) {
          if (there[i][time + age * kOperations]) take(plan.places[i]);
        }
      }
      if (there[count][time]) take(plan.pages[0].place);
    }
    // A malloc that is not swapped needs a place for each of its blocks that live at the same time.
    bool enough = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool swapped = std::any_of(plan.swaps.begin(), plan.swaps.end(),
                                       [&](const auto& swap) { return swap.block == i && (swap.flags & 1) == 0; });
      enough = enough && (swapped || plan.mallocs[i].freed - plan.mallocs[i].born <= kOperations);
    }
    std::string error;
    EXPECT_EQ(parse(plan, &error) != nullptr, !overlap && enough) << "round " << round << ": " << error;
    accepted += !overlap && enough ? 1 : 0;
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_LT(accepted, 4000u);
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
  for (const shm::PlannedSwap& swap : plan.swaps) {
    const bool pages = (swap.flags & shm::kSwapPages) != 0;
    ASSERT_LT(swap.block, pages ? plan.pages.size() : plan.mallocs.size());
    ASSERT_FALSE(plan.swaps_of(swap.block, pages).empty());
  }
}

// Random changes of a valid plan's bytes, with a checksum that fits again, so that the checks behind it are reached.
TEST(PlanTest, MutatedPlansAreRefusedOrUsable) {
  const std::vector<std::byte> plain = PlanBuilder::small().bytes(), swapping = PlanBuilder::swapping().bytes();
  std::mt19937_64 random(5);
  const std::uint64_t telling[] = {
      0, 1, 2, 7, 8, 512, UINT64_MAX, ~7u, UINT32_MAX, plain.size(), 1ull << 32, 1ull << 63, UINT64_MAX - 511};
  std::uint64_t accepted = 0;
  for (int round = 0; round < 40'000; ++round) {
    const std::vector<std::byte>& valid = round % 2 == 0 ? plain : swapping;
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
