#include "tools/memoptctl/report/report_json.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "planner/json/tree.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestName = 400;

std::string base64(const void* data, std::size_t bytes) {
  using namespace boost::archive::iterators;
  using Encode = base64_from_binary<transform_width<const unsigned char*, 6, 8>>;
  const auto* const begin = static_cast<const unsigned char*>(data);
  std::string text(Encode(begin), Encode(begin + bytes));
  text.append((3 - bytes % 3) % 3, '=');
  return text;
}

// Shorter columns are not worth a call of the browser's to unpack them.
constexpr std::size_t kLeastPacked = 512;

std::string packed_by_zlib(const void* data, std::size_t bytes) {
  uLongf size = compressBound(bytes);
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, static_cast<const Bytef*>(data), bytes,
                Z_DEFAULT_COMPRESSION) != Z_OK) {
    throw std::runtime_error("zlib can't pack the page's data");
  }
  packed.resize(size);
  return packed;
}

// Little-endian, as all machines that this is built for.
template <typename Number>
Json column(const std::vector<Number>& numbers) {
  static_assert(std::is_same_v<Number, double> || std::is_same_v<Number, float> ||
                std::is_same_v<Number, std::uint32_t> || std::is_same_v<Number, std::uint8_t>);
  const char* const type = std::is_same_v<Number, double>          ? "f64"
                           : std::is_same_v<Number, float>         ? "f32"
                           : std::is_same_v<Number, std::uint32_t> ? "u32"
                                                                   : "u8";
  const std::size_t bytes = numbers.size() * sizeof(Number);
  if (bytes < kLeastPacked) return {{"type", type}, {"base64", base64(numbers.data(), bytes)}};
  const std::string packed = packed_by_zlib(numbers.data(), bytes);
  return {{"type", type}, {"zlib", true}, {"base64", base64(packed.data(), packed.size())}};
}

template <typename Number, typename Items, typename Value>
Json column_of(const Items& items, const Value& value) {
  std::vector<Number> numbers;
  numbers.reserve(items.size());
  for (const auto& item : items) numbers.push_back(static_cast<Number>(value(item)));
  return column(numbers);
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(printable(name, kLongestName));
  return list;
}

std::string date_text(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return "";
  const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm parts{};
  char text[40];
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

Json program_json(const RecordedProgram& program) {
  std::string command;
  for (const std::string& word : program.info.arguments) command += (command.empty() ? "" : " ") + word;
  return {{"recording", program.recording},
          {"program", printable(program.info.program, kLongestName)},
          {"command", printable(command, kLongestName)},
          {"device", printable(program.info.device)},
          {"recorded", date_text(program.info.started)},
          {"records", program.records},
          {"missing_records", program.missing},
          {"mallocs", program.mallocs},
          {"frees", program.frees},
          {"launches", program.launches},
          {"copies", program.copies},
          {"memsets", program.memsets},
          {"kernels", program.kernels},
          {"blind_launches", program.blind_launches},
          {"length_ns", program.length_ns},
          {"iteration_known_ns", program.marked_ns},
          {"damage", program.damage},
          {"call_stacks", program.has_stacks}};
}

Json peak_json(const RecordedProgram& program) {
  return {{"load", program.peak_load},
          {"record", program.peak_record},
          {"at_ns", program.peak_ns},
          {"blocks", program.peak_blocks},
          {"reserved_by_caching_allocator", program.reserved == 0 ? Json() : Json(program.reserved)},
          {"number", column_of<double>(program.at_peak, [](const PeakBlock& one) { return one.number; })},
          {"bytes", column_of<double>(program.at_peak, [](const PeakBlock& one) { return one.bytes; })},
          {"stack", column_of<std::uint32_t>(program.at_peak, [](const PeakBlock& one) { return one.stack; })},
          {"born_ns", column_of<double>(program.at_peak, [](const PeakBlock& one) { return one.born_ns; })},
          {"freed_ns", column_of<double>(program.at_peak, [](const PeakBlock& one) { return one.freed_ns; })}};
}

Json load_json(const RecordedProgram& program) {
  return {{"end_ns", column_of<double>(program.load, [](const LoadPiece& one) { return one.end_ns; })},
          {"least", column_of<double>(program.load, [](const LoadPiece& one) { return one.least; })},
          {"most", column_of<double>(program.load, [](const LoadPiece& one) { return one.most; })},
          {"reserved", column_of<double>(program.load, [](const LoadPiece& one) { return one.reserved; })}};
}

Json stacks_json(const Stacks& stacks) {
  std::vector<std::uint32_t> start{0}, frames;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    frames.insert(frames.end(), stacks[i].begin(), stacks[i].end());
    start.push_back(static_cast<std::uint32_t>(frames.size()));
  }
  return {{"start", column(start)}, {"frame", column(frames)}};
}

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

Json plan_json(const ReportedPlan& plan, const Ticks& ticks) {
  const SweepPoint& point = plan.point;
  const swap::Report& report = point.report;
  Json json = {{"swaps", plan.swaps},
               {"limit", point.limit == 0 ? Json() : Json(point.limit)},
               {"wanted", point.wanted},
               {"feasible", point.feasible},
               {"footprint", point.footprint}};
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

Json blocks_json(const ReportedIteration& iteration) {
  const auto& blocks = iteration.blocks;
  const auto flags = [](const ReportedBlock& one) { return (one.persistent ? 1 : 0) | (one.pinned ? 2 : 0); };
  const auto use = [](const BlockUse& one) { return one.step | (one.writes ? 1U << 31 : 0U); };
  std::vector<std::uint32_t> start;
  for (const ReportedBlock& block : blocks) start.push_back(block.first_use);
  start.push_back(static_cast<std::uint32_t>(iteration.uses.size()));
  return {{"number", column_of<double>(blocks, [](const ReportedBlock& one) { return one.number; })},
          {"bytes", column_of<double>(blocks, [](const ReportedBlock& one) { return one.bytes; })},
          {"flags", column_of<std::uint8_t>(blocks, flags)},
          {"stack", column_of<std::uint32_t>(blocks, [](const ReportedBlock& one) { return one.stack; })},
          {"born_ns", column_of<double>(blocks, [](const ReportedBlock& one) { return one.born; })},
          {"freed_ns", column_of<double>(blocks, [](const ReportedBlock& one) { return one.freed; })},
          {"accesses", column_of<std::uint32_t>(blocks, [](const ReportedBlock& one) { return one.accesses; })},
          {"use_start", column(start)},
          {"use", column_of<std::uint32_t>(iteration.uses, use)}};
}

Json iteration_json(const ReportModel& model) {
  const ReportedIteration& iteration = *model.iteration;
  double longest = iteration.period;
  for (const ReportedPlan& plan : iteration.plans) {
    if (plan.drawn) longest = std::max(longest, plan.drawn->length);
  }
  const Ticks ticks(longest);
  const auto begin = [&](const ReportedStep& one) { return ticks(one.begin); };
  const auto length = [&](const ReportedStep& one) { return ticks(one.begin + one.length) - ticks(one.begin); };
  Json plans = Json::array();
  for (const ReportedPlan& plan : iteration.plans) plans.push_back(plan_json(plan, ticks));
  return {
      {"period_ns", iteration.period},
      {"tick_ns", ticks.unit()},
      {"times", times_text(model.planning)},
      {"blocks", blocks_json(iteration)},
      {"steps",
       {{"begin", column_of<std::uint32_t>(iteration.steps, begin)},
        {"length", column_of<std::uint32_t>(iteration.steps, length)},
        {"kind", column_of<std::uint8_t>(iteration.steps, [](const ReportedStep& one) { return one.kind; })},
        {"name", column_of<std::uint32_t>(iteration.steps, [](const ReportedStep& one) { return one.name; })}}},
      {"load",
       {{"at_ns", column_of<double>(iteration.load, [](const LoadLevel& one) { return one.at; })},
        {"bytes", column_of<double>(iteration.load, [](const LoadLevel& one) { return one.bytes; })}}},
      {"peak", {{"load", iteration.peak_load}, {"at_ns", iteration.peak_at}, {"blocks", column(iteration.at_peak)}}},
      {"plans", std::move(plans)},
      {"least_limit", iteration.least_limit == 0 ? Json() : Json(iteration.least_limit)},
      {"left_out_limits", iteration.left_out},
      {"interrupted", iteration.interrupted},
      {"machine", machine_text(iteration.machine)}};
}

Json planned_json(const FilePlan& plan) {
  return {{"operations", plan.operations},
          {"found_at", plan.found_at},
          {"began_at", plan.began_at},
          {"lanes", plan.lanes},
          {"mallocs", plan.mallocs},
          {"persistent_blocks", plan.persistent_blocks},
          {"persistent_bytes", plan.persistent_bytes},
          {"peak_load", plan.peak_load},
          {"slab", plan.slab},
          {"lower_bound", plan.lower_bound},
          {"footprint", plan.footprint},
          {"rounding", plan.rounding},
          {"rounds", plan.rounds},
          {"layout", plan.solver}};
}

}  // namespace

std::string report_json(const ReportModel& model, const std::string& file, const std::string& version) {
  const Json json = {{"format", "memopt-report-1"},
                     {"version", version},
                     {"file", printable(file.substr(file.rfind('/') + 1))},
                     {"program", program_json(model.program)},
                     {"peak", peak_json(model.program)},
                     {"load", load_json(model.program)},
                     {"frames", names_json(model.program.frames.all())},
                     {"stacks", stacks_json(model.program.stacks)},
                     {"operations", names_json(model.program.operations.all())},
                     {"planned", model.planning.plan ? planned_json(*model.planning.plan) : Json()},
                     {"iteration", model.iteration ? iteration_json(model) : Json()},
                     {"no_iteration", printable(model.no_iteration, kLongestName)},
                     {"no_swaps", printable(model.no_swaps, kLongestName)},
                     {"assumed", printable(model.planning.assumed, kLongestName)},
                     {"ignored_accesses", model.planning.ignored}};
  // In strings only: nothing that ends the element which the page has it in, or begins another.
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 64);
  for (const char letter : text) {
    if (letter == '<' || letter == '>' || letter == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

}  // namespace memopt::tools
