// Random programs of driver calls, run on an engine, with an oracle beside it that knows the order from the rules of
// the programming model alone: sets of what comes before, nothing of the engine's clocks, edges or queues.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulation.h"

namespace cudasim::test {

struct Access {
  std::uint64_t begin, end;  // in the program's block of memory
  bool write;
};

// Work, or an access by the host.
struct Step {
  std::set<std::size_t> before;  // steps that are ordered before this one
  std::vector<Access> accesses;
  std::uint32_t pieces = 0;  // 0: by the host
  std::uint32_t pieces_run = 0;
  std::uint64_t first_run = 0;  // number in the sequence of all pieces
};

class RandomProgram {
 public:
  struct Shape {
    int calls = 120;
    bool host_accesses = false;
    std::uint64_t bytes = 64;  // of memory accessed
    int most_accesses = 0;     // of one step
    bool queries = true;
  };

  RandomProgram(std::uint64_t program, std::optional<std::uint64_t> seed, Shape shape)
      : random_(program), shape_(shape), sim_(small_config(seed)) {
    if (shape_.most_accesses > 0) {
      CUdeviceptr base = 0;
      EXPECT_EQ(sim_.memory.allocate(kContext, 2u << 20, &base), CUDA_SUCCESS);
      base_ = base;
    }
    lines_.push_back({&sim_.legacy(), Kind::kLegacy, {}});
    lines_.push_back({&sim_.per_thread(), Kind::kBlocking, {}});
    lines_.push_back({&sim_.stream(CU_STREAM_DEFAULT), Kind::kBlocking, {}});
    lines_.push_back({&sim_.stream(), Kind::kFree, {}});
    lines_.push_back({&sim_.stream(), Kind::kFree, {}});
    for (int i = 0; i < 4; ++i) events_.push_back({sim_.event(), {}});
  }

  void run() {
    for (int i = 0; i < shape_.calls; ++i) one_call();
    EXPECT_EQ(sim_.engine.wait_context(kContext), CUDA_SUCCESS);
    everything_has_run();
  }

  // Two steps touch a byte, one writes, none is ordered before the other.
  bool has_race() const {
    for (std::size_t later = 0; later < steps_.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (steps_[later].before.contains(earlier)) continue;
        // Host accesses are ordered among themselves: one thread.
        if (steps_[later].pieces == 0 && steps_[earlier].pieces == 0) continue;
        if (conflict(steps_[earlier], steps_[later])) return true;
      }
    }
    return false;
  }

  Simulation& simulation() { return sim_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<std::string>& violations() const { return violations_; }
  const std::vector<std::int64_t>& times() const { return times_; }

 private:
  enum class Kind { kLegacy, kBlocking, kFree };
  struct Line {
    Stream* stream;
    Kind kind;
    std::set<std::size_t> known;  // all that is ordered before what comes next on it
  };
  struct Recorded {
    EventPtr event;
    std::set<std::size_t> known;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  static bool conflict(const Step& a, const Step& b) {
    for (const Access& one : a.accesses) {
      for (const Access& other : b.accesses) {
        if ((one.write || other.write) && one.begin < other.end && other.begin < one.end) return true;
      }
    }
    return false;
  }

  // What something queued now on `line` is ordered behind.
  std::set<std::size_t> order(const Line& line) const {
    std::set<std::size_t> before = line.known;
    before.insert(host_.begin(), host_.end());
    for (const Line& other : lines_) {
      const bool edge = (line.kind == Kind::kLegacy && other.kind == Kind::kBlocking) ||
                        (line.kind == Kind::kBlocking && other.kind == Kind::kLegacy);
      if (edge) before.insert(other.known.begin(), other.known.end());
    }
    return before;
  }

  std::vector<Access> random_accesses() {
    std::vector<Access> out;
    if (shape_.most_accesses == 0) return out;
    for (std::uint64_t count = below(std::uint64_t(shape_.most_accesses) + 1); count != 0; --count) {
      const std::uint64_t begin = below(shape_.bytes);
      out.push_back({begin, begin + 1 + below(std::min<std::uint64_t>(shape_.bytes - begin, 8)), below(3) == 0});
    }
    return out;
  }

  void one_call() {
    Line& line = lines_[below(lines_.size())];
    Recorded& event = events_[below(events_.size())];
    switch (below(shape_.host_accesses ? 12 : 11)) {
      case 0:
        sim_.engine.impl().record(*event.event, *line.stream);
        line.known = event.known = order(line);
        break;
      case 1:
      case 2:
        sim_.engine.impl().wait_event(*line.stream, *event.event);
        if (event.event->recorded) {
          line.known = order(line);
          line.known.insert(event.known.begin(), event.known.end());
        }
        break;
      case 3:
        if (below(4) == 0) {
          EXPECT_EQ(sim_.engine.wait(*line.stream), CUDA_SUCCESS);
          host_learns(completion_of(line), "wait");
        }
        break;
      case 4:
        if (below(4) == 0) {
          EXPECT_EQ(sim_.engine.impl().synchronize(*event.event), CUDA_SUCCESS);
          host_learns(event.known, "event wait");
        }
        break;
      case 5:
        if (shape_.queries && sim_.engine.query(*line.stream) == CUDA_SUCCESS)
          host_learns(completion_of(line), "query");
        break;
      case 6:
        sim_.engine.charge(Duration(below(400)));
        break;
      case 11:
        host_access();
        break;
      default:
        work(line);
    }
    times_.push_back(sim_.engine.host_now().time_since_epoch().count());
  }

  std::set<std::size_t> completion_of(const Line& line) const {
    std::set<std::size_t> done = line.known;
    if (line.kind == Kind::kLegacy) {
      for (const Line& other : lines_) {
        if (other.kind == Kind::kBlocking) done.insert(other.known.begin(), other.known.end());
      }
    }
    return done;
  }

  void work(Line& line) {
    const std::size_t index = steps_.size();
    Step step;
    step.before = order(line);
    step.pieces = 1 + std::uint32_t(below(4));
    step.accesses = random_accesses();
    steps_.push_back(step);
    line.known = step.before;
    line.known.insert(index);
    constexpr Resource kResources[] = {Resource::kNone, Resource::kCompute, Resource::kCopyIn, Resource::kCopyOut};
    const Resource resource = kResources[below(4)];
    const auto nanoseconds = std::int64_t(below(300));
    sim_.pieces(
        *line.stream, step.pieces,
        [this, index](std::uint32_t piece, AccessLog& log) { piece_runs(index, piece, log); },
        "step " + std::to_string(index), resource, nanoseconds);
    queued_.push_back(line.stream->tail);
  }

  void host_access() {
    Step step;
    step.before = host_;
    step.accesses = random_accesses();
    for (const Access& access : step.accesses) {
      sim_.engine.host_access(reinterpret_cast<const void*>(base_ + access.begin), access.end - access.begin,
                              access.write);
    }
    host_.insert(steps_.size());
    steps_.push_back(std::move(step));
  }

  void piece_runs(std::size_t index, std::uint32_t piece, AccessLog& log) {
    Step& step = steps_[index];
    if (piece != step.pieces_run) complain(index, "runs piece " + std::to_string(piece) + " out of turn");
    if (step.pieces_run++ == 0) step.first_run = ++sequence_;
    for (const std::size_t earlier : step.before) {
      if (steps_[earlier].pieces_run < steps_[earlier].pieces)
        complain(index, "runs before step " + std::to_string(earlier));
    }
    // Each piece has its share of the accesses.
    for (std::size_t i = piece; i < step.accesses.size(); i += step.pieces) {
      const Access& access = step.accesses[i];
      if (access.write) {
        log.write(base_ + access.begin, access.end - access.begin);
      } else {
        log.read(base_ + access.begin, access.end - access.begin);
      }
    }
  }

  void host_learns(const std::set<std::size_t>& done, const char* how) {
    for (const std::size_t step : done) {
      if (steps_[step].pieces_run < steps_[step].pieces) complain(step, std::string("has not run after a ") + how);
    }
    host_.insert(done.begin(), done.end());
  }

  void everything_has_run() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].pieces_run != steps_[i].pieces) complain(i, "never ran to its end");
    }
    for (const OperationPtr& operation : queued_) {
      times_.push_back(operation->start.time_since_epoch().count());
      times_.push_back(operation->end.time_since_epoch().count());
    }
  }

  void complain(std::size_t step, const std::string& what) {
    violations_.push_back("step " + std::to_string(step) + " " + what);
  }

  std::mt19937_64 random_;
  Shape shape_;
  Simulation sim_;
  std::uintptr_t base_ = 0;
  std::vector<Line> lines_;
  std::vector<Recorded> events_;
  std::set<std::size_t> host_;  // what the host thread has seen the end of, and what it has done itself
  std::vector<Step> steps_;
  std::vector<OperationPtr> queued_;
  std::vector<std::string> violations_;
  std::vector<std::int64_t> times_;
  std::uint64_t sequence_ = 0;
};

}  // namespace cudasim::test
