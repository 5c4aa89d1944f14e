#include "planner/layout/published/integer_program.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "planner/layout/problem/validation.h"
#include "planner/layout/published/smart_pool.h"

namespace memopt::layout {
namespace {

constexpr std::string_view kName = "integer-program";
constexpr std::size_t kMostConflicts = 20000;
// In units of the sizes' divisor. CBC accepts a z_ij within 1e-6 of an integer, which shifts (3) and (4) by W times
// that: far less than a unit up to this W.
constexpr std::uint64_t kLargestForProofs = 100000;

using Pair = std::pair<std::uint32_t, std::uint32_t>;

// The edges of the conflict graph: pairs of buffers that overlap in time. Up to one more than `most`.
std::vector<Pair> conflicts_of(const Problem& problem, std::size_t most) {
  struct Piece {
    Interval when;
    std::uint32_t buffer;
  };
  std::vector<Piece> pieces;
  for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
    for (const Interval& interval : problem.intervals_of(i)) pieces.push_back({interval, i});
  }
  std::sort(pieces.begin(), pieces.end(), [](auto& a, auto& b) { return a.when.begin < b.when.begin; });
  std::vector<Pair> conflicts;
  std::vector<Piece> live;
  for (const Piece& piece : pieces) {
    std::erase_if(live, [&](const Piece& other) { return other.when.end <= piece.when.begin; });
    for (const Piece& other : live) conflicts.push_back(std::minmax(other.buffer, piece.buffer));
    live.push_back(piece);
    if (conflicts.size() <= most) continue;
    // Two buffers may overlap several times.
    std::sort(conflicts.begin(), conflicts.end());
    conflicts.erase(std::unique(conflicts.begin(), conflicts.end()), conflicts.end());
    if (conflicts.size() > most) return conflicts;
  }
  std::sort(conflicts.begin(), conflicts.end());
  conflicts.erase(std::unique(conflicts.begin(), conflicts.end()), conflicts.end());
  return conflicts;
}

std::uint64_t common_unit(const Problem& problem) {
  std::uint64_t unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    unit = std::gcd(unit, buffer.bytes);
    if (buffer.alignment != 1) unit = std::gcd(unit, buffer.alignment);
    if (buffer.fixed != kAnywhere) unit = std::gcd(unit, buffer.fixed);
  }
  return std::max<std::uint64_t>(unit, 1);
}

struct Delete {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

class IntegerProgram {
 public:
  IntegerProgram(const Problem& problem, const std::vector<Pair>& conflicts, std::uint64_t largest)
      : problem_(problem), unit_(common_unit(problem)), largest_(static_cast<double>(largest / unit_)) {
    Cbc_setLogLevel(model(), 0);
    Cbc_addCol(model(), "", 0, largest_, 1, 0, 0, nullptr, nullptr);
    for (const Buffer& buffer : problem.buffers) add_place(buffer);
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      add_row({{0, -1}, {column(i), scale(i)}}, -size(i));
    }
    for (const auto& [i, j] : conflicts) {
      const int z = Cbc_getNumCols(model());
      Cbc_addCol(model(), "", 0, 1, 0, 1, 0, nullptr, nullptr);
      add_row({{column(i), scale(i)}, {column(j), -scale(j)}, {z, -largest_}}, -size(i));
      add_row({{column(j), scale(j)}, {column(i), -scale(i)}, {z, largest_}}, largest_ - size(j));
    }
  }

  void solve(const Limits& limits) {
    set("randomSeed", std::to_string(1 + limits.seed % 1000000));
    set("randomCbcSeed", std::to_string(1 + limits.seed % 1000000));
    if (limits.time != std::chrono::nanoseconds::max()) {
      set("timeMode", "elapsed");
      set("seconds", std::to_string(std::chrono::duration<double>(limits.time).count()));
    }
    Cbc_solve(model());
  }

  bool proven_optimal() const { return Cbc_isProvenOptimal(model()) != 0 && exact(); }
  bool proven_infeasible() const { return Cbc_isProvenInfeasible(model()) != 0 && exact(); }

  // The buffers from the bottom up. Empty: no solution was found.
  std::vector<std::uint32_t> order() const {
    const double* const solution = Cbc_bestSolution(model());
    if (!solution) return {};
    std::vector<std::uint32_t> order(problem_.buffers.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto place = [&](std::uint32_t i) { return solution[column(i)] * scale(i); };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });
    return order;
  }

 private:
  Cbc_Model* model() const { return model_.get(); }
  bool exact() const { return largest_ <= static_cast<double>(kLargestForProofs); }
  static int column(std::size_t buffer) { return static_cast<int>(buffer) + 1; }
  double in_units(std::uint64_t bytes) const { return static_cast<double>(bytes / unit_); }
  double size(std::size_t buffer) const { return in_units(problem_.buffers[buffer].bytes); }

  bool in_multiples(const Buffer& buffer) const { return buffer.fixed == kAnywhere && buffer.alignment > unit_; }
  // What one in the column of a buffer stands for: an aligned buffer's counts multiples of its alignment.
  double scale(std::size_t buffer) const {
    const Buffer& it = problem_.buffers[buffer];
    return in_multiples(it) ? in_units(it.alignment) : 1;
  }

  void add_place(const Buffer& buffer) {
    const bool fixed = buffer.fixed != kAnywhere;
    const double from = fixed ? in_units(buffer.fixed) : 0;
    const double to = fixed ? from : largest_;
    Cbc_addCol(model(), "", from, to, 0, in_multiples(buffer) ? 1 : 0, 0, nullptr, nullptr);
  }

  struct Term {
    int column;
    double factor;
  };

  void add_row(std::initializer_list<Term> terms, double at_most) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const Term& term : terms) {
      columns.push_back(term.column);
      factors.push_back(term.factor);
    }
    Cbc_addRow(model(), "", static_cast<int>(terms.size()), columns.data(), factors.data(), 'L', at_most);
  }

  void set(const char* name, const std::string& value) { Cbc_setParameter(model(), name, value.c_str()); }

  const Problem& problem_;
  const std::uint64_t unit_;
  const double largest_;
  const std::unique_ptr<Cbc_Model, Delete> model_{Cbc_newModel()};
};

// Each buffer on top of those before it that conflict with it.
std::vector<std::uint64_t> stack_in_order(const Problem& problem, const std::vector<Pair>& conflicts,
                                          const std::vector<std::uint32_t>& order) {
  std::vector<std::vector<std::uint32_t>> neighbours(problem.buffers.size());
  for (const auto& [i, j] : conflicts) {
    neighbours[i].push_back(j);
    neighbours[j].push_back(i);
  }
  std::vector<std::uint64_t> offsets(problem.buffers.size(), kAnywhere);
  for (const std::uint32_t i : order) {
    const Buffer& buffer = problem.buffers[i];
    std::uint64_t offset = 0;
    for (const std::uint32_t j : neighbours[i]) {
      if (offsets[j] != kAnywhere) offset = std::max(offset, offsets[j] + problem.buffers[j].bytes);
    }
    if (const std::uint64_t over = offset % buffer.alignment; over != 0) offset += buffer.alignment - over;
    offsets[i] = buffer.fixed != kAnywhere ? buffer.fixed : offset;
  }
  return offsets;
}

}  // namespace

std::optional<std::string> integer_program_unsupported(const Problem& problem) {
  if (conflicts_of(problem, kMostConflicts).size() <= kMostConflicts) return {};
  return "more than " + std::to_string(kMostConflicts) + " pairs of buffers are needed at the same time";
}

Outcome integer_program(const Problem& problem, const Limits& limits) {
  const std::uint64_t bound = load_bound(problem);
  Problem free = problem;
  free.capacity.reset();
  const Outcome heuristic = smart_pool_best_fit(free, limits);
  const auto conflicts = conflicts_of(problem, kMostConflicts);
  const bool possible = !problem.capacity || bound <= *problem.capacity;
  if (!heuristic.found(problem.buffers.size()) || conflicts.size() > kMostConflicts || !possible ||
      problem.buffers.empty()) {
    return outcome_of(problem, {}, bound, kName);
  }
  if (conflicts.empty()) {  // nothing to decide: CBC would not start a search
    return outcome_of(problem, heuristic.solution.offsets, bound, kName);
  }
  const std::uint64_t largest = std::min(heuristic.solution.height, problem.capacity.value_or(kAnywhere));
  IntegerProgram program(problem, conflicts, largest);
  program.solve(limits);
  auto order = program.order();
  std::vector<std::uint64_t> offsets;
  if (!order.empty()) offsets = stack_in_order(problem, conflicts, order);
  Outcome outcome = outcome_of(problem, std::move(offsets), bound, kName);
  if (outcome.found(problem.buffers.size()) && validate(problem, outcome.solution)) {
    // Offsets that were equal within the tolerance gave no valid order.
    return outcome_of(problem, {}, bound, kName);
  }
  if (outcome.found(problem.buffers.size()) && program.proven_optimal()) {
    outcome.lower_bound = outcome.solution.height;
    outcome.optimal = true;
  }
  if (program.proven_infeasible() && problem.capacity && largest == *problem.capacity) outcome.infeasible = true;
  return outcome;
}

}  // namespace memopt::layout
