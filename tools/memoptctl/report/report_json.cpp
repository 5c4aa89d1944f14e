#include "tools/memoptctl/report/report_json.h"

#include <cstdint>
#include <ctime>
#include <vector>

#include "planner/json/tree.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/page/columns.h"
#include "tools/memoptctl/page/iteration_json.h"
#include "tools/memoptctl/page/page.h"

namespace memopt::tools {
namespace {

using Json = nlohmann::json;

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
          {"program", shown_name(program.info.program)},
          {"command", shown_name(command)},
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
  Json json = {{"format", kPageFormat},
               {"kind", "report"},
               {"version", version},
               {"file", printable(file.substr(file.rfind('/') + 1))},
               {"iteration", model.iteration ? iteration_json(*model.iteration) : Json()},
               {"no_iteration", shown_name(model.no_iteration)},
               {"no_swaps", shown_name(model.no_swaps)}};
  if (model.file) {
    json.update({{"facts", shown_name(model.file->facts)},
                 {"peak_load", model.file->peak_load},
                 {"operations", names_json(model.file->operations)}});
    return script_text(json);
  }
  json.update({{"program", program_json(model.program)},
               {"peak", peak_json(model.program)},
               {"load", load_json(model.program)},
               {"frames", names_json(model.program.frames.all())},
               {"stacks", stacks_json(model.program.stacks)},
               {"operations", names_json(model.program.operations.all())},
               {"planned", model.planning.plan ? planned_json(*model.planning.plan) : Json()},
               {"assumed", shown_name(model.planning.assumed)},
               {"ignored_accesses", model.planning.ignored}});
  return script_text(json);
}

}  // namespace memopt::tools
