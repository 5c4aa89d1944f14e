#include "tools/memoptctl/main/examples.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace memopt::tools {
namespace {

struct Examples {
  std::string_view command;  // "": memoptctl itself
  std::initializer_list<std::string_view> lines;
};

// A test runs --help of each command, and misses those that have none.
const Examples kExamples[] = {
    {"",
     {"memoptctl run -- python train.py", "memoptctl run --sim a100-40g -- python train.py", "memoptctl status",
      "memoptctl plan --help"}},
    {"run",
     {"memoptctl run -- python train.py", "memoptctl run --limit 8GiB -- python train.py",
      "memoptctl run --sim a100-40g --limit 60% -- ./program"}},
    {"status", {"memoptctl status", "memoptctl status --watch", "memoptctl status --pid 4711 --json"}},
    {"limit", {"memoptctl limit 4711 6GiB", "memoptctl limit 4711 60%", "memoptctl limit 4711 none"}},
    {"record",
     {"memoptctl record -o train.rec -- python train.py",
      "memoptctl record -o train.rec --sim h200 --force -- python train.py"}},
    {"show",
     {"memoptctl show train.rec", "memoptctl show train.rec --stacks 20",
      "memoptctl show train.rec --operations 100:200", "memoptctl show train.rec --trace train.trace"}},
    {"plan",
     {"memoptctl plan train.rec", "memoptctl plan train.rec --limit 60% --time-budget 30s",
      "memoptctl plan train.rec --compare --limits 8GiB,6GiB --machine h200",
      "memoptctl plan train.rec --recompute --assume reads --limit 80%"}},
    {"fit",
     {"memoptctl fit --device 24GiB -- python train.py",
      "memoptctl fit --device 24GiB --scale batch_size=8,16,32 -- python train.py --batch-size {batch_size}",
      "memoptctl fit --device h200 --scale batch=8..512:8 --run-time 2min -- ./train --batch {batch}",
      "memoptctl fit --device 16GiB train.rec"}},
    {"export",
     {"memoptctl export train.rec --format perfetto -o train.json", "memoptctl export train.rec --format csv",
      "memoptctl export train.rec --format pytorch-snapshot -o train.pickle",
      "memoptctl export train.rec --format minimalloc -o train.csv"}},
    {"import",
     {"memoptctl import snapshot.pickle -o snapshot.rec", "memoptctl import operations.csv -o program.rec",
      "memoptctl import buffers.csv -o buffers.rec --iterations 8"}},
    {"report",
     {"memoptctl report train.rec -o report.html",
      "memoptctl report train.rec -o report.html --limit 6GiB --machine h200",
      "memoptctl report train.rec --time-budget 0 -o - | gzip > report.html.gz"}},
    {"top", {"memoptctl top", "memoptctl top --interval 500ms"}},
    {"config", {"memoptctl config", "memoptctl config --json"}},
    {"metrics", {"memoptctl metrics", "memoptctl metrics --listen 127.0.0.1:9400"}},
    {"completion", {"memoptctl completion bash", "memoptctl completion fish"}},
    {"reduce", {"memoptctl reduce train.rec -o small.rec", "memoptctl reduce train.rec -o small.rec --iterations 3"}},
    {"solve",
     {"memoptctl solve buffers.csv", "memoptctl solve buffers.csv --capacity 8GiB --time-limit 1min -o placed.csv",
      "memoptctl solve --compare folder --time-limit 500ms", "memoptctl solve --check placed.csv"}},
    {"options", {"memoptctl options", "memoptctl options --markdown"}},
    {"frameworks", {"memoptctl frameworks", "memoptctl frameworks --markdown"}},
    {"doctor",
     {"memoptctl doctor", "memoptctl doctor -- python train.py",
      "memoptctl doctor --sim a100-40g --seconds 2min -- ./program"}},
};

}  // namespace

void add_examples(CLI::App& app) {
  for (const Examples& examples : kExamples) {
    CLI::App* command = examples.command.empty() ? &app : nullptr;
    for (CLI::App* const one : app.get_subcommands(nullptr)) {
      if (one->get_name() == examples.command) command = one;
    }
    if (command == nullptr) continue;
    std::string text = command->get_footer();
    text += text.empty() ? "Examples:" : "\n\nExamples:";
    for (const std::string_view line : examples.lines) {
      text += "\n  ";
      text += line;
    }
    command->footer(text);
  }
}

}  // namespace memopt::tools
