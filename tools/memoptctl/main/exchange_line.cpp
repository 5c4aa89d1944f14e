#include "tools/memoptctl/main/exchange_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/suggestion.h"
#include "tools/memoptctl/exchange/converted_file.h"
#include "tools/memoptctl/main/number_option.h"

namespace memopt::tools {
namespace {

// One of the names, or a message with the nearest.
CLI::Validator one_of(std::vector<std::string> names) {
  return CLI::Validator(
      [names = std::move(names)](std::string& value) {
        if (std::find(names.begin(), names.end(), value) != names.end()) return std::string();
        const std::string meant = nearest(value, names);
        return fmt::format("expected {}, not '{}'{}", fmt::join(names, ", "), printable(value),
                           meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
      },
      "");
}

}  // namespace

void ExchangeLine::add_to(CLI::App& app) {
  export_app_ = app.add_subcommand("export", "Write a recording as a file for other tools");
  export_app_->add_option("file", export_.file, "written by memoptctl record, or what import reads; -: standard input")
      ->type_name("FILE")
      ->required();
  export_app_
      ->add_option(
          "--format", export_.format,
          "perfetto: trace events for ui.perfetto.dev; pytorch-snapshot: for pytorch.org/memory_viz; csv: each "
          "record as a row; minimalloc: lifetimes and sizes of all blocks")
      ->type_name("NAME")
      ->required()
      ->check(one_of(export_formats()));
  export_.output = "-";
  export_app_->add_option("-o,--output", export_.output, "the file (standard output)")->type_name("OUT");
  export_app_->footer("Exit code: 0; 1 if a file can't be read to its end or written; 2 wrong use.");

  import_app_ = app.add_subcommand("import", "Make a recording of a file of another tool");
  import_app_
      ->add_option("file", import_.file,
                   "a CSV of operations, MiniMalloc's CSV of buffers, or a snapshot by "
                   "torch.cuda.memory._dump_snapshot; -: standard input; packed by gzip or zstd or not")
      ->type_name("FILE")
      ->required();
  import_app_->add_option("-o,--output", import_.output, "the recording")->type_name("OUT")->required();
  import_app_->add_option("--format", import_.format, "which of them it is, rather than by its first bytes")
      ->type_name("NAME")
      ->check(one_of({"csv", "minimalloc", "pytorch-snapshot"}));
  accept_whole(
      import_app_->add_option("--iterations", import_.iterations,
                              fmt::format("of MiniMalloc's files: a program that has the buffers so many times "
                                          "over ({}, so that plan finds its iteration)",
                                          kIterations)),
      1, 1000);
  import_app_->add_flag("--force", import_.force, "overwrite OUT");
  import_app_->footer("Exit code: 0; 1 if a file can't be read or written; 2 wrong use.");
}

bool ExchangeLine::named() const { return export_app_ != nullptr && (*export_app_ || *import_app_); }

int ExchangeLine::run() {
  if (*export_app_) return export_recording(export_);
  import_.version = MEMOPT_VERSION;
  return import_file(import_);
}

}  // namespace memopt::tools
