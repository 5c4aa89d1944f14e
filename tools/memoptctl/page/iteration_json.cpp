#include "tools/memoptctl/page/iteration_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/memoptctl/page/columns.h"

namespace memopt::tools {
namespace {

using Json = nlohmann::json;

// Times of drawings, whole numbers of a unit that is a nanosecond where that fits into 32 bits.
class Ticks {
 public:
  explicit Ticks(double longest) {
    while (longest / unit_ > 4e9) unit_ *= 2;
  }
  double unit() const { return unit_; }
  double operator()(double ns) const { return std::round(ns / unit_); }

 private:
  double unit_ = 1;
};

Json drawn_json(const DrawnPlan& plan, const Ticks& ticks) {
  const auto times = [&](const auto& items, auto member) {
    return column_of<std::uint32_t>(items, [&](const auto& one) { return ticks(one.*member); });
  };
  return {{"length_ns", plan.length},
          {"rounds", plan.rounds},
          {"blocks",
           {{"block", column_of<std::uint32_t>(plan.blocks, [](const DrawnBlock& one) { return one.block; })},
            {"phase", column_of<std::uint8_t>(plan.blocks, [](const DrawnBlock& one) { return one.phase; })},
            {"offset", column_of<double>(plan.blocks, [](const DrawnBlock& one) { return one.offset; })},
            {"from", times(plan.blocks, &DrawnBlock::from)},
            {"to", times(plan.blocks, &DrawnBlock::to)}}},
          {"copies",
           {{"block", column_of<std::uint32_t>(plan.copies, [](const DrawnCopy& one) { return one.block; })},
            {"in", column_of<std::uint8_t>(plan.copies, [](const DrawnCopy& one) { return one.in; })},
            {"from", times(plan.copies, &DrawnCopy::from)},
            {"to", times(plan.copies, &DrawnCopy::to)}}},
          {"waits",
           {{"unplanned", times(plan.waits, &DrawnWait::unplanned)},
            {"from", times(plan.waits, &DrawnWait::from)},
            {"to", times(plan.waits, &DrawnWait::to)}}}};
}

Json plan_json(const ShownPlan& plan, const Ticks& ticks) {
  const PlanPoint& point = plan.point;
  const swap::Report& report = point.report;
  Json json = {
      {"swaps", plan.swaps},    {"of_file", plan.of_file},    {"limit", point.limit == 0 ? Json() : Json(point.limit)},
      {"wanted", point.wanted}, {"feasible", point.feasible}, {"footprint", point.footprint}};
  if (!point.feasible) return json;
  json.update({{"added_ns", report.timing.added_ns},
               {"wait_malloc_ns", report.timing.stall_malloc_ns},
               {"wait_access_ns", report.timing.stall_access_ns},
               {"moves", point.decisions.swaps.size()},
               {"bytes_out", report.bytes_out},
               {"bytes_in", report.bytes_in},
               {"peak_resident", report.peak_resident},
               {"out_utilisation", report.out_utilisation},
               {"in_utilisation", report.in_utilisation}});
  if (plan.drawn) json["drawn"] = drawn_json(*plan.drawn, ticks);
  return json;
}

Json blocks_json(const ShownIteration& iteration) {
  const auto& blocks = iteration.blocks;
  const auto flags = [](const ShownBlock& one) {
    return (one.persistent ? 1 : 0) | (one.pinned ? 2 : 0) | (one.made_again ? 4 : 0);
  };
  const auto use = [](const BlockUse& one) { return one.step | (one.writes ? 1U << 31 : 0U); };
  std::vector<std::uint32_t> start;
  for (const ShownBlock& block : blocks) start.push_back(block.first_use);
  start.push_back(static_cast<std::uint32_t>(iteration.uses.size()));
  Json json = {{"number", column_of<double>(blocks, [](const ShownBlock& one) { return one.number; })},
               {"bytes", column_of<double>(blocks, [](const ShownBlock& one) { return one.bytes; })},
               {"flags", column_of<std::uint8_t>(blocks, flags)},
               {"stack", column_of<std::uint32_t>(blocks, [](const ShownBlock& one) { return one.stack; })},
               {"born_ns", column_of<double>(blocks, [](const ShownBlock& one) { return one.born; })},
               {"freed_ns", column_of<double>(blocks, [](const ShownBlock& one) { return one.freed; })},
               {"accesses", column_of<std::uint32_t>(blocks, [](const ShownBlock& one) { return one.accesses; })},
               {"use_start", column(start)},
               {"use", column_of<std::uint32_t>(iteration.uses, use)}};
  if (!iteration.block_names.empty()) json["name"] = names_json(iteration.block_names);
  return json;
}

}  // namespace

Json iteration_json(const ShownIteration& iteration) {
  double longest = iteration.period;
  for (const ShownPlan& plan : iteration.plans) {
    if (plan.drawn) longest = std::max(longest, plan.drawn->length);
  }
  const Ticks ticks(longest);
  const auto begin = [&](const ShownStep& one) { return ticks(one.begin); };
  const auto length = [&](const ShownStep& one) { return ticks(one.begin + one.length) - ticks(one.begin); };
  Json plans = Json::array();
  for (const ShownPlan& plan : iteration.plans) plans.push_back(plan_json(plan, ticks));
  return {
      {"period_ns", iteration.period},
      {"tick_ns", ticks.unit()},
      {"times", iteration.times},
      {"blocks", blocks_json(iteration)},
      {"steps",
       {{"begin", column_of<std::uint32_t>(iteration.steps, begin)},
        {"length", column_of<std::uint32_t>(iteration.steps, length)},
        {"kind", column_of<std::uint8_t>(iteration.steps, [](const ShownStep& one) { return one.kind; })},
        {"name", column_of<std::uint32_t>(iteration.steps, [](const ShownStep& one) { return one.name; })}}},
      {"load",
       {{"at_ns", column_of<double>(iteration.load, [](const LoadLevel& one) { return one.at; })},
        {"bytes", column_of<double>(iteration.load, [](const LoadLevel& one) { return one.bytes; })}}},
      {"peak", {{"load", iteration.peak_load}, {"at_ns", iteration.peak_at}, {"blocks", column(iteration.at_peak)}}},
      {"plans", std::move(plans)},
      {"least_limit", iteration.least_limit == 0 ? Json() : Json(iteration.least_limit)},
      {"left_out_limits", iteration.left_out},
      {"interrupted", iteration.interrupted},
      {"machine", iteration.machine}};
}

}  // namespace memopt::tools
