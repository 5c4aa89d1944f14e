// memoptctl without planning, doctor, top and metrics. In the place of their code stands nothing: their lines are
// refused.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tools/memoptctl/doctor/doctor_command.h"
#include "tools/memoptctl/main/exchange_line.h"
#include "tools/memoptctl/main/fit_line.h"
#include "tools/memoptctl/main/line.h"
#include "tools/memoptctl/main/plan_line.h"
#include "tools/memoptctl/metrics/metrics_command.h"
#include "tools/memoptctl/plan/reduce_command.h"
#include "tools/memoptctl/report/report_command.h"
#include "tools/memoptctl/solve/solve_command.h"
#include "tools/memoptctl/top/top_command.h"

namespace memopt::tools {

void PlanLine::add_to(CLI::App&) {}
int PlanLine::run() { std::abort(); }
void ExchangeLine::add_to(CLI::App&) {}
bool ExchangeLine::named() const { return false; }
int ExchangeLine::run() { std::abort(); }
CLI::App* FitLine::add_to(CLI::App&) { return nullptr; }
int FitLine::run(std::vector<std::string>, std::vector<std::string>) { std::abort(); }
int doctor(const DoctorOptions&) { std::abort(); }
int probe(const std::string&) { std::abort(); }
int reduce(const ReduceOptions&) { std::abort(); }
int report(const ReportOptions&) { std::abort(); }
int solve(const SolveOptions&) { std::abort(); }
int top(const TopOptions&) { std::abort(); }
int metrics(const MetricsOptions&) { std::abort(); }
std::string listen_fault(const std::string&) { std::abort(); }

}  // namespace memopt::tools

int main(int argc, char** argv) {
  static constexpr std::array<std::string_view, 11> kMissing{"doctor", "export", "fit",    "import", "metrics", "plan",
                                                             "probe",  "reduce", "report", "solve",  "top"};
  return memopt::tools::run_line(argc, argv, kMissing);
}
