// In place of the planning commands and doctor: main asks has_command first, so that none of these is reached.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "tools/memoptctl/doctor/doctor_command.h"
#include "tools/memoptctl/main/commands.h"
#include "tools/memoptctl/main/plan_line.h"
#include "tools/memoptctl/plan/reduce_command.h"
#include "tools/memoptctl/solve/solve_command.h"

namespace memopt::tools {
namespace {

constexpr std::array<std::string_view, 5> kMissing{"doctor", "plan", "probe", "reduce", "solve"};

}  // namespace

bool has_command(std::string_view name) { return std::find(kMissing.begin(), kMissing.end(), name) == kMissing.end(); }

void PlanLine::add_to(CLI::App&) {}
int PlanLine::run() { std::abort(); }
int doctor(const DoctorOptions&) { std::abort(); }
int probe(const std::string&) { std::abort(); }
int reduce(const ReduceOptions&) { std::abort(); }
int solve(const SolveOptions&) { std::abort(); }

}  // namespace memopt::tools
