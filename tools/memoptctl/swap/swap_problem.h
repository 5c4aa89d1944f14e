// The iteration that swaps are planned for, from any file that `memoptctl plan` reads, and the limits that people
// write.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/input/file.h"
#include "planner/sending/iteration_problem.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/model/liveness.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

// How an iteration that was found in a recording, or in a text trace, belongs to what is in there.
struct ObservedIteration {
  bool recording = false;            // rather than a text trace
  std::vector<std::uint64_t> ranks;  // as those of planner::IterationProblem
  std::vector<planner::IterationProblem::Origin> origins;
};

struct SwapProblem {
  swap::PlanFile file;
  swap::Liveness liveness;
  std::string times;  // what they are of, for people; empty: the file is an iteration, and they are its own
  std::uint64_t blind_launches = 0;  // of a recording: what they touch is not known
  std::string damage;                // of a recording, for people: what could not be read; empty: nothing
  bool launches = false;             // which operations are one, and all that each reads and writes, is known
  std::optional<ObservedIteration> observed;
};

// Whether the file is one iteration, rather than a recording or a text trace in which one has to be found: JSON, which
// begins with a brace, or a kernel table of G10's.
bool is_iteration(const input::File& file);

// Bytes: a size (shm/sizes.h) from 0 on, or a percentage of `whole`, rounded down. Nothing if it is none.
std::optional<std::uint64_t> parse_limit(const std::string& text, std::uint64_t whole);

// The same; throws std::invalid_argument that names the option.
std::uint64_t limit_of(const std::string& option, const std::string& text, std::uint64_t whole);

// What --machine names; nothing for "". Throws std::invalid_argument that names the option.
std::optional<swap::Machine> machine_of(const std::string& text);

// Those of a comparison, as given; or, if none are, these parts of the peak load, percent. Throws as limit_of does.
std::vector<std::uint64_t> limits_of(const SwapPlanOptions& options, std::span<const int> parts, std::uint64_t peak);

// The last iteration that is found in a recording or a text trace, or that of a file that is one, with the machine of
// the options. Nothing where none is found: that was said on standard output. Throws std::runtime_error where the file
// can't be read or planned, std::invalid_argument for options that can't be. The limit is the file's own still; a
// problem that needs one has it as 0 until it is set, if the options have one to set.
std::optional<SwapProblem> read_problem(const SwapPlanOptions& options, input::File& file);

}  // namespace memopt::tools
