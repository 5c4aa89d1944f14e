#include "agent/status/status_json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>

#include "planner/json/tree.h"

namespace memopt::agent {
namespace {

TEST(StatusJson, HasEveryMemberOfTheFormat) {
  shm::Status status;
  status.pid = 12;
  status.uid = 34;
  status.version = "1.2.3";
  status.executable = "/bin/x";
  status.reason = "because";
  status.attached_for = shm::Nanoseconds(1'000'000'005);
  status.calls = shm::CallCount(7);
  status.entry_points = {{"cuA", shm::CallCount(3)}, {"cuB", shm::CallCount(4)}};
  status.memory = {shm::Bytes(1), shm::Bytes(2), shm::BlockCount(3), 4};
  status.stack_walker = {"libunwind", "/lib/u"};
  status.driver = "/lib/libcuda.so.1";
  status.frameworks = {{"PyTorch", "A=b", "memopt", true, "in \"words\"", "async", shm::Bytes(4096)},
                       {"CuPy", "", "nobody", std::nullopt, "", "", std::nullopt}};
  status.problems = {{"bypass", "text"}};
  const std::string text = to_json(status);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("\"attached_seconds\": 1.000000005"), std::string::npos);
  nlohmann::json json = nlohmann::json::parse(text);
  json.erase("attached_seconds");
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "format": 1, "version": "1.2.3", "pid": 12, "uid": 34, "executable": "/bin/x", "state": "passthrough", "reason": "because",
    "calls": {"total": 7, "entry_points": {"cuA": 3, "cuB": 4}},
    "memory": {"live_bytes": 1, "peak_bytes": 2, "live_blocks": 3, "untracked": 4},
    "stack_walker": {"kind": "libunwind", "detail": "/lib/u"}, "driver": "/lib/libcuda.so.1",
    "frameworks": [{"name": "PyTorch", "setting": "A=b", "set_by": "memopt", "visible": true, "text": "in \"words\"",
                    "route": "async", "reserved": 4096},
                   {"name": "CuPy", "setting": "", "set_by": "nobody", "visible": null, "text": "", "route": null, "reserved": null}],
    "problems": [{"code": "bypass", "text": "text"}]})"));
}

TEST(StatusJson, HasEveryMemberOfThePlan) {
  shm::Status status;
  shm::PlanStatus plan;
  plan.iterations = 1;
  plan.iteration_at_live = 2;
  plan.peak_load = shm::Bytes(3000);
  plan.footprint = shm::Bytes(3100);
  plan.footprint_peak = shm::Bytes(5);
  plan.footprint_before = shm::Bytes(6);
  plan.slab = shm::Bytes(7);
  plan.persistent = shm::Bytes(8);
  plan.overshoot = shm::Bytes(9);
  plan.generation = 10;
  plan.deviations = 11;
  plan.displaced = 12;
  plan.dropped_events = 13;
  plan.waits = 14;
  plan.host_synchronizations = 15;
  plan.vmm_calls = 16;
  plan.own_ns_per_call = 61.25;
  plan.planner = 17;
  plan.planner_reason = "r";
  plan.note = "n\"";
  status.plan = plan;
  EXPECT_EQ(nlohmann::json::parse(to_json(status)).at("plan"), nlohmann::json::parse(R"({
    "iterations": 1, "iteration_at_live": 2, "peak_load": 3000, "footprint": 3100, "footprint_peak": 5, "footprint_before": 6,
    "ratio": 1.033, "slab": 7, "persistent": 8, "overshoot": 9, "generation": 10, "deviations": 11, "displaced": 12,
    "dropped_events": 13, "waits": 14, "host_synchronizations": 15, "vmm_calls": 16, "own_ns_per_call": 61.2, "planner": 17, "planner_reason": "r",
    "note": "n\""})"));
}

TEST(StatusJson, RatioIsRoundedAndSurvivesAnySizes) {
  shm::Status status;
  status.plan.emplace();
  const auto ratio = [&](std::uint64_t footprint, std::uint64_t load) {
    status.plan->footprint = shm::Bytes(footprint);
    status.plan->peak_load = shm::Bytes(load);
    const std::string text = to_json(status);
    const std::size_t at = text.find("\"ratio\": ") + 9;
    return text.substr(at, text.find(',', at) - at);
  };
  EXPECT_EQ(ratio(0, 0), "null");
  EXPECT_EQ(ratio(5, 0), "null");
  EXPECT_EQ(ratio(0, 5), "0.000");
  EXPECT_EQ(ratio(2, 3), "0.667");
  EXPECT_EQ(ratio(1 << 20, 1 << 20), "1.000");
  EXPECT_EQ(ratio(~std::uint64_t{0}, ~std::uint64_t{0}), "1.000");
  EXPECT_EQ(ratio(~std::uint64_t{0}, 1 << 10), "18014398509481983.999");
}

TEST(StatusJson, NoPlanNoMember) {
  EXPECT_FALSE(nlohmann::json::parse(to_json(shm::Status{})).contains("plan"));
  EXPECT_TRUE(nlohmann::json::parse(to_json([] {
                shm::Status made;
                made.plan.emplace();
                return made;
              }()))
                  .at("plan")
                  .at("planner")
                  .is_null());
}

TEST(StatusJson, HasEveryMemberOfTheSwaps) {
  shm::Status status;
  EXPECT_FALSE(nlohmann::json::parse(to_json(status)).contains("swaps"));
  shm::SwapStatus swaps;
  swaps.limit = shm::Bytes(1);
  swaps.held = shm::Bytes(2);
  swaps.held_peak = shm::Bytes(3);
  swaps.beyond = shm::Bytes(4);
  swaps.beyond_why = "b\"";
  swaps.away = shm::Bytes(5);
  swaps.host = shm::Bytes(6);
  swaps.copied_out = shm::Bytes(7);
  swaps.copied_in = shm::Bytes(8);
  swaps.swapped_out = 9;
  swaps.swapped_in = 10;
  swaps.pinned = 11;
  swaps.pinned_bytes = shm::Bytes(~std::uint64_t{0});
  swaps.pinned_why = "3 \"so\"";
  swaps.unscanned = "no kernel";
  swaps.note = "n\"";
  swaps.device_full = true;
  swaps.planned = 12;
  swaps.planned_period = shm::Nanoseconds(13);
  swaps.planned_added = shm::Nanoseconds(14);
  swaps.planned_measured = shm::Nanoseconds(141);
  swaps.planned_out = 15;
  swaps.planned_in = 16;
  swaps.planned_bytes_out = shm::Bytes(17);
  swaps.planned_bytes_in = shm::Bytes(18);
  swaps.left_out = 19;
  swaps.late = 20;
  swaps.unplanned = 21;
  status.swaps = swaps;
  const nlohmann::json expected = nlohmann::json::parse(R"({
    "limit": 1, "device_full": true, "held": 2, "held_peak": 3, "beyond": 4, "beyond_why": "b\"", "away": 5, "host": 6, "copied_out": 7,
    "copied_in": 8, "swapped_out": 9, "swapped_in": 10, "pinned": 11, "pinned_bytes": 18446744073709551615,
    "pinned_why": "3 \"so\"", "unscanned": "no kernel",
    "note": "n\"",
    "planned": {"swaps": 12, "period_ns": 13, "added_ns": 14, "measured_ns": 141, "out": 15, "in": 16, "bytes_out": 17, "bytes_in": 18,
                "left_out": 19, "late": 20, "unplanned": 21}})");
  EXPECT_EQ(nlohmann::json::parse(to_json(status)).at("swaps"), expected);
  status.plan.emplace();
  EXPECT_EQ(nlohmann::json::parse(to_json(status)).at("swaps"), expected);
}

TEST(StatusJson, NamesEveryState) {
  using enum shm::AgentState;
  for (const auto& [state, name] :
       std::initializer_list<std::pair<shm::AgentState, const char*>>{{kPassthrough, "passthrough"},
                                                                      {kDisabled, "disabled"},
                                                                      {kBootstrap, "bootstrap"},
                                                                      {kRecording, "recording"},
                                                                      {kPlanned, "planned"},
                                                                      {kDeviating, "deviating"}}) {
    shm::Status status;
    status.state = state;
    EXPECT_EQ(nlohmann::json::parse(to_json(status)).at("state"), name);
  }
}

TEST(StatusJson, QuotesWhatJsonWants) {
  EXPECT_EQ(nlohmann::json::parse(error_json("a\"b\\c\nd\x01\x7f")).at("error"), "a\"b\\c\nd\x01\x7f");
  EXPECT_EQ(nlohmann::json::parse(error_json("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80")).at("error"),
            "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
}

TEST(StatusJson, BytesThatAreNotUtf8AreReplaced) {
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                          "\xc3", "\xe2\x82"}) {
    EXPECT_NO_THROW(nlohmann::json::parse(error_json(bad))) << testing::PrintToString(bad);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random());
    ASSERT_NO_THROW(nlohmann::json::parse(error_json(text))) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace memopt::agent
