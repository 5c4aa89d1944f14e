#include "planner/swap/files/plan_file.h"

#include <gtest/gtest.h>

#include <sstream>

#include "planner/json/tree.h"

namespace memopt::swap {
namespace {

using nlohmann::json;

constexpr const char* kPlan = R"({"format": "memopt-plan-1", "name": "a \"plan\"", "comment": "of two", "period": 100.5,
  "machine": {"out_bytes_per_ns": 13.227513227513228, "in_bytes_per_ns": 12, "out_latency_ns": 0},
  "limit": null, "chunk": 1, "lazy_malloc": false,
  "blocks": [{"id": 7, "size": 100, "persistent": false, "offset": [0, 100], "window": "own", "name": ""},
             {"id": 3, "size": 1152921504606846975, "pinned": true, "offset": 200}],
  "ops": [["m",7,0], ["w",7,0.1,0], ["x",-1,20,0,2], ["m",3,30,null,1], ["r",7,33.333333333333336,1], ["f",3,60], ["f",7,90,1,0]],
  "swaps": [{"block": 7, "out_after": 1, "in_after": 6, "need": 11, "copy": true}, {"block": 7, "out_after": 11}]})";

std::string written(const PlanFile& plan) {
  std::ostringstream out;
  write_plan(plan, out);
  return out.str();
}

std::string refusal(json document, const char* pointer, const json& value) {
  document[json::json_pointer(pointer)] = value;
  try {
    parse_plan(document.dump());
  } catch (const Invalid& error) {
    return error.what();
  }
  return "";
}

TEST(PlanFile, WhatIsReadIsWritten) {
  const PlanFile plan = parse_plan(kPlan);
  ASSERT_EQ(plan.problem.operations.size(), 7U);
  EXPECT_EQ(plan.problem.operations[5].age, 0U);
  EXPECT_EQ(plan.problem.operations[4].age, 1U);
  EXPECT_EQ(plan.problem.operations[3].stream, 1U);
  EXPECT_EQ(plan.problem.blocks[1].bytes, 1152921504606846975U);
  EXPECT_FALSE(plan.decisions.swaps[1].returns());
  const PlanFile again = parse_plan(written(plan));
  EXPECT_EQ(again.problem, plan.problem);
  EXPECT_EQ(again.decisions, plan.decisions);
  EXPECT_EQ(again.comment, plan.comment);
}

// A plan must equal its problem in everything but the decisions, fields left out included.
TEST(PlanFile, KeepsWhichFieldsAreGiven) {
  json before = json::parse(kPlan), after = json::parse(written(parse_plan(kPlan)));
  for (const char* field :
       {"name", "comment", "period", "machine", "limit", "chunk", "align", "layout", "lazy_malloc", "ops"}) {
    EXPECT_EQ(before.contains(field), after.contains(field)) << field;
    EXPECT_EQ(before.value(field, json()), after.value(field, json())) << field;
  }
  for (json* document : {&before, &after}) {
    for (json& block : (*document)["blocks"]) block.erase("window");
  }
  EXPECT_EQ(before["blocks"], after["blocks"]);
}

// Made in memory, without spelling: a stream is written with the age in front of it, and nothing else changes.
TEST(PlanFile, StreamsAreKept) {
  PlanFile plan = parse_plan(kPlan);
  plan.spelling = {};
  plan.problem.operations[0].stream = 5;
  plan.problem.operations[2].stream = 4294967295;
  plan.problem.operations[4].stream = 1;
  const json ops = json::parse(written(plan))["ops"];
  EXPECT_EQ(ops[0], json::parse(R"(["m",7,0,0,5])"));
  EXPECT_EQ(ops[2], json::parse(R"(["x",-1,20,0,4294967295])"));
  EXPECT_EQ(ops[4][4], 1);
  EXPECT_EQ(parse_plan(written(plan)).problem, plan.problem);
  EXPECT_EQ(refusal(json::parse(kPlan), "/ops/3/4", -1),
            "ops[3]: stream: expected an integer from 0 to 4294967295, found -1");
}

TEST(PlanFile, SaysWhereTextIsNoPlan) {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      parse_plan(text);
    } catch (const Invalid& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("{\n\"period\": 1e999}"),
            "not JSON: line 2: [json.exception.out_of_range.406] number overflow parsing '1e999'");
  // Deeper, printing what was found would take all of the stack.
  EXPECT_EQ(fault("{\"ops\":\n" + std::string(1 << 20, '[')),
            "line 2: expected lists and objects in each other at most 32 deep, found more");
  EXPECT_EQ(fault("{\"name\": \"\\\"" + std::string(100, '[') + "\"}").substr(0, 7), "format:");
  EXPECT_LT(fault("{\"name\": \"" + std::string(100'000, 'a')).size(), 1000u);
}

TEST(PlanFile, DecisionsWithoutPlacesHaveNoOffsets) {
  PlanFile plan = parse_plan(kPlan);
  plan.decisions.places.clear();
  EXPECT_FALSE(json::parse(written(plan))["blocks"][0].contains("offset"));
  EXPECT_TRUE(parse_plan(written(plan)).decisions.places.empty());
}

TEST(PlanFile, WhereBlocksReturnToIsTheSecondFormat) {
  PlanFile plan = parse_plan(kPlan);
  plan.problem.machine.remap_ns = 74000;
  plan.decisions.swaps[0].returns_to = {2097152};
  const json document = json::parse(written(plan));
  EXPECT_EQ(document["format"], "memopt-plan-2");
  EXPECT_EQ(document["machine"]["remap_ns"], 74000);
  EXPECT_EQ(document["swaps"][0]["offset"], 2097152);
  const PlanFile again = parse_plan(document.dump());
  EXPECT_EQ(again.problem, plan.problem);
  EXPECT_EQ(again.decisions, plan.decisions);
  plan.decisions.swaps[0].returns_to = {2097152, 0};
  EXPECT_EQ(json::parse(written(plan))["swaps"][0]["offset"], json::parse("[2097152, 0]"));
  EXPECT_EQ(parse_plan(written(plan)).decisions, plan.decisions);
  EXPECT_EQ(refusal(document, "/machine/remap_ns", -1), "machine.remap_ns: expected a number from 0 to 2^62, found -1");
  EXPECT_EQ(refusal(document, "/swaps/0/offset", json::array()), "swaps[0].offset: expected 1 to 8 offsets, found []");
}

TEST(PlanFile, LaunchesAndStepsAreTheSecondFormat) {
  PlanFile plan = parse_plan(kPlan);
  plan.decisions = {};
  plan.launches = true;
  const std::size_t n = plan.problem.operations.size();
  const json without = json::parse(written(plan));
  EXPECT_EQ(without["format"], "memopt-plan-2");
  EXPECT_EQ(without["launches"], json::array());
  const std::size_t first = 1;
  plan.problem.operations[first + 1].continues = true;
  plan.recompute = {{1, true, 0}, {static_cast<std::uint32_t>(n), false, static_cast<std::uint32_t>(first)}};
  const json document = json::parse(written(plan));
  EXPECT_EQ(document["launches"], json::array({json::array({first, 2})}));
  EXPECT_EQ(document["recompute"][0], (json{{"before", 1}, {"drop", plan.problem.blocks[0].id}}));
  EXPECT_EQ(document["recompute"][1], (json{{"before", n}, {"replay", first}}));
  const PlanFile again = parse_plan(document.dump());
  EXPECT_EQ(again.problem, plan.problem);
  EXPECT_EQ(again.recompute, plan.recompute);
  EXPECT_TRUE(again.launches);
  EXPECT_EQ(refusal(document, "/launches/0/1", 0).substr(0, 34), "launches[0]: number: expected an i");
  EXPECT_EQ(refusal(document, "/launches/0", json::array({0, 1})),
            "launches[0]: expected operations of kind r, w or x, and operation 0 is none");
  EXPECT_EQ(refusal(document, "/launches/0", 3), "launches[0]: expected [first, number], found 3");
  EXPECT_EQ(refusal(document, "/recompute/0/replay", 0), "recompute[0]: expected drop or replay, and not both");
  EXPECT_EQ(refusal(document, "/recompute/0/before", n + 1).substr(0, 44),
            "recompute[0].before: expected an integer fro");
  EXPECT_EQ(refusal(json::parse(kPlan), "/launches", json::array()).substr(0, 23), "launches: unknown field");
}

TEST(PlanFile, ReplaysHavePlaces) {
  PlanFile plan = parse_plan(kPlan);
  plan.recompute = {{7, false, 1, {{0, {{128}, true}}, {1, {{0, 64}, false}}}}, {7, false, 1}};
  const json document = json::parse(written(plan));
  EXPECT_EQ(document["recompute"][0]["places"], json::parse(R"([{"block": 7, "offset": 128, "window": "own"},
                            {"block": 3, "offset": [0, 64], "window": "linear"}])"));
  EXPECT_FALSE(document["recompute"][1].contains("places"));
  EXPECT_EQ(parse_plan(document.dump()).recompute, plan.recompute);
  EXPECT_EQ(refusal(document, "/recompute/0/places/0/block", 5),
            "recompute[0].places[0].block: expected the id of a block, found 5");
  EXPECT_EQ(refusal(document, "/recompute/0/places/0/offset", -8),
            "recompute[0].places[0].offset: expected an integer from 0 to 4611686018427387904, found -8");
  EXPECT_EQ(refusal(document, "/recompute/0/places/1/window", "wide"),
            R"(recompute[0].places[1].window: expected "own" or "linear", found "wide")");
  EXPECT_EQ(refusal(document, "/recompute/0/places/1", 3).substr(0, 43), "recompute[0].places[1]: expected an object,");
  EXPECT_EQ(refusal(document, "/recompute/0/places", 3), "recompute[0].places: expected a list, found 3");
  EXPECT_EQ(refusal(document, "/recompute/0/places/0", json{{"block", 7}}),
            "recompute[0].places[0].offset: is missing; expected bytes");
  EXPECT_EQ(refusal(document, "/recompute/1", json{{"before", 7}, {"drop", 7}, {"places", json::array()}}),
            "recompute[1].places: a drop has none");
}

TEST(PlanFile, NamesTheFieldAndWhatWasExpected) {
  const json plan = json::parse(kPlan);
  EXPECT_EQ(refusal(plan, "/surprise", 1).substr(0, 24), "surprise: unknown field;");
  EXPECT_EQ(refusal(plan, "/format", "x"), R"(format: expected "memopt-plan-1" or "memopt-plan-2", found "x")");
  EXPECT_EQ(refusal(plan, "/machine/remap_ns", 1).substr(0, 31), "machine.remap_ns: unknown field");
  EXPECT_EQ(refusal(plan, "/swaps/0/offset", 0).substr(0, 30), "swaps[0].offset: unknown field");
  EXPECT_EQ(refusal(plan, "/chunk", 0), "chunk: expected an integer from 1 to 4611686018427387904, found 0");
  EXPECT_EQ(refusal(plan, "/limit", -1), "limit: expected an integer from 0 to 4611686018427387904, found -1");
  EXPECT_EQ(refusal(plan, "/layout", 1), "layout: expected true or false, found 1");
  EXPECT_EQ(refusal(plan, "/machine/rate", 1).substr(0, 27), "machine.rate: unknown field");
  EXPECT_EQ(refusal(plan, "/blocks/1/id", 7), "blocks[1].id: block 7 is given twice");
  EXPECT_EQ(refusal(plan, "/blocks/1/window", "wide"), R"(blocks[1].window: expected "own" or "linear", found "wide")");
  EXPECT_EQ(refusal(plan, "/blocks/0/offset", json::array()), "blocks[0].offset: expected 1 to 8 offsets, found []");
  EXPECT_EQ(refusal(plan, "/ops/1/0", "z"), R"(ops[1]: kind: expected m, f, r, w or x, found "z")");
  EXPECT_EQ(refusal(plan, "/ops/1/1", 8), "ops[1]: block: expected the id of a block, found 8");
  EXPECT_EQ(refusal(plan, "/ops/1/3", 8), "ops[1]: age: expected an integer from 0 to 7, found 8");
  EXPECT_EQ(refusal(plan, "/ops/2/1", 7), "ops[2]: block: expected -1 for an operation of kind x, found 7");
  EXPECT_EQ(refusal(plan, "/ops/1/2", 9007199254740993U),
            "ops[1]: time: expected an integer from 0 to 9007199254740992, found 9007199254740993");
  EXPECT_EQ(refusal(plan, "/swaps/0/copy", 1), "swaps[0].copy: expected true or false, found 1");
  EXPECT_EQ(refusal(plan, "/swaps/0/out_after", "x"),
            R"(swaps[0].out_after: expected an integer from 0 to 4611686018427387904, found "x")");
  EXPECT_EQ(refusal(plan, "/period", 1e19), "period: expected a number from 0 to 2^62, found 1e+19");
  EXPECT_EQ(refusal(plan, "/\x1b[1m", 1).substr(0, 20), "?[1m: unknown field;");
  EXPECT_THROW(parse_plan("{"), Invalid);
  EXPECT_THROW(parse_plan("[]"), Invalid);
  EXPECT_THROW(read_plan("/nonexistent/plan.json"), Invalid);
}

}  // namespace
}  // namespace memopt::swap
