#include <algorithm>
#include <ostream>

#include "planner/json/writer.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/files/plan_format.h"

namespace memopt::swap {
namespace {

// The members of a file, in the order in which its form has them.
class Writer {
 public:
  Writer(const PlanFile& plan, std::ostream& out) : plan_(plan), problem_(plan.problem), stream_(out), out_(out) {}

  void write() {
    if (plan_.spelling.form == Spelling::Form::kObserved) {
      write_observed();
    } else {
      write_planned();
    }
    stream_ << '\n';
  }

 private:
  static constexpr json::Spacing kLines{.before = "\n", .between = "\n", .after = "\n"};
  static constexpr json::Spacing kSpaces{.between = " ", .colon = " "};

  bool is_given(Spelling::Field field) const { return (plan_.spelling.fields & field) != 0; }

  void write_planned() {
    const Problem usual;
    out_.begin_object({.before = "\n", .between = "\n", .colon = " ", .after = "\n"});
    head();
    if (!plan_.comment.empty()) out_.member("comment", plan_.comment);
    out_.member("period", problem_.period);
    machine();
    if (problem_.limit || is_given(Spelling::kLimit)) limit();
    if (is_given(Spelling::kChunk) || problem_.chunk != usual.chunk) out_.member("chunk", problem_.chunk);
    if (is_given(Spelling::kAlign) || problem_.align != usual.align) out_.member("align", problem_.align);
    if (is_given(Spelling::kLayout) || problem_.layout != usual.layout) out_.member("layout", problem_.layout);
    if (is_given(Spelling::kLazyMalloc) || problem_.lazy_malloc) out_.member("lazy_malloc", problem_.lazy_malloc);
    blocks();
    operations();
    if (is_given(Spelling::kSwaps) || !plan_.decisions.swaps.empty()) swaps(kLines);
    if (has_launches()) launches();
    if (!plan_.recompute.empty()) {
      list("recompute", plan_.recompute.size(), kLines, [&](std::size_t j) { recompute(plan_.recompute[j]); });
    }
    out_.end_object();
  }

  void write_observed() {
    out_.begin_object({.between = "\n", .colon = " "});
    head();
    operations();
    out_.member("period", problem_.period);
    blocks();
    machine();
    limit();
    out_.between(" ");
    out_.member("chunk", problem_.chunk);
    out_.member("align", problem_.align);
    out_.member("layout", problem_.layout);
    out_.member("lazy_malloc", problem_.lazy_malloc);
    out_.between("\n");
    swaps({});
    if (has_launches()) launches();
    out_.end_object();
  }

  bool has_launches() const { return plan_.launches || !plan_.recompute.empty(); }

  void launches() {
    out_.name("launches");
    out_.begin_list(kLines);
    for (std::size_t i = 0; i < problem_.operations.size();) {
      const std::size_t end = end_of_launch(problem_, i);
      if (end - i > 1) {
        out_.begin_list();
        out_.value(std::uint64_t{i});
        out_.value(std::uint64_t{end - i});
        out_.end_list();
      }
      i = end;
    }
    out_.end_list();
  }

  void recompute(const RecomputeStep& step) {
    out_.begin_object();
    out_.member("before", std::uint64_t{step.before});
    step.drop ? out_.member("drop", problem_.blocks[step.what].id) : out_.member("replay", std::uint64_t{step.what});
    if (!step.places.empty()) {
      list("places", step.places.size(), {}, [&](std::size_t k) { step_place(step.places[k]); });
    }
    out_.end_object();
  }

  void step_place(const RecomputeStep::BlockPlace& one) {
    out_.begin_object();
    out_.member("block", problem_.blocks[one.block].id);
    offsets(one.place.offsets, {});
    out_.member("window", one.place.own ? "own" : "linear");
    out_.end_object();
  }

  void head() {
    const auto& swaps = plan_.decisions.swaps;
    const auto returns_elsewhere = [](const Swap& swap) { return !swap.returns_to.empty(); };
    const bool second =
        problem_.machine.remap_ns || std::any_of(swaps.begin(), swaps.end(), returns_elsewhere) || has_launches();
    out_.member("format", second ? kSecondFormat : kFormat);
    if (is_given(Spelling::kName) || !problem_.name.empty()) out_.member("name", problem_.name);
  }

  void machine() {
    const Machine& machine = problem_.machine;
    out_.name("machine");
    out_.begin_object(kSpaces);
    out_.member("out_bytes_per_ns", machine.out_bytes_per_ns);
    out_.member("in_bytes_per_ns", machine.in_bytes_per_ns);
    if (is_given(Spelling::kOutLatency) || machine.out_latency_ns != 0) {
      out_.member("out_latency_ns", machine.out_latency_ns);
    }
    if (is_given(Spelling::kInLatency) || machine.in_latency_ns != 0) {
      out_.member("in_latency_ns", machine.in_latency_ns);
    }
    if (machine.remap_ns) out_.member("remap_ns", *machine.remap_ns);
    out_.end_object();
  }

  void limit() {
    out_.name("limit");
    problem_.limit ? out_.value(*problem_.limit) : out_.null();
  }

  template <typename Write>
  void list(const char* name, std::size_t count, const json::Spacing& spacing, const Write& write) {
    out_.name(name);
    out_.begin_list(spacing);
    for (std::size_t i = 0; i < count; ++i) write(i);
    out_.end_list();
  }

  void blocks() {
    list("blocks", problem_.blocks.size(), kLines, [&](std::size_t j) { block(j); });
  }
  void operations() {
    list("ops", problem_.operations.size(), kLines, [&](std::size_t i) { operation(i); });
  }
  void swaps(const json::Spacing& spacing) {
    list("swaps", plan_.decisions.swaps.size(), spacing, [&](std::size_t j) { swap(plan_.decisions.swaps[j]); });
  }

  void block(std::size_t j) {
    const Block& block = problem_.blocks[j];
    const bool observed = plan_.spelling.form == Spelling::Form::kObserved;
    const unsigned given = j < plan_.spelling.blocks.size() ? plan_.spelling.blocks[j] : 0U;
    out_.begin_object(observed ? kSpaces : json::Spacing{});
    out_.member("id", block.id);
    out_.member("size", block.bytes);
    if (block.persistent || (given & Spelling::kPersistent) != 0) out_.member("persistent", block.persistent);
    if (block.pinned || (given & Spelling::kPinned) != 0) out_.member("pinned", block.pinned);
    if (j < plan_.decisions.places.size()) {
      const Place& place = plan_.decisions.places[j];
      offsets(place.offsets, observed ? kSpaces : json::Spacing{});
      if (place.own || !observed) out_.member("window", place.own ? "own" : "linear");
    }
    if (!block.name.empty() || (given & Spelling::kBlockName) != 0) out_.member("name", block.name);
    out_.end_object();
  }

  void operation(std::size_t i) {
    const Operation& operation = problem_.operations[i];
    const auto& spelled = plan_.spelling.operations;
    std::uint8_t given = 3;
    if (i < spelled.size()) {
      given = spelled[i];
    } else if (operation.stream != 0) {
      given = 5;
    } else if (operation.kind != Kind::kMalloc && operation.kind != Kind::kNothing) {
      given = 4;
    }
    out_.begin_list();
    out_.value(kKinds[static_cast<std::size_t>(operation.kind)]);
    if (operation.block == kNoBlock) {
      out_.value(std::int64_t{-1});
    } else {
      out_.value(problem_.blocks[operation.block].id);
    }
    out_.value(operation.time);
    if ((given & 7) > 3) {
      (given & kNullAge) != 0 ? out_.null() : out_.value(std::uint64_t{operation.age});
    }
    if ((given & 7) > 4) out_.value(std::uint64_t{operation.stream});
    out_.end_list();
  }

  void swap(const Swap& swap) {
    out_.begin_object();
    out_.member("block", problem_.blocks[swap.block].id);
    out_.member("out_after", swap.out_after);
    if (swap.returns()) {
      out_.member("in_after", swap.in_after);
      out_.member("need", swap.need);
    }
    if (!swap.copy) out_.member("copy", false);
    offsets(swap.returns_to, {});
    out_.end_object();
  }

  void offsets(const std::vector<std::uint64_t>& all, const json::Spacing& spacing) {
    if (all.size() == 1) out_.member("offset", all[0]);
    if (all.size() <= 1) return;
    out_.name("offset");
    out_.begin_list(spacing);
    for (const std::uint64_t offset : all) out_.value(offset);
    out_.end_list();
  }

  const PlanFile& plan_;
  const Problem& problem_;
  std::ostream& stream_;
  json::Writer out_;
};

}  // namespace

void write_plan(const PlanFile& plan, std::ostream& out) { Writer(plan, out).write(); }

}  // namespace memopt::swap
