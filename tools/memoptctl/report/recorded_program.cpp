#include "tools/memoptctl/report/recorded_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planner/iteration/trace_file.h"
#include "planner/recording/format.h"
#include "planner/recording/reader.h"
#include "planner/recording/summary.h"
#include "planner/sending/framework_memory.h"
#include "shm/record.h"
#include "tools/memoptctl/symbols/symbols.h"

namespace memopt::tools {
namespace {

using shm::RecordKind;

// Far above what programs have, as in planner::summarise; a made-up file must not take all memory.
constexpr std::size_t kMostBlocks = 8'000'000;
constexpr std::size_t kMostNameBytes = std::size_t{256} << 20;

const char* copy_name(std::uint32_t kind) {
  switch (static_cast<shm::CopyKind>(kind)) {
    case shm::CopyKind::kToDevice:
      return "copy to the device";
    case shm::CopyKind::kToHost:
      return "copy to the host";
    case shm::CopyKind::kOnDevice:
      return "copy on the device";
    default:
      return "copy";
  }
}

// What has to be known before the records are read for the report itself.
struct Outline {
  std::uint64_t peak_record = 0;
  std::uint64_t peak_load = 0;
  double length_ns = 0;
  std::uint64_t marked = 0;
};

class Collector {
 public:
  Collector(RecordedProgram& program, const Outline& outline, const planner::IterationProblem* iteration)
      : program_(program), outline_(outline) {
    if (iteration == nullptr) return;
    program_.steps.resize(iteration->origins.size());
    program_.persistent_stack.assign(iteration->persistent_numbers.size(), kNoStack);
    for (std::size_t i = 0; i < iteration->origins.size(); ++i) steps_[iteration->origins[i].sequence] = i;
    for (std::size_t i = 0; i < iteration->persistent_numbers.size(); ++i) {
      persistent_[iteration->persistent_numbers[i]] = i;
    }
  }

  // `stack_of`: number of the call stack of an allocation.
  template <typename StackOf>
  void add(const shm::RecordView& record, double ns, StackOf& stack_of) {
    const std::uint64_t sequence = record.header.sequence;
    if (began_ && sequence != last_ + 1) whole_ = false;
    began_ = true;
    last_ = sequence;
    framework_.add(record, {});
    const auto found = steps_.find(sequence);
    RecordedProgram::Step* const step = found != steps_.end() ? &program_.steps[found->second] : nullptr;
    switch (record.kind()) {
      case RecordKind::kMalloc:
        malloc(record.as<shm::MallocBody>(), ns, step, stack_of);
        break;
      case RecordKind::kFree:
        ++program_.frees;
        if (step != nullptr) step->kind = StepKind::kFree;
        free(record.as<shm::FreeBody>().block, ns);
        break;
      case RecordKind::kLaunch:
        ++program_.launches;
        if ((record.header.flags & shm::kBlindLaunch) != 0) ++program_.blind_launches;
        if (step != nullptr) *step = {StepKind::kLaunch, function(record.header.aux)};
        break;
      case RecordKind::kCopy:
        ++program_.copies;
        if (step != nullptr) *step = {StepKind::kCopy, program_.operations.number(copy_name(record.header.aux))};
        break;
      case RecordKind::kMemset:
        ++program_.memsets;
        if (step != nullptr) *step = {StepKind::kMemset, program_.operations.number("memset")};
        break;
      case RecordKind::kFunction:
        name_function(record);
        break;
      default:
        break;
    }
    note_load(ns);
    if (sequence == outline_.marked) program_.marked_ns = ns;
    if (sequence == outline_.peak_record) at_peak(ns);
  }

  void finish() {
    program_.kernels = functions_.size();
    program_.peak_load = outline_.peak_load;
    program_.peak_record = outline_.peak_record;
    program_.length_ns = outline_.length_ns;
    program_.reserved = whole_ ? framework_.reserved() : 0;
    if (!whole_) {
      for (LoadPiece& piece : program_.load) piece.reserved = 0;
    }
    for (const auto& [number, index] : at_peak_) {
      const auto freed = freed_.find(number);
      if (freed != freed_.end()) program_.at_peak[index].freed_ns = freed->second;
    }
  }

 private:
  struct Live {
    std::uint64_t bytes;
    std::uint32_t stack;
    double born_ns;
  };

  template <typename StackOf>
  void malloc(const shm::MallocBody& body, double ns, RecordedProgram::Step* step, StackOf& stack_of) {
    ++program_.mallocs;
    const std::uint32_t stack = stack_of(body);
    if (step != nullptr) *step = {StepKind::kMalloc, kNoName, stack};
    if (const auto one = persistent_.find(body.block); one != persistent_.end()) {
      program_.persistent_stack[one->second] = stack;
    }
    if (live_.size() >= kMostBlocks) return;
    const auto [block, fresh] = live_.try_emplace(body.block, Live{body.bytes, stack, ns});
    if (!fresh) {
      bytes_ -= block->second.bytes;
      block->second = {body.bytes, stack, ns};
    }
    bytes_ += body.bytes;
  }

  void free(std::uint64_t number, double ns) {
    const auto block = live_.find(number);
    if (block == live_.end()) return;
    bytes_ -= block->second.bytes;
    live_.erase(block);
    if (at_peak_.contains(number)) freed_.try_emplace(number, ns);
  }

  void name_function(const shm::RecordView& record) {
    const auto body = record.as<shm::NameBody>();
    const auto bytes = record.bytes_behind<shm::NameBody>(body.length);
    std::string name = kernel_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (name_bytes_ > kMostNameBytes) return;
    name_bytes_ += name.size() + sizeof name;
    functions_[static_cast<std::uint32_t>(body.id)] = std::move(name);
  }

  std::uint32_t function(std::uint32_t id) {
    // As planner::record_of numbers them.
    if (!program_.recording) return program_.operations.number(id == 1 ? "read" : id == 2 ? "write" : "layer");
    const auto named = functions_.find(id);
    const bool has_name = named != functions_.end() && !named->second.empty();
    return program_.operations.number(has_name ? named->second : "kernel " + std::to_string(id));
  }

  void note_load(double ns) {
    const double part = outline_.length_ns > 0 ? ns / outline_.length_ns : 0;
    const auto piece = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * (kLoadPieces - 1));
    // Threads do not write in the order of their clocks.
    while (program_.load.size() <= piece) {
      program_.load.push_back({outline_.length_ns * static_cast<double>(program_.load.size() + 1) / kLoadPieces, level_,
                               level_, reserved_});
    }
    LoadPiece& last = program_.load.back();
    last.least = std::min(last.least, bytes_);
    last.most = std::max(last.most, bytes_);
    last.reserved = reserved_ = framework_.reserved();
    level_ = bytes_;
  }

  void at_peak(double ns) {
    program_.peak_ns = ns;
    program_.peak_blocks = live_.size();
    program_.at_peak.reserve(live_.size());
    for (const auto& [number, block] : live_) {
      program_.at_peak.push_back({number, block.bytes, block.stack, block.born_ns, -1});
    }
    std::sort(program_.at_peak.begin(), program_.at_peak.end(), [](const PeakBlock& a, const PeakBlock& b) {
      return std::pair(b.bytes, a.number) < std::pair(a.bytes, b.number);
    });
    if (program_.at_peak.size() > kMostPeakBlocks) program_.at_peak.resize(kMostPeakBlocks);
    for (std::size_t i = 0; i < program_.at_peak.size(); ++i) at_peak_[program_.at_peak[i].number] = i;
  }

  RecordedProgram& program_;
  const Outline outline_;
  planner::FrameworkMemory framework_;
  std::unordered_map<std::uint64_t, std::size_t> steps_;  // sequence -> origin
  std::unordered_map<std::uint64_t, std::size_t> persistent_;
  std::unordered_map<std::uint64_t, Live> live_;
  std::unordered_map<std::uint32_t, std::string> functions_;
  std::unordered_map<std::uint64_t, std::size_t> at_peak_;
  std::unordered_map<std::uint64_t, double> freed_;
  std::uint64_t bytes_ = 0, last_ = 0;
  std::uint64_t level_ = 0, reserved_ = 0;  // of the last record
  std::size_t name_bytes_ = 0;
  bool began_ = false, whole_ = true;
};

// Call stacks as the page has them: each file and place in it once.
class StackNames {
 public:
  StackNames(RecordedProgram& program, const planner::Summary& summary)
      : program_(program), summary_(summary), symbols_(summary.modules) {}

  // Each record, before it is asked for the stack of one.
  void add(std::uint32_t lane, const shm::RecordView& record) {
    lane_ = lane;
    python_.add(lane, record);
  }

  std::uint32_t operator()(const shm::MallocBody& body) {
    const std::uint64_t python = python_.at(lane_);
    const auto key = std::tuple(body.stack, body.return_address, python);
    const auto known = numbers_.find(key);
    if (known != numbers_.end()) return known->second;
    std::vector<std::uint32_t> frames;
    const auto stack = summary_.stacks.find(body.stack);
    if (body.stack != 0 && stack != summary_.stacks.end() && !stack->second.empty()) {
      program_.has_stacks = true;
      for (const std::uint64_t address : stack->second) {
        // What calls the interpreter from here on is told by its own frames.
        if (python != 0 && is_interpreter(address)) break;
        frames.push_back(frame(address));
      }
    } else if (body.return_address != 0) {
      frames.push_back(frame(body.return_address));
    }
    for (const std::string& name : summary_.python.names(python)) {
      program_.has_stacks = true;
      frames.push_back(program_.frames.number(name));
    }
    const std::uint32_t number = frames.empty() ? kNoStack : program_.stacks.number(std::move(frames));
    numbers_.emplace(key, number);
    return number;
  }

 private:
  std::uint32_t frame(std::uint64_t address) {
    const std::string& function = symbols_.function(address).name;
    const std::string place = summary_.modules.name(address);
    return program_.frames.number(
        function.empty() ? place : kernel_name(function) + " (" + place.substr(0, place.rfind('+')) + ")");
  }

  bool is_interpreter(std::uint64_t address) {
    const std::string& function = symbols_.function(address).name;
    if (!function.empty()) return function.rfind("_Py", 0) == 0 || function.rfind("Py", 0) == 0;
    const std::string place = summary_.modules.name(address);
    return place.rfind("libpython", 0) == 0 || place.rfind("python", 0) == 0;
  }

  RecordedProgram& program_;
  const planner::Summary& summary_;
  Symbols symbols_;
  planner::PythonCode python_;
  std::uint32_t lane_ = 0;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint32_t> numbers_;
};

RecordedProgram read_recording(input::File& file, const planner::IterationProblem* iteration, std::uint64_t marked) {
  RecordedProgram program;
  program.recording = true;
  planner::RecordingReader first(file.stream());
  program.info = first.info();
  const planner::Summary summary = planner::summarise(first);
  program.records = summary.records;
  program.missing = summary.missing;
  if (summary.damage) program.damage = planner::to_string(*summary.damage);
  Collector collector(
      program, {summary.peak_sequence, summary.peak_load, static_cast<double>(summary.nanoseconds), marked}, iteration);
  StackNames stack_of(program, summary);
  planner::RecordingReader reader(file.stream());
  std::optional<std::uint64_t> begin;
  while (const auto entry = reader.next()) {
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    const std::uint64_t now = summary.clock.nanoseconds(entry->record.header.ticks);
    if (!begin) begin = now;
    stack_of.add(entry->lane, entry->record);
    collector.add(entry->record, now > *begin ? static_cast<double>(now - *begin) : 0, stack_of);
  }
  collector.finish();
  return program;
}

RecordedProgram read_text_trace(input::File& file, const planner::IterationProblem* iteration, std::uint64_t marked) {
  RecordedProgram program;
  const planner::Trace trace = planner::read_trace(file);
  program.records = trace.operations.size();
  planner::RecordBuilder first;
  Outline outline;
  outline.marked = marked;
  std::unordered_map<std::uint64_t, std::uint64_t> live;
  std::uint64_t bytes = 0, begin = 0, end = 0;
  for (const planner::TraceOperation& operation : trace.operations) {
    const shm::RecordView record = planner::record_of(operation, first);
    if (record.header.sequence == 1) begin = record.header.ticks;
    end = std::max(end, record.header.ticks);
    if (record.kind() == RecordKind::kMalloc) {
      const auto body = record.as<shm::MallocBody>();
      live[body.block] = body.bytes;
      bytes += body.bytes;
      if (bytes > outline.peak_load) {
        outline.peak_load = bytes;
        outline.peak_record = record.header.sequence;
      }
    } else if (record.kind() == RecordKind::kFree) {
      const auto block = live.find(record.as<shm::FreeBody>().block);
      if (block == live.end()) continue;
      bytes -= block->second;
      live.erase(block);
    }
  }
  outline.length_ns = end > begin ? static_cast<double>(end - begin) : 0;
  Collector collector(program, outline, iteration);
  planner::RecordBuilder builder;
  const auto no_stack = [](const shm::MallocBody&) { return kNoStack; };
  for (const planner::TraceOperation& operation : trace.operations) {
    const shm::RecordView record = planner::record_of(operation, builder);
    const std::uint64_t ticks = record.header.ticks;
    collector.add(record, ticks > begin ? static_cast<double>(ticks - begin) : 0, no_stack);
  }
  collector.finish();
  return program;
}

}  // namespace

RecordedProgram read_program(input::File& file, const planner::IterationProblem* iteration, std::uint64_t marked) {
  if (!planner::recording::is_recording(file.head())) return read_text_trace(file, iteration, marked);
  try {
    return read_recording(file, iteration, marked);
  } catch (const planner::RecordingError& error) {
    throw std::runtime_error(file.name() + ": " + error.what());
  }
}

}  // namespace memopt::tools
