#include "tools/memoptctl/main/line.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "shm/durations.h"
#include "shm/options.h"
#include "shm/sizes.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/config/config_command.h"
#include "tools/memoptctl/doctor/doctor_command.h"
#include "tools/memoptctl/main/describing_line.h"
#include "tools/memoptctl/main/examples.h"
#include "tools/memoptctl/main/exchange_line.h"
#include "tools/memoptctl/main/file_line.h"
#include "tools/memoptctl/main/fit_line.h"
#include "tools/memoptctl/main/number_option.h"
#include "tools/memoptctl/main/plan_line.h"
#include "tools/memoptctl/main/watching_line.h"
#include "tools/memoptctl/recording/record_command.h"
#include "tools/memoptctl/run/run_command.h"
#include "tools/memoptctl/run/settings_commands.h"
#include "tools/memoptctl/run/simulated_device.h"
#include "tools/memoptctl/status/limit_command.h"
#include "tools/memoptctl/status/status_command.h"
#include "tools/memoptctl/status/watch_command.h"

namespace memopt::tools {
namespace {

// What follows the first "--" is the program's, whatever it looks like.
class Words {
 public:
  Words(int argc, char** argv)
      : begin_(argv),
        separator_(
            std::find_if(argv, argv + argc, [](const char* argument) { return std::strcmp(argument, "--") == 0; })),
        end_(argv + argc) {}

  // memoptctl's own, its name among them.
  int own() const { return static_cast<int>(separator_ - begin_); }
  // The first of them that may be a command; empty: there is none.
  std::string_view first() const { return own() > 1 ? std::string_view(begin_[1]) : std::string_view(); }
  bool has_separator() const { return separator_ != end_; }

  // What follows the separator.
  std::vector<std::string> behind() const { return {separator_ + (has_separator() ? 1 : 0), end_}; }

  // The program and its arguments: what its command has left of our own words, and what follows them.
  std::vector<std::string> program(const CLI::App& command) const {
    std::vector<std::string> words = command.remaining();
    // "run PROGRAM -- X": the separator is the program's own.
    words.insert(words.end(), separator_ + (words.empty() && has_separator() ? 1 : 0), end_);
    return words;
  }

 private:
  char** begin_;
  char** separator_;
  char** end_;
};

constexpr std::size_t kLongestMessage = 2000;

// Of text that may have come from a file or from the line, line by line.
std::string printable_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += printable(text.substr(0, end), kLongestMessage);
    if (end < text.size()) lines += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// What is printed last stays in a buffer until the end, where no call would say that it found no room.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "memoptctl: standard output: cannot be written: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

// Holds a value on the line to what the environment's variable of that option accepts.
CLI::Validator as_option(shm::OptionId id) {
  return CLI::Validator(
      [id](std::string& value) {
        const shm::Option& option = shm::option(id);
        return option.accepts(value) ? std::string()
                                     : fmt::format("'{}': expected {}", printable(value), option.values);
      },
      "");
}

class Line {
 public:
  Line();
  int run(int argc, char** argv, std::span<const std::string_view> missing);

 private:
  void add_run();
  void add_status();
  void add_limit();
  void add_record();
  void add_plan();
  void add_settings();
  void add_doctor();
  void add_device(CLI::App& command, const std::string& what);
  void add_no_files(CLI::App& command);
  void add_settings_of_line(CLI::App& command);

  std::string unknown_command(const std::string& name) const;
  std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) const;
  int run_command(const Words& words);
  int run_program(const Words& words);
  int run_doctor(const Words& words);
  int run_config();

  CLI::App app_{"Unmodified CUDA programs, less GPU memory: starts them, and shows what memopt does in them.",
                "memoptctl"};
  CLI::App* run_app_ = nullptr;
  CLI::App* status_app_ = nullptr;
  CLI::App* limit_app_ = nullptr;
  CLI::App* record_app_ = nullptr;
  CLI::App* plan_app_ = nullptr;
  CLI::App* options_app_ = nullptr;
  CLI::App* config_app_ = nullptr;
  CLI::App* frameworks_app_ = nullptr;
  CLI::App* fit_app_ = nullptr;
  CLI::App* doctor_app_ = nullptr;
  CLI::App* probe_app_ = nullptr;

  RunOptions run_;
  StatusOptions status_;
  LimitOptions limit_;
  RecordOptions record_;
  PlanLine plan_;
  FileLine file_;
  WatchingLine watching_;
  DescribingLine describing_;
  ExchangeLine exchange_;
  FitLine fit_;
  DoctorOptions doctor_;
  std::string device_;  // of run, record or doctor
  pid_t pid_ = 0;
  bool markdown_ = false;
  ConfigOptions config_;
  std::string probed_;
};

// In the order in which --help lists them.
Line::Line() {
  app_.set_version_flag("--version", "memoptctl " MEMOPT_VERSION);
  app_.require_subcommand(1);
  add_run();
  add_status();
  watching_.add_to(app_);
  add_limit();
  add_record();
  file_.add_show(app_);
  fit_app_ = fit_.add_to(app_);
  add_plan();
  file_.add_report(app_);
  file_.add_reduce(app_);
  exchange_.add_to(app_);
  file_.add_solve(app_);
  add_settings();
  add_doctor();
  describing_.add_to(app_);
  add_examples(app_);
}

void Line::add_device(CLI::App& command, const std::string& what) {
  std::string known;
  for (const std::string& name : simulated_devices()) known += (known.empty() ? "" : ", ") + name;
  command.add_option("--sim", device_, what + " the simulated driver: " + known + " or a device file")
      ->type_name("PRESET")
      ->check(CLI::Validator(simulated_device_fault, ""));
}

void Line::add_no_files(CLI::App& command) {
  command.add_flag("--no-config", run_.no_files, "read no memopt.toml (memoptctl config says what they hold)");
}

// Options of the table that have an option of the line, too.
void Line::add_settings_of_line(CLI::App& command) {
  command.add_flag("--disable", run_.disable, "load memopt, but let it only pass through (MEMOPT_DISABLE=1)");
  for (const auto& [name, value, id, help] :
       {std::tuple{"--limit", &run_.limit, shm::OptionId::kLimit,
                   "hold at most so much of the device (MEMOPT_LIMIT): a size, such as 8GiB, or a part, such as 60%"},
        std::tuple{"--host-limit", &run_.host_limit, shm::OptionId::kHostLimit,
                   "and at most so much page-locked host memory for what leaves it (MEMOPT_HOST_LIMIT): a size"}}) {
    command.add_option(name, *value, help)->type_name("VALUE")->check(as_option(id));
  }
}

void Line::add_run() {
  run_app_ =
      app_.add_subcommand("run", "Run a program with memopt preloaded; signals and exit code are the program's own");
  add_device(*run_app_, "run on");
  run_app_->add_flag("--native", run_.native, "without memopt, on the simulated device: to compare with")
      ->needs(run_app_->get_option("--sim"));
  add_settings_of_line(*run_app_);
  for (const char* const of_memopt : {"--limit", "--host-limit"}) {
    run_app_->get_option(of_memopt)->excludes(run_app_->get_option("--native"));
  }
  add_no_files(*run_app_);
  run_app_->prefix_command();
  run_app_->footer(
      "Form: memoptctl run [--sim PRESET [--native]] [--disable] [--limit VALUE] [--host-limit VALUE] [--no-config] -- "
      "COMMAND "
      "[ARGUMENT...]\nExit code: the program's; 125 if memopt can't be set up, 126 if the program can't be executed, "
      "127 "
      "if there is none; 2 for wrong use.");
}

void Line::add_status() {
  status_app_ = app_.add_subcommand("status", "Show the processes that run under memopt");
  status_app_->add_flag("--json", status_.json, "machine-readable, one object");
  accept_whole(status_app_->add_option("--pid", pid_, "only the process of this number"), 1, 1 << 22);
  watching_.add_watch(*status_app_);
  status_app_->footer(
      "Exit code: 0 all well, 3 no such process, 4 a problem is shown (for example: attached, but no call seen). "
      "With --watch: 0 when it is interrupted, or the process of --pid has ended; 3 if there was none.");
}

void Line::add_limit() {
  limit_app_ = app_.add_subcommand("limit", "Set, change or take away the limit of a process that runs under memopt");
  accept_whole(limit_app_->add_option("pid", limit_.pid, "number of a process of this user"), 1, 1 << 22, "PID")
      ->required();
  limit_app_
      ->add_option("value", limit_.value, "hold at most so much of the device: " + std::string(shm::kNewLimitValues))
      ->required()
      ->check(CLI::Validator(
          [](std::string& value) {
            return shm::is_new_limit(value) ? std::string()
                                            : fmt::format("'{}': expected {}", printable(value), shm::kNewLimitValues);
          },
          ""))
      ->type_name("VALUE");
  limit_app_->footer(
      "What the process holds comes below the limit within a few iterations (memoptctl status --pid PID shows it).\n"
      "Exit code: 0; 1 if there is no such process, or it refuses; 2 for wrong use.");
}

void Line::add_record() {
  record_app_ = app_.add_subcommand("record", "Run a program and write what it does with the device into a file");
  record_app_->add_option("-o,--output", record_.output, "the recording; further processes go into FILE.<pid>")
      ->type_name("FILE")
      ->required();
  add_device(*record_app_, "run on");
  record_app_->add_flag("--force", record_.force, "overwrite FILE");
  add_no_files(*record_app_);
  record_app_->prefix_command();
  record_app_->footer(
      "Form: memoptctl record -o FILE [--sim PRESET] [--force] -- COMMAND [ARGUMENT...]\nExit code: the program's, 128 "
      "+ its signal; 125 if memopt can't be set up or FILE not be written, 126, 127 as for run.");
}

void Line::add_plan() {
  plan_app_ =
      app_.add_subcommand("plan", "Plan the memory of a recording, a text trace or an iteration, without running it");
  plan_.add_to(*plan_app_);
}

void Line::add_settings() {
  options_app_ = app_.add_subcommand("options", "List the environment variables that memopt reads");
  options_app_->add_flag("--markdown", markdown_, "as the table in docs/options.md");

  config_app_ = app_.add_subcommand("config", "Show what holds of each option, and where that comes from");
  config_app_->add_flag("--json", config_.json, "machine-readable, one object");
  add_settings_of_line(*config_app_);
  add_no_files(*config_app_);
  config_app_->footer(
      "What prevails: the line of run, then the environment, then memopt.toml in this folder or the nearest above, "
      "then "
      "~/.config/memopt/memopt.toml, then the default. A line of such a file: limit = \"6GiB\".\n"
      "Exit code: 0; 1 where a file or a variable has a fault.");

  frameworks_app_ = app_.add_subcommand("frameworks", "List what memopt sets so that frameworks are seen");
  frameworks_app_->add_flag("--markdown", markdown_, "as the tables in docs/frameworks.md");
}

void Line::add_doctor() {
  doctor_app_ = app_.add_subcommand("doctor", "Look for what keeps memopt from working here, or with one program");
  doctor_app_->add_flag("--json", doctor_.json, "machine-readable, one object");
  add_device(*doctor_app_, "look at");
  add_no_files(*doctor_app_);
  accept_duration(doctor_app_->add_option("--seconds", doctor_.seconds, "let the program run so long at most"),
                  PlainUnit::kSeconds, shm::kOneSecond / 10, 24 * 3600 * shm::kOneSecond)
      ->capture_default_str();
  doctor_app_->prefix_command();
  doctor_app_->footer(
      "Form: memoptctl doctor [--json] [--sim PRESET] [--no-config] [--seconds N] [-- COMMAND [ARGUMENT...]]\nExit "
      "code: 0 no "
      "problem (there may be warnings), 1 a problem, 2 wrong use.");

  // The side of doctor's checks that may crash or hang; for doctor alone.
  probe_app_ = app_.add_subcommand("probe", "")->group("");
  probe_app_->add_option("name", probed_)->required();
}

// The sentence about a word that stands for a command and is none; empty if it is one.
std::string Line::unknown_command(const std::string& name) const {
  std::vector<std::string> names;
  for (const CLI::App* const known : app_.get_subcommands(nullptr)) {
    if (known->get_name() == name) return "";
    if (!known->get_group().empty()) names.push_back(known->get_name());
  }
  return fmt::format("there is no subcommand {}{}; memoptctl --help lists them", printable(name),
                     did_you_mean(name, names));
}

// The sentence about the first of the words that looks like an option and is none; empty if there is no such word.
std::string Line::unknown_option(const CLI::App& command, const std::vector<std::string>& words) const {
  const auto word = std::find_if(words.begin(), words.end(),
                                 [](const std::string& one) { return one.size() > 1 && one.front() == '-'; });
  if (word == words.end()) return "";
  std::vector<std::string> names;
  for (const CLI::Option* const known : command.get_options()) {
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  const std::string name = word->substr(0, word->find('='));
  const std::string whole = &command == &app_ ? "memoptctl" : "memoptctl " + command.get_name();
  return fmt::format("{} has no option {}{}; {} --help lists them", whole, printable(name),
                     name.starts_with("--") ? did_you_mean(name, names) : "", whole);
}

int Line::run(int argc, char** argv, std::span<const std::string_view> missing) {
  const Words words(argc, argv);
  if (words.own() > 1 && std::find(missing.begin(), missing.end(), words.first()) != missing.end()) {
    fmt::print(stderr,
               "memoptctl: {} is not in this program, which has what tools/quickstart needs; build `memoptctl`\n",
               words.first());
    return 2;
  }
  try {
    app_.parse(words.own(), argv);
  } catch (const CLI::ParseError& error) {
    const bool names_one = words.own() > 1 && !words.first().starts_with('-');
    if (const std::string unknown = names_one ? unknown_command(std::string(words.first())) : ""; !unknown.empty()) {
      fmt::print(stderr, "memoptctl: {}\n", unknown);
      return 2;
    }
    const std::vector<CLI::App*> commands = app_.get_subcommands();
    const CLI::App& command = commands.empty() ? app_ : *commands.front();
    // Where a command is missing, or what it needs, a word that was not understood may be why.
    const bool extra = error.get_exit_code() != 0 && !command.remaining(true).empty();
    if (const std::string unknown = extra ? unknown_option(command, command.remaining(true)) : ""; !unknown.empty()) {
      fmt::print(stderr, "memoptctl: {}\n", unknown);
      return 2;
    }
    if (error.get_exit_code() != 0) {
      const std::string whole = &command == &app_ ? "memoptctl" : "memoptctl " + command.get_name();
      fmt::print(stderr, "memoptctl: {}; {} --help says what it takes\n", printable_lines(error.what()), whole);
      return 2;
    }
    std::ostringstream help, wrong;
    app_.exit(error, help, wrong);
    fmt::print("{}", std::move(help).str());
    return 0;
  }
  return run_command(words);
}

int Line::run_command(const Words& words) {
  for (const CLI::App* const command : {run_app_, record_app_, doctor_app_, fit_app_}) {
    // All that is no option of theirs is the program's, so that the parser does not complain.
    if (command == nullptr || !*command || command->remaining().empty()) continue;
    std::vector<std::string> left = command->remaining();
    if (command != fit_app_) left.resize(1);
    const std::string unknown = unknown_option(*command, left);
    if (unknown.empty()) continue;
    fmt::print(stderr, "memoptctl: {}\n", unknown);
    return 2;
  }
  if (*run_app_ || *record_app_) return run_program(words);
  if (*doctor_app_) return run_doctor(words);
  if (fit_app_ != nullptr && *fit_app_) return fit_.run(fit_app_->remaining(), words.behind());
  if (words.has_separator()) {
    fmt::print(stderr, "memoptctl: only run, record, fit and doctor take a program\n");
    return 2;
  }
  if (*probe_app_) return probe(probed_);
  if (*status_app_) {
    if (pid_ != 0) status_.pid = pid_;
    status_.watch = watching_.watch();
    return status_.watch ? watch(status_) : status(status_);
  }
  if (*limit_app_) return limit(limit_);
  if (watching_.given()) return watching_.run();
  if (describing_.given()) return describing_.run(app_);
  if (*plan_app_) return plan_.run();
  if (exchange_.named()) return exchange_.run();
  if (file_.named()) return file_.run();
  if (*config_app_) return run_config();
  return *frameworks_app_ ? frameworks(markdown_) : options(markdown_);
}

int Line::run_program(const Words& words) {
  const bool plain = static_cast<bool>(*run_app_);
  if (!device_.empty()) run_.simulated_device = device_;
  run_.command = words.program(plain ? *run_app_ : *record_app_);
  if (run_.command.empty()) {
    fmt::print(stderr, "memoptctl: {0} needs a command: memoptctl {0} {1}[--sim PRESET] -- COMMAND [ARGUMENT...]\n",
               plain ? "run" : "record", plain ? "" : "-o FILE ");
    return 2;
  }
  if (plain) return tools::run(run_);
  record_.run = std::move(run_);
  record_.version = MEMOPT_VERSION;
  return record(record_);
}

int Line::run_doctor(const Words& words) {
  if (!device_.empty()) doctor_.simulated_device = device_;
  doctor_.command = words.program(*doctor_app_);
  doctor_.version = MEMOPT_VERSION;
  doctor_.no_files = run_.no_files;
  return doctor(doctor_);
}

int Line::run_config() {
  config_.no_files = run_.no_files;
  if (run_.disable) config_.line[shm::OptionId::kDisable] = "1";
  if (!run_.limit.empty()) config_.line[shm::OptionId::kLimit] = run_.limit;
  if (!run_.host_limit.empty()) config_.line[shm::OptionId::kHostLimit] = run_.host_limit;
  return config(config_);
}

}  // namespace

int run_line(int argc, char** argv, std::span<const std::string_view> missing) {
  try {
    return finish_output(Line().run(argc, argv, missing));
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "memoptctl: out of memory\n");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return finish_output(1);
    fmt::print(stderr, "memoptctl: {}\n", printable_lines(error.what()));
  }
  return 1;
}

}  // namespace memopt::tools
