// A planner that is told what a training program does, and what it sends then.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "planner/program.h"
#include "shm/channel.h"
#include "shm/plan.h"
#include "tests/planner/sending/told.h"
#include "tests/planner/sending/training.h"

namespace memopt::planner {

using Bytes = std::vector<std::byte>;

inline constexpr shm::SwapTermsBody kTerms{25, 25, 8000, 8000, 2 << 20, 0, 0};

inline shm::PlanHeader header_of(const Bytes& plan) {
  shm::PlanHeader header{};
  std::memcpy(&header, plan.data(), sizeof(header));
  return header;
}

// A planner::Program that is told everything, and what it sends.
class ToldPlanner final : public Told {
 public:
  Program program;
  std::vector<Bytes> plans;

  ToldPlanner(const std::optional<shm::SwapTermsBody>& terms, bool waited_for) : program(waited_for) {
    if (terms) program.swap_on(*terms);
  }

  // Adopts the last plan.
  void follow() {
    program.adopted(plans.size());
    add(builder_.state(shm::StateChange::kLive, plans.size(), 0));
  }
  void deviate() { add(builder_.state(shm::StateChange::kDeviated, plans.size(), 0)); }
  void refuse(std::uint64_t excess = 0) { program.refused(plans.size(), excess); }
  // A better plan beside the records, if there is one.
  bool improve() {
    auto plan = program.improved();
    if (plan) keep(std::move(*plan));
    return plan.has_value();
  }

 private:
  void add(const shm::RecordView& record) override {
    program.add(0, record);
    if (builder_.sequence() < check_point_) return;
    check_point_ = shm::next_check_point(check_point_);
    if (auto plan = program.plan()) keep(std::move(*plan));
  }
  // Plans are numbered from 1.
  void keep(Bytes plan) {
    EXPECT_EQ(header_of(plan).generation, 0u) << "its sender gives it";
    set_generation(plan, plans.size() + 1);
    plans.push_back(std::move(plan));
    program.sent(plans.size());
  }

  std::uint64_t check_point_ = shm::kFirstCheckPoint;
};

using Telling = Training<ToldPlanner>;

inline std::uint64_t footprint_of(const Bytes& plan) {
  const shm::PlanHeader header = header_of(plan);
  return header.slab_bytes + (header.swaps.count == 0 ? header.persistent_bytes : 0);
}

// Of a program at a limit, for copies on demand: far more than any plan adds.
inline constexpr std::uint64_t kOnDemand = 500'000'000;

inline void iterate(Telling& training, int times) {
  for (int i = 0; i < times; ++i) training.iterate();
}

// Of the layout of that program.
inline std::uint64_t unswapped_footprint(std::uint64_t seed) {
  Telling training(seed, std::nullopt, true);
  iterate(training, 20);
  return footprint_of(training.told.plans.at(0));
}

// More in each iteration than `training` has.
inline void iterate_longer(Telling& training, std::uint64_t extra) {
  training.iterate();
  const std::uint64_t block = training.told.malloc(16 << 20, 501, 501);
  training.told.launch(500, {extra, block});
  training.told.took(3'000'000);
  training.told.free(block);
}

// The next plan that comes beside the program's records and swaps, waited for.
inline std::optional<Bytes> swapped(ToldPlanner& told) {
  for (int i = 0; i < 60'000; ++i) {
    if (told.improve() && header_of(told.plans.back()).swaps.count != 0) return told.plans.back();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

}  // namespace memopt::planner
