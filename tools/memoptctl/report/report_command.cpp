#include "tools/memoptctl/report/report_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/output_text.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/progress_line.h"
#include "tools/memoptctl/page/page.h"
#include "tools/memoptctl/report/report_json.h"
#include "tools/memoptctl/report/report_model.h"
#include "tools/memoptctl/swap/swap_problem.h"
#include "tools/memoptctl/swap/swap_text.h"

namespace memopt::tools {
namespace {

constexpr int kExitDamaged = 1;
constexpr int kExitWrongUse = 2;
constexpr int kExitInfeasible = 3;
constexpr int kExitNoIteration = 4;
constexpr const char* kStandardOutput = "-";

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  return std::filesystem::equivalent(one, other, error) && !error;
}

int wrong(const std::string& why) {
  fmt::print(stderr, "memoptctl report: {}\n", why);
  return kExitWrongUse;
}

// Of the limit that was asked for.
bool says_infeasible(const ShownIteration& iteration) {
  for (const ShownPlan& plan : iteration.plans) {
    if (!plan.point.wanted || plan.point.feasible) continue;
    fmt::print(stderr, "memoptctl: no plan was found within {}{}\n", mib(plan.point.limit),
               plan.point.footprint == 0 ? std::string()
                                         : fmt::format("; the least that was reached is {} ({} bytes)",
                                                       mib(plan.point.footprint), plan.point.footprint));
    return true;
  }
  return false;
}

ReportModel model_of(const ReportOptions& options, input::File& file) {
  end_at_interrupt();  // from here on there will be a page
  ProgressLine progress("memoptctl report");
  ModelOptions model{.limit = options.limit, .machine = options.machine, .sweep = {}};
  model.sweep.seconds = options.seconds;
  model.sweep.threads = options.threads;
  model.sweep.seed = options.seed;
  model.sweep.progress = [&](const std::string& what) { progress.say(what); };
  return is_iteration(file) ? make_report_of_iteration(file, model) : make_report(file, model);
}

}  // namespace

int report(const ReportOptions& options) {
  const bool to_file = options.output != kStandardOutput;
  input::File file(options.file);
  if (to_file && is_same_file(options.file, options.output)) {
    return wrong("-o names the file that is read, and would take its place");
  }
  if (to_file) expect_writable(options.output);
  ReportModel model;
  try {
    model = model_of(options, file);
  } catch (const std::invalid_argument& error) {
    return wrong(error.what());
  }
  const std::string name = printable(options.file.substr(options.file.rfind('/') + 1));
  const std::string text = page(name + " – memopt report", report_json(model, options.file, options.version));
  if (to_file) {
    write_text(options.output, text);
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);  // whether there was room is found at the end of all commands
  }
  if (interrupted()) fmt::print(stderr, "memoptctl: interrupted: the page has the plans that were made until then\n");
  if (!model.program.damage.empty()) {
    fmt::print(stderr, "memoptctl: {}: {}\n", printable(options.file), model.program.damage);
    return kExitDamaged;
  }
  if (model.iteration) return says_infeasible(*model.iteration) ? kExitInfeasible : 0;
  fmt::print(stderr, "memoptctl: {}: no iteration is in the page: {}\n", printable(options.file), model.no_iteration);
  return kExitNoIteration;
}

}  // namespace memopt::tools
