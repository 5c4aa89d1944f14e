// Files of the formats memopt-plan-1 and, where blocks may return to other places than those where they were, launches
// are several operations, or are replayed, memopt-plan-2: a problem and the decisions of a planner, as JSON.
//
// What is read can be written again without loss: every value, and which optional fields are given at all, so that a
// plan still equals the problem it was made for in everything but the decisions. Times and rates are doubles; an
// integer that is none exactly (beyond 2^53) is refused.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

#include "planner/input/text.h"
#include "planner/swap/model/model.h"

namespace memopt::swap {

// Which optional fields a file spells out although they have their defaults; the others are always written. Empty
// vectors: none of the blocks', and the age of every access and free.
struct Spelling {
  enum Field : std::uint32_t {
    kName = 1,
    kLimit = 2,
    kChunk = 4,
    kAlign = 8,
    kLayout = 16,
    kLazyMalloc = 32,
    kSwaps = 64,
    kOutLatency = 128,
    kInLatency = 256,
    kAll = 511,
  };
  enum BlockField : std::uint8_t { kPersistent = 1, kPinned = 2, kBlockName = 4 };

  // Of the file's lines. Planned: the problem before its operations, one member a line. Observed: the operations of a
  // recording or trace first, and all settings; `offset` says that a block has the linear window.
  enum class Form : std::uint8_t { kPlanned, kObserved };

  std::uint32_t fields = kAll;
  Form form = Form::kPlanned;            // files are read in any form, and written as planned then
  std::vector<std::uint8_t> blocks;      // BlockField, by block
  std::vector<std::uint8_t> operations;  // number of fields, plus 8 where the age is null
};

// Before an operation, or behind all: a block is dropped, or the launch that begins with an operation is replayed.
struct RecomputeStep {
  struct BlockPlace {
    std::uint32_t block = 0;  // index
    Place place;

    friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
  };

  std::uint32_t before = 0;
  bool drop = false;
  std::uint32_t what = 0;               // index of the block, or of the operation
  std::vector<BlockPlace> places = {};  // with a layout, of a replay: where what it takes bytes for lies

  friend bool operator==(const RecomputeStep&, const RecomputeStep&) = default;
};

struct PlanFile {
  Problem problem;
  Decisions decisions;
  std::vector<RecomputeStep> recompute = {};
  bool launches = false;  // which operations belong together is written; so it is where there are steps
  std::string comment;
  Spelling spelling;
};

// Throws Invalid: not JSON, an unknown or missing field, or one of the wrong type; names it and says what was expected.
// Values that contradict each other are for find_liveness and find_fault.
PlanFile parse_plan(const std::string& text);

// Throws Invalid, its message begins with the path; also where the file can't be read.
PlanFile read_plan(input::File& file);
PlanFile read_plan(const std::string& path);

// A tree of JSON takes up to forty times its text; this is a million operations.
inline constexpr input::TextBounds kPlanBounds{
    .expected = "JSON (memopt-plan-1)", .line_bytes = std::numeric_limits<std::size_t>::max(), .bytes = 32 << 20};

// One operation, block and swap a line. Decisions without places leave the offsets out.
void write_plan(const PlanFile& plan, std::ostream& out);

}  // namespace memopt::swap
