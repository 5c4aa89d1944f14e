#include "tools/memoptctl/recompute/observed_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/observed/know.h"
#include "planner/recording/reader.h"
#include "shm/record.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

using recompute::Doubt;
using recompute::Doubts;
using recompute::Known;
using recompute::Observation;
using recompute::Seen;

// Names are for the list, and for people.
constexpr std::size_t kMostNamed = 1'000'000;
constexpr std::size_t kKernelsShown = 4;  // of each reason
constexpr std::size_t kLongestName = 64;

const char* text_of(Doubt doubt) {
  switch (doubt) {
    case Doubt::kNoDoubt:
      break;
    case Doubt::kMayChange:
      return "a launch changes what it makes no new block of, or may have";
    case Doubt::kPositions:
      return "the same, as it names another number of blocks than its line in the list";
    case Doubt::kNever:
      return "the list says never";
    case Doubt::kFromHost:
      return "copied from the host";
    case Doubt::kFromNothing:
      return "written by what reads nothing";
    case Doubt::kEscaped:
      return "a launch touches a block whose address is stored where uses are not seen";
    case Doubt::kBlind:
      return "written by a launch whose parameters could not be read";
    case Doubt::kElsewhere:
      return "a launch touches memory that is no block of the iteration";
    case Doubt::kLivesOn:
      return "a launch touches a block that lives on into the next iteration";
    case Doubt::kSourcesGone:
      return "what it is made of is changed or freed before, and can't be made again so late";
    case Doubt::kKept:
      return "may not leave";
  }
  return "";
}

// What the records of the iteration's operations say.
class Observer {
 public:
  explicit Observer(const ObservedIteration& iteration) {
    observation_.ranks = iteration.ranks;
    observation_.operations.resize(iteration.origins.size());
    for (std::size_t rank = 0; rank < iteration.origins.size(); ++rank) {
      observation_.operations[rank].elsewhere = iteration.origins[rank].elsewhere;
      ranks_.emplace(iteration.origins[rank].sequence, rank);
    }
  }

  Observation observe(input::File& file) {
    planner::RecordingReader reader(file.stream());
    while (const auto entry = reader.next()) {
      if (entry->kind == planner::recording::EntryKind::kRecord) add(entry->record);
    }
    return std::move(observation_);
  }

 private:
  void add(const shm::RecordView& record) {
    if (record.kind() == shm::RecordKind::kFunction) {
      const auto body = record.as<shm::NameBody>();
      const auto text = record.bytes_behind<shm::NameBody>(body.length);
      if (names_.size() < kMostNamed) {
        names_[body.id] = kernel(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
      }
      return;
    }
    const auto found = ranks_.find(record.header.sequence);
    if (found == ranks_.end()) return;
    Seen& seen = observation_.operations[found->second];
    switch (record.kind()) {
      case shm::RecordKind::kLaunch: {
        seen.kind = Seen::Kind::kLaunch;
        seen.blind = (record.header.flags & shm::kBlindLaunch) != 0;
        const auto name = names_.find(record.header.aux);
        if (name != names_.end()) seen.kernel = name->second;
        break;
      }
      case shm::RecordKind::kCopy: {
        const auto copy = record.as<shm::CopyBody>();
        seen.kind = Seen::Kind::kCopy;
        seen.from_host = copy.from == 0;
        seen.bytes = copy.bytes;
        break;
      }
      case shm::RecordKind::kMemset:
        seen.kind = Seen::Kind::kMemset;
        seen.bytes = record.as<shm::MemsetBody>().bytes;
        break;
      default:
        break;
    }
  }

  std::uint32_t kernel(std::string name) {
    const auto [found, is_new] = kernels_.emplace(name, static_cast<std::uint32_t>(observation_.kernels.size()));
    if (is_new) observation_.kernels.push_back(std::move(name));
    return found->second;
  }

  Observation observation_;
  std::unordered_map<std::uint64_t, std::size_t> ranks_;    // by sequence
  std::unordered_map<std::uint64_t, std::uint32_t> names_;  // by function
  std::unordered_map<std::string, std::uint32_t> kernels_;  // by name
};

// Rows of a name and a text; without a name, the row before goes on.
class Rows {
 public:
  void add(std::string_view name, const std::string& text) { text_ += fmt::format("{:<15}  {}\n", name, text); }
  void add_causes(const Doubts& doubts, const std::vector<std::string>& kernels) {
    std::vector<std::pair<Doubts::Cause, std::vector<Doubts::Cause>>> reasons;  // of all kernels together, and of each
    for (const Doubts::Cause& cause : doubts.causes) {
      auto found = std::find_if(reasons.begin(), reasons.end(),
                                [&](const auto& reason) { return reason.first.doubt == cause.doubt; });
      if (found == reasons.end()) found = reasons.insert(reasons.end(), {{cause.doubt, recompute::kNone, 0, 0}, {}});
      found->first.bytes += cause.bytes;
      found->first.blocks += cause.blocks;
      if (cause.kernel != recompute::kNone) found->second.push_back(cause);
    }
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const auto& a, const auto& b) { return a.first.bytes > b.first.bytes; });
    std::string_view name = "not made again";
    for (const auto& [all, by_kernel] : reasons) {
      add(std::exchange(name, ""), fmt::format("{} in {} blocks: {}", mib(all.bytes), all.blocks, text_of(all.doubt)));
      for (std::size_t i = 0; i < std::min(by_kernel.size(), kKernelsShown); ++i) {
        add("", fmt::format("  {} in {}: {}", mib(by_kernel[i].bytes), by_kernel[i].blocks,
                            printable(kernels[by_kernel[i].kernel], kLongestName)));
      }
      if (by_kernel.size() > kKernelsShown)
        add("", fmt::format("  and of {} kernels more", by_kernel.size() - kKernelsShown));
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string unused_lines(const recompute::KernelList& list, const Known& known) {
  std::string numbers;
  std::size_t unused = 0;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < list.rules().size(); ++i) {
    if (known.rules[i] != 0) continue;
    if (++unused <= kShown) numbers += fmt::format("{}{}", unused > 1 ? ", " : "", list.rules()[i].line);
  }
  if (unused == 0) return {};
  return fmt::format("{} of its {} patterns say nothing of a launch of the iteration: line {}{}", unused,
                     list.rules().size(), numbers, unused > kShown ? ", ..." : "");
}

void add_assumed(const SwapPlanOptions& options, const Known& known, bool recording, Rows& rows) {
  if (!recording) {
    rows.add("assumed", fmt::format("what is read and written without another line between is one launch: {} launches",
                                    known.launches));
    if (options.assume.empty()) {
      rows.add("", "what is Mutable is read as well, unless it is new, or persists and no line reads it:");
      rows.add("", fmt::format("  {} workspaces (--assume writes: it is not read)", known.workspaces));
    } else {
      rows.add("", "what is Mutable is not read, unless the launch has a line that reads it: that is not known");
    }
    rows.add("", fmt::format("a Mutable right before the Free of its block is part of that: {} lines", known.pointers));
    rows.add("", "a launch takes the time until the next one that writes");
    return;
  }
  if (options.assume.empty()) {
    rows.add("assumed", fmt::format("launches {}may have changed all blocks that they name and did not make",
                                    options.kernels.empty() ? "" : "of kernels that are not in the list "));
  } else {
    rows.add("assumed", fmt::format("launches {}that make a block only read the others that they name",
                                    options.kernels.empty() ? "" : "of kernels that are not in the list, and "));
    rows.add("", "  that is not known: one that changes another, too, would change it twice");
  }
}

}  // namespace

void refuse_for_known(const SwapPlanOptions& options, const SwapProblem& input) {
  const bool recording = input.observed && input.observed->recording;
  if (!options.kernels.empty() && !recording)
    throw std::invalid_argument("--kernels is for recordings, as nothing else names kernels");
  if (options.assume.empty()) return;
  if (!input.observed)
    throw std::invalid_argument("--assume is for recordings and text traces; what the file's launches write is known");
  const char* const expected = recording ? "reads, for a recording" : "writes, for a text trace";
  if (options.assume != (recording ? "reads" : "writes"))
    throw std::invalid_argument(fmt::format("--assume: expected {}, not {}", expected, printable(options.assume)));
}

std::string know_launches(const SwapPlanOptions& options, input::File& file, SwapProblem& input) {
  const bool recording = input.observed->recording;
  Known known;
  Observation observation;
  recompute::KernelList list;
  std::uint64_t pinned = 0;
  for (const swap::Block& block : input.file.problem.blocks) pinned += block.pinned ? 1 : 0;
  if (recording) {
    if (!options.kernels.empty()) {
      input::File kernels(options.kernels);
      list = recompute::KernelList::read(kernels);
    }
    observation = Observer(*input.observed).observe(file);
    known = know_recording(input.file.problem, observation, list, !options.assume.empty());
  } else {
    known = recompute::know_trace(input.file.problem, !options.assume.empty());
  }
  const swap::Liveness liveness = swap::find_liveness(known.problem);
  const Doubts doubts = find_doubts(known, liveness, recompute::make_graph(known.problem, liveness));

  Rows rows;
  add_assumed(options, known, recording, rows);
  if (const std::string unused = unused_lines(list, known); !unused.empty()) rows.add("list", unused);
  if (known.blind != 0) {
    rows.add("blind launches", fmt::format("{}: what they touch is not known; {} blocks that live while they run stay",
                                           known.blind, known.kept));
  }
  if (pinned != 0) {
    rows.add("escaped",
             fmt::format("{} blocks may not leave, and no launch that names one is replayed; what launches", pinned));
    rows.add("", "  touch by addresses that are stored in other blocks is not seen");
  }
  rows.add("replayable",
           fmt::format("{} of {} launches, copies and memsets that write something", doubts.replayed, doubts.writing));
  rows.add("made again",
           fmt::format("{} of {}, {} of {} blocks that come and go: for as long as they are used",
                       mib(doubts.lasting_bytes), mib(doubts.bytes), doubts.lasting_blocks, doubts.blocks));
  rows.add_causes(doubts, observation.kernels);
  input.file.problem = std::move(known.problem);
  input.liveness = liveness;
  input.launches = true;
  return rows.take();
}

}  // namespace memopt::tools
