// What Python's frames cost while a recording is made: a stack that is walked at each malloc, and a frame that is named
// once. For numbers:
// --benchmark_min_time=1
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "agent/stacks/python_interpreter.h"
#include "tests/agent/stacks/fake_python.h"

namespace memopt::agent {
namespace {

using namespace fake_python;

class Running {
 public:
  explicit Running(std::size_t depth) : frames_(depth) {
    set(file_, "/home/user/project/train.py");
    set(name_, "Network.forward");
    code_.object.type = &PyCode_Type;
    code_.file = &file_;
    code_.qualified_name = &name_;
    for (std::size_t i = 0; i < depth; ++i) {
      frames_[i].code = &code_;
      frames_[i].previous = i + 1 < depth ? &frames_[i + 1] : nullptr;
      frames_[i].instruction = code_.instructions.data();
    }
    g_thread.frame = frames_.data();
  }

 private:
  Text file_, name_;
  Code code_;
  std::vector<Frame> frames_;
};

void walk(benchmark::State& state) {
  const Running running(static_cast<std::size_t>(state.range(0)));
  PythonInterpreter python = PythonInterpreter::find();
  PythonFrame frames[64];
  // The first is checked word by word.
  if (python.frames(frames) != static_cast<std::size_t>(state.range(0))) std::abort();
  for (auto _ : state) benchmark::DoNotOptimize(python.frames(frames));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(walk)->Arg(4)->Arg(16)->Arg(64);

void name_a_frame(benchmark::State& state) {
  const Running running(1);
  PythonInterpreter python = PythonInterpreter::find();
  PythonFrame frame;
  if (python.frames({&frame, 1}) != 1) std::abort();
  char text[PythonInterpreter::kMaxText];
  for (auto _ : state) benchmark::DoNotOptimize(python.describe(frame, text));
}
BENCHMARK(name_a_frame);

}  // namespace
}  // namespace memopt::agent

BENCHMARK_MAIN();
