// Program as the daemon uses it: bytes of plans, determinism, and records that no agent would send.
#include "planner/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "planner/iteration/record_builder.h"
#include "shm/channel.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

using Plan = std::vector<std::byte>;

// Records as bytes, so that they can be damaged and played again.
struct Recorded {
  std::uint32_t lane;
  Plan bytes;
};

void keep(std::vector<Recorded>& to, std::uint32_t lane, const shm::RecordView& record) {
  Recorded recorded{lane, Plan(sizeof(shm::RecordHeader) + record.body.size())};
  std::memcpy(recorded.bytes.data(), &record.header, sizeof(shm::RecordHeader));
  std::memcpy(recorded.bytes.data() + sizeof(shm::RecordHeader), record.body.data(), record.body.size());
  to.push_back(std::move(recorded));
}

std::vector<Recorded> steps(int count) {
  std::vector<Recorded> records;
  RecordBuilder builder;
  std::uint64_t next = 1;
  std::vector<std::uint64_t> weights, gradients(6, 0);
  const auto malloc = [&](std::uint32_t lane, std::uint64_t bytes, std::uint64_t stack) {
    keep(records, lane, builder.malloc(next, bytes, stack, stack + 0x1000));
    return next++;
  };
  for (int i = 0; i < 6; ++i) weights.push_back(malloc(0, 5000, 1));
  for (int step = 0; step < count; ++step) {
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t i = 0; i < 6; ++i) {
      blocks.push_back(malloc(0, (i + 1) * 10000, 2));
      const std::uint64_t accesses[] = {weights[i] | shm::kAccessReads, blocks.back() | shm::kAccessWrites};
      keep(records, 0, builder.launch(7, accesses));
    }
    for (std::uint64_t i = 6; i-- > 0;) {
      const std::uint64_t gradient = malloc(1, 5000 + i, 3);
      keep(records, 1, builder.copy(gradient, blocks[i], 100, shm::CopyKind::kOnDevice));
      keep(records, 1, builder.free(blocks[i]));
      if (gradients[i] != 0) keep(records, 1, builder.free(gradients[i]));
      gradients[i] = gradient;
      keep(records, 1, builder.memset(weights[i], 5000));
    }
  }
  return records;
}

std::vector<Plan> play(const std::vector<Recorded>& records, std::string* note = nullptr) {
  Program program;
  std::vector<Plan> plans;
  std::uint64_t check = shm::kFirstCheckPoint, count = 0;
  for (const Recorded& recorded : records) {
    const auto record = shm::parse_record(recorded.bytes);
    if (!record) continue;
    program.add(recorded.lane, *record);
    if (++count < check) continue;
    check = shm::next_check_point(check);
    if (auto plan = program.plan()) plans.push_back(std::move(*plan));
  }
  if (note != nullptr) *note = program.note();
  return plans;
}

template <typename Entry>
std::vector<Entry> table(const Plan& plan, const shm::PlanTable& where) {
  EXPECT_EQ(where.offset % 8, 0u);
  EXPECT_LE(where.offset + where.count * sizeof(Entry), plan.size());
  std::vector<Entry> entries(where.count);
  if (!entries.empty()) std::memcpy(entries.data(), plan.data() + where.offset, where.count * sizeof(Entry));
  return entries;
}

// What the agent will ask of any plan, written anew.
void expect_sound(const Plan& plan) {
  ASSERT_GE(plan.size(), sizeof(shm::PlanHeader));
  shm::PlanHeader header;
  std::memcpy(&header, plan.data(), sizeof(header));
  EXPECT_EQ(header.magic, shm::kPlanMagic);
  EXPECT_EQ(header.format, shm::kPlanFormat);
  EXPECT_EQ(header.header_bytes, sizeof(header));
  EXPECT_EQ(header.bytes, plan.size());
  EXPECT_EQ(header.checksum, shm::plan_checksum(plan.data() + sizeof(header), plan.size() - sizeof(header)));
  EXPECT_EQ(header.generation, 0u) << "its sender gives it";
  EXPECT_LE(header.lower_bound, header.slab_bytes);
  EXPECT_LE(header.first_iteration, header.detected_at);
  const auto lanes = table<shm::PlannedLane>(plan, header.lanes);
  const auto mallocs = table<shm::PlannedMalloc>(plan, header.mallocs);
  const auto places = table<shm::Place>(plan, header.places);
  ASSERT_FALSE(lanes.empty());
  std::uint64_t next = 0;
  for (const shm::PlannedLane& lane : lanes) {
    EXPECT_EQ(lane.first_malloc, next);
    EXPECT_GE(lane.mallocs, 1u);
    EXPECT_GE(lane.match, 1u);
    EXPECT_LE(lane.match, lane.mallocs);
    next += lane.mallocs;
  }
  ASSERT_EQ(next, mallocs.size());
  // Places by the malloc that has them first; who lists the same ones is of its pool.
  std::map<std::uint64_t, std::uint32_t> pools;
  for (const shm::PlannedMalloc& malloc : mallocs) {
    ASSERT_LT(malloc.born, header.operations);
    ASSERT_GT(malloc.freed, malloc.born);
    if (malloc.places == 0) continue;
    const auto [pool, first] = pools.emplace(malloc.first_place, malloc.places);
    EXPECT_EQ(pool->second, malloc.places);
    ASSERT_LE(malloc.first_place + malloc.places, places.size());
    for (std::uint64_t place = malloc.first_place; place < malloc.first_place + malloc.places; ++place) {
      EXPECT_GE(places[place].bytes, malloc.bytes);
    }
  }
  std::uint64_t used = 0;
  for (const auto& [first, count] : pools) {
    EXPECT_EQ(first, used);
    used += count;
  }
  EXPECT_EQ(used, places.size());
  std::vector<std::vector<std::size_t>> at(header.operations);  // places needed at each operation
  for (const auto& [first, count] : pools) {
    for (std::uint64_t t = 0; t < header.operations; ++t) {
      std::uint64_t live = 0;
      for (const shm::PlannedMalloc& malloc : mallocs) {
        if (malloc.places == 0 || malloc.first_place != first) continue;
        for (std::uint64_t later = t; later < malloc.freed; later += header.operations) live += later >= malloc.born;
      }
      EXPECT_LE(live, count);
      for (std::uint64_t place = first; place < first + (count > 1 ? count : live); ++place) at[t].push_back(place);
    }
  }
  for (const shm::Place& place : places) {
    EXPECT_EQ(place.offset % shm::kPlanAlignment, 0u);
    EXPECT_EQ(place.bytes % shm::kPlanAlignment, 0u);
    EXPECT_LE(place.offset + place.bytes, header.slab_bytes);
  }
  for (auto& live : at) {
    std::sort(live.begin(), live.end(), [&](auto a, auto b) { return places[a].offset < places[b].offset; });
    for (std::size_t i = 1; i < live.size(); ++i) {
      ASSERT_LE(places[live[i - 1]].offset + places[live[i - 1]].bytes, places[live[i]].offset);
    }
  }
}

// The agent has lost its plan with its context: the same iteration is planned again.
TEST(Program, PlansAgainInANewContext) {
  const std::vector<Recorded> once = steps(12);
  EXPECT_EQ(play(once).size(), 1u);
  std::vector<Recorded> twice = once;
  RecordBuilder builder;
  keep(twice, 0, builder.state(shm::StateChange::kNewContext, 0, 0));
  for (const Recorded& record : once) twice.push_back(record);
  EXPECT_EQ(play(twice).size(), 2u);
}

TEST(Program, PlanBytesAreWhatTheAgentChecks) {
  const std::vector<Plan> plans = play(steps(12));
  ASSERT_EQ(plans.size(), 1u);
  expect_sound(plans[0]);
  shm::PlanHeader header;
  std::memcpy(&header, plans[0].data(), sizeof(header));
  EXPECT_EQ(header.operations, 6u * 2 + 6 * 5);
  EXPECT_EQ(header.lanes.count, 2u);
  EXPECT_EQ(header.mallocs.count, 12u);
  EXPECT_EQ(header.persistent_bytes, 6u * 5000);
  EXPECT_EQ(table<std::uint64_t>(plans[0], header.persistent), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
  for (const shm::PlannedMalloc& malloc : table<shm::PlannedMalloc>(plans[0], header.mallocs)) {
    EXPECT_EQ(malloc.return_address, malloc.bytes >= 10000 ? 0x1002u : 0x1003u);
  }
}

TEST(Program, TheSameRecordsGiveTheSamePlans) {
  const std::vector<Recorded> records = steps(12);
  EXPECT_EQ(play(records), play(records));
}

TEST(Program, TheSignatureDoesNotDependOnWhereTheRepeatWasFound) {
  const std::vector<Recorded> records = steps(30);
  std::map<std::uint64_t, int> signatures, boundaries;
  for (std::size_t length = records.size() - 100; length < records.size(); ++length) {
    Program program;
    for (std::size_t i = 0; i < length; ++i) program.add(records[i].lane, *shm::parse_record(records[i].bytes));
    const auto plan = program.plan();
    ASSERT_TRUE(plan) << length << ": " << program.note();
    shm::PlanHeader header;
    std::memcpy(&header, plan->data(), sizeof(header));
    ++signatures[header.signature];
    ++boundaries[table<shm::PlannedMalloc>(*plan, header.mallocs)[0].bytes];
  }
  EXPECT_EQ(signatures.size(), 1u);
  EXPECT_EQ(boundaries.size(), 1u);
}

TEST(Program, ForeignMemoryIsNeverPlaced) {
  Program program;
  RecordBuilder builder;
  std::optional<Plan> plan;
  std::uint64_t next = 1;
  for (int step = 0; step < 20; ++step) {
    const std::uint64_t own = next++, foreign = next++;
    program.add(0, builder.malloc(own, 1 << 20));
    builder.flags = shm::kForeign;
    program.add(0, builder.malloc(foreign, 1 << 22));
    const std::uint64_t accesses[] = {own, foreign};
    program.add(0, builder.launch(1, accesses));
    builder.flags = shm::kForeign;
    program.add(0, builder.free(foreign));
    program.add(0, builder.free(own));
    if (!plan) plan = program.plan();
  }
  ASSERT_TRUE(plan) << program.note();
  shm::PlanHeader header;
  std::memcpy(&header, plan->data(), sizeof(header));
  EXPECT_EQ(header.operations, 5u);
  EXPECT_EQ(header.mallocs.count, 1u);
  EXPECT_EQ(header.slab_bytes, std::uint64_t{1} << 20);
}

// What the framework's own allocator would have reserved (planner/frameworks).
class FrameworkReserved : public testing::Test {
 protected:
  static constexpr std::uint64_t kMiB = 1 << 20;
  void malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t stream = 0) {
    builder_.stream = stream;
    program_.add(0, builder_.malloc(block, bytes));
  }
  void free(std::uint64_t block) { program_.add(0, builder_.free(block)); }
  void state(shm::StateChange change) { program_.add(0, builder_.state(change, 1, 0)); }

  Program program_;
  RecordBuilder builder_;
};

TEST_F(FrameworkReserved, IsKnownWhereItIsWanted) {
  malloc(1, 12 * kMiB);
  EXPECT_EQ(program_.framework_reserved(), 0u) << "it was not asked for";
  Program wanted;
  wanted.model_framework();
  EXPECT_EQ(wanted.framework_reserved(), 0u);
  wanted.add(0, builder_.malloc(1, 12 * kMiB));
  wanted.add(0, builder_.malloc(2, 100));
  EXPECT_EQ(wanted.framework_reserved(), 14 * kMiB);
  builder_.flags = shm::kForeign;
  wanted.add(0, builder_.malloc(3, 50 * kMiB));
  EXPECT_EQ(wanted.framework_reserved(), 14 * kMiB) << "the driver's own memory is no framework's";
}

TEST_F(FrameworkReserved, StaysWhileNothingIsRecordedAndDoesNotGrowByWhatWasMissed) {
  program_.model_framework();
  for (std::uint64_t i = 0; i < 4; ++i) {
    for (std::uint64_t block = 10 * i; block < 10 * i + 3; ++block) malloc(block + 1, 12 * kMiB);
    EXPECT_EQ(program_.framework_reserved(), 36 * kMiB) << "those of before were freed unseen";
    state(shm::StateChange::kRestarted);
  }
  program_.add_gap();
  EXPECT_EQ(program_.framework_reserved(), 36 * kMiB);
  malloc(100, 40 * kMiB, 5);
  EXPECT_EQ(program_.framework_reserved(), 76 * kMiB);
}

TEST_F(FrameworkReserved, IsNotKnownWithoutTheBeginning) {
  program_.model_framework();
  program_.add_gap();
  malloc(1, 12 * kMiB);
  EXPECT_EQ(program_.framework_reserved(), 0u);
  state(shm::StateChange::kNewContext);
  malloc(2, 14 * kMiB);
  EXPECT_EQ(program_.framework_reserved(), 14 * kMiB) << "of the next context all is seen";
}

TEST_F(FrameworkReserved, BeginsAnewWithTheContext) {
  program_.model_framework();
  malloc(1, 12 * kMiB);
  state(shm::StateChange::kNewContext);
  EXPECT_EQ(program_.framework_reserved(), 0u);
  malloc(2, 2 * kMiB);
  EXPECT_EQ(program_.framework_reserved(), 20 * kMiB);
}

TEST(Program, ARefusedPlanIsNotSentAgain) {
  const std::vector<Recorded> records = steps(40);
  Program program;
  int plans = 0;
  std::uint64_t check = shm::kFirstCheckPoint, count = 0;
  for (const Recorded& recorded : records) {
    program.add(recorded.lane, *shm::parse_record(recorded.bytes));
    if (++count < check) continue;
    check = shm::next_check_point(check);
    if (program.plan()) {
      ++plans;
      program.sent(7);
      program.refused(7);
      EXPECT_NE(program.note().find("refused"), std::string::npos);
    }
  }
  EXPECT_EQ(plans, 1);
}

// The agent followed it, and has left it for good: batches differ in size. What goes on is planned in the end, after
// longer each time.
TEST(Program, APlanThatWasNotKeptToIsSentAgainWhenItsIterationGoesOn) {
  const std::vector<Recorded> records = steps(200);
  const std::size_t step = (records.size() - 6) / 200;
  Program program;
  std::vector<std::size_t> sent;  // steps
  std::uint64_t check = shm::kFirstCheckPoint, count = 0;
  for (const Recorded& recorded : records) {
    program.add(recorded.lane, *shm::parse_record(recorded.bytes));
    if (++count < check) continue;
    check = shm::next_check_point(check);
    if (!program.plan()) continue;
    sent.push_back(count / step);
    program.sent(sent.size());
    if (sent.size() == 3) break;
    program.adopted(sent.size());
    program.refused(sent.size());
    EXPECT_NE(program.note().find("did not keep to it"), std::string::npos) << program.note();
  }
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_LE(sent[0], 4u);
  EXPECT_GE(sent[1], 16u);
  EXPECT_LE(sent[1], 18u);
  EXPECT_GE(sent[2], 64u);
  EXPECT_LE(sent[2], 66u);
}

// Any byte may be anything. What comes out, if anything, must still be a sound plan.
TEST(Program, DamagedRecords) {
  const std::vector<Recorded> whole = steps(14);
  std::mt19937_64 random(1);
  std::size_t planned = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<Recorded> records = whole;
    const std::size_t damages = 1 + random() % (round % 3 == 0 ? 200 : 5);
    for (std::size_t i = 0; i < damages; ++i) {
      Recorded& record = records[random() % records.size()];
      switch (random() % 5) {
        case 0:
          record.bytes[random() % record.bytes.size()] = static_cast<std::byte>(random());
          break;
        case 1:
          record.lane = static_cast<std::uint32_t>(random());
          break;
        case 2:
          std::swap(record, records[random() % records.size()]);
          break;
        case 3:
          record = records[random() % records.size()];
          break;
        default: {
          const std::uint64_t value = random() % 2 == 0 ? ~std::uint64_t{0} >> (random() % 64) : random() % 20;
          const std::size_t words = record.bytes.size() / 8;
          if (words > 3) std::memcpy(record.bytes.data() + (3 + random() % (words - 3)) * 8, &value, 8);
        }
      }
    }
    for (const Plan& plan : play(records)) {
      expect_sound(plan);
      ++planned;
    }
  }
  EXPECT_GT(planned, 20u);
}

// Streams made of nothing but repeats and of nothing but noise end in bounded time and memory.
TEST(Program, RepeatsWithoutMeaning) {
  Program program;
  RecordBuilder builder;
  std::mt19937_64 random(2);
  program.add(0, builder.malloc(1, 4096));
  for (int i = 0; i < 100000; ++i) {
    switch (random() % 64) {
      case 0:
        program.add(0, builder.malloc(random() % 1000 + 1, random()));
        break;
      case 1:
        program.add(0, builder.free(random() % 1000));
        break;
      default:
        program.add(0, builder.launch(1, {}));
    }
    if (i % 500 == 0) program.plan();
  }
  EXPECT_FALSE(program.note().empty());
}

}  // namespace
}  // namespace memopt::planner
