#include "planner/swap/files/g10_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/input/shown.h"
#include "planner/input/text.h"

namespace memopt::swap {
namespace {

constexpr std::string_view kKernel = "Kernel ID: ";
constexpr std::string_view kCyclesLine = "Execution Time: ";
constexpr std::string_view kInputs = "Input Tensors:", kOutputs = "Output Tensors:";

// Each tensor has a line, so that sizes add up to 2^59 at most, which is what find_liveness counts to; times to 2^61.
constexpr input::TextBounds kTableBounds{.expected = "a kernel table of G10's",
                                         .line_bytes = std::size_t{1} << 16,
                                         .lines = std::uint64_t{1} << 21,
                                         .bytes = std::uint64_t{1} << 30};
constexpr std::uint64_t kMostTensorBytes = std::uint64_t{1} << 38, kMostCycles = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostTensors = std::uint64_t{1} << 62;  // ids of blocks in plans
constexpr double kCyclesPerNs = 1.2;                            // of the A100 that was measured
constexpr std::uint64_t kMostNs = std::uint64_t{1} << 53;       // whole ones up to here are exact

// What is left of one line.
class Rest {
 public:
  explicit Rest(std::string_view text) : text_(text) {}

  bool pass(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::uint64_t> number() {
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), result);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return result;
  }
  bool is_over() const { return text_.empty(); }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

struct Kernel {
  std::string name;
  std::uint64_t cycles = 0;
  std::vector<std::uint32_t> reads, writes;  // blocks, each once in each
};

class TableReader {
 public:
  explicit TableReader(input::File& file) : lines_(file, kTableBounds) {}

  PlanFile read() {
    while (advance()) kernel();
    if (kernels_.empty()) fail_line("a kernel, such as Kernel ID: 0, Name: Conv2d_Forward");
    return iteration();
  }

 private:
  struct Tensor {
    std::uint64_t bytes = 0;
    bool weight = false;
    std::uint64_t line = 0;          // on which it is named first
    std::uint32_t block = kNoBlock;  // none: of no bytes
  };

  // To the next line that is not blank, without blanks at its end.
  bool advance() {
    line_ = {};
    while (lines_.next(line_)) {
      const std::size_t last = line_.find_last_not_of(" \t\r");
      if (last == std::string_view::npos) continue;
      line_ = line_.substr(0, last + 1);
      return true;
    }
    line_ = {};
    return false;
  }

  [[noreturn]] void fail_line(const std::string& expected) const {
    lines_.fail(expected, line_.empty() ? "the end" : input::shown(line_));
  }

  // Lines from `Kernel ID` to the rule that ends it.
  void kernel() {
    Kernel kernel;
    Rest head(line_);
    if (!head.pass(kKernel) || !head.number() || !head.pass(", Name: ") || head.is_over())
      fail_line("a kernel, such as Kernel ID: 0, Name: Conv2d_Forward");
    kernel.name = input::shown(head.text());
    if (!advance() || !line_.starts_with("Parent OP ID:")) fail_line("Parent OP ID: and a number");
    advance();
    Rest time(line_);
    const std::optional<std::uint64_t> cycles = time.pass(kCyclesLine) ? time.number() : std::nullopt;
    if (!cycles || !time.is_over() || *cycles > kMostCycles)
      fail_line("Execution Time: and a number from 0 to " + std::to_string(kMostCycles));
    kernel.cycles = *cycles;
    cycles_ += *cycles;
    if (static_cast<double>(cycles_) / kCyclesPerNs > static_cast<double>(kMostNs))
      fail_line("kernels that take 2^53 ns together at most");
    if (!advance() || line_ != kInputs) fail_line(std::string(kInputs));
    while (advance() && line_ != kOutputs) {
      tensor(kernel, kernel.reads,
             "a tensor, such as tensor1 Is weight (global)?: 0, Size in byte: 4096, or " + std::string(kOutputs));
    }
    if (line_.empty()) fail_line(std::string(kOutputs));
    while (advance() && line_.find_first_not_of('_') != std::string_view::npos) {
      tensor(kernel, kernel.writes,
             "a tensor, such as tensor1 Is weight (global)?: 0, Size in byte: 4096, or a rule of underscores");
    }
    if (line_.empty()) fail_line("a rule of underscores");
    kernels_.push_back(std::move(kernel));
  }

  void tensor(const Kernel& kernel, std::vector<std::uint32_t>& named, const std::string& expected) {
    Rest rest(line_);
    if (!rest.pass("tensor")) fail_line(expected);
    const std::optional<std::uint64_t> number = rest.number();
    if (!number || *number > kMostTensors || !rest.pass(" Is weight (global)?: ")) fail_line(expected);
    const bool weight = rest.pass("1");
    if (!weight && !rest.pass("0")) fail_line(expected);
    if (!rest.pass(", Size in byte: ")) fail_line(expected);
    const std::optional<std::uint64_t> bytes = rest.number();
    // Where it lies behind that, is not looked at.
    if (!bytes || (!rest.is_over() && !rest.pass(","))) fail_line(expected);
    if (*bytes > kMostTensorBytes) fail_line("a tensor of at most " + std::to_string(kMostTensorBytes) + " bytes");
    const auto [found, fresh] = tensors_.try_emplace(*number, Tensor{*bytes, weight, lines_.number()});
    Tensor& its = found->second;
    if (its.bytes != *bytes || its.weight != weight)
      fail_line("tensor" + std::to_string(*number) + " as on line " + std::to_string(its.line));
    if (its.bytes == 0) return;
    if (fresh) {
      std::vector<Block>& blocks = plan_.problem.blocks;
      its.block = static_cast<std::uint32_t>(blocks.size());
      const bool made = &named == &kernel.writes;
      blocks.push_back({.id = *number, .bytes = its.bytes, .persistent = weight});
      blocks.back().name = weight ? "weight" : made ? kernel.name : "input";
      last_named_.emplace_back();
    }
    // Kernel and list, from 1; what is read comes first.
    const std::uint64_t place = 2 * kernels_.size() + (&named == &kernel.writes ? 2 : 1);
    if (std::exchange(last_named_[its.block], place) != place) named.push_back(its.block);
  }

  PlanFile iteration() {
    std::vector<Block>& blocks = plan_.problem.blocks;
    std::vector<std::size_t> last(blocks.size());
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      for (const std::vector<std::uint32_t>* named : {&kernels_[k].reads, &kernels_[k].writes}) {
        for (const std::uint32_t b : *named) last[b] = k;
      }
    }
    std::vector<bool> born(blocks.size());
    std::uint64_t cycles = 0;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const Kernel& kernel = kernels_[k];
      for (const std::vector<std::uint32_t>* named : {&kernel.reads, &kernel.writes}) {
        for (const std::uint32_t b : *named) {
          if (!blocks[b].persistent && !born[b]) add(Kind::kMalloc, b);
          born[b] = true;
        }
      }
      bool continues = false;
      const auto access = [&](Kind kind, std::uint32_t b) {
        add(kind, b);
        plan_.problem.operations.back().continues = std::exchange(continues, true);
      };
      for (const std::uint32_t b : kernel.reads) access(Kind::kRead, b);
      for (const std::uint32_t b : kernel.writes) access(Kind::kWrite, b);
      if (!continues) access(Kind::kNothing, kNoBlock);
      cycles += kernel.cycles;
      now_ = std::round(static_cast<double>(cycles) / kCyclesPerNs);
      for (const std::vector<std::uint32_t>* named : {&kernel.reads, &kernel.writes}) {
        for (const std::uint32_t b : *named) {
          if (blocks[b].persistent || last[b] != k || !born[b]) continue;
          add(Kind::kFree, b);
          born[b] = false;  // it may be in both lists
        }
      }
    }
    plan_.problem.period = now_;
    return std::move(plan_);
  }

  void add(Kind kind, std::uint32_t block) {
    plan_.problem.operations.push_back({.kind = kind, .block = block, .time = now_});
  }

  input::Lines lines_;
  std::string_view line_;  // empty: there is none any more
  PlanFile plan_;
  std::unordered_map<std::uint64_t, Tensor> tensors_;
  std::vector<std::uint64_t> last_named_;  // by block
  std::vector<Kernel> kernels_;
  std::uint64_t cycles_ = 0;  // of all kernels
  double now_ = 0;
};

}  // namespace

bool is_g10_table(const input::File& file) {
  const std::string_view head = file.head();
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head.substr(first).starts_with(kKernel);
}

PlanFile read_g10_table(input::File& file) {
  try {
    return TableReader(file).read();
  } catch (const input::InputError& error) {
    throw Invalid(error.what());
  }
}

}  // namespace memopt::swap
