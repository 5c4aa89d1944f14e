#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "planner/input/shown.h"
#include "planner/json/tree.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/files/plan_format.h"

namespace memopt::swap {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestExact = std::uint64_t{1} << 53;
constexpr std::size_t kLongestMessage = 300;  // of the parser, which has what it read in it

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const Json& found) {
  std::string shown = found.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  throw Invalid(where + ": expected " + expected + ", found " + shown);
}

std::string element(const char* list, std::size_t index) {
  return std::string(list) + '[' + std::to_string(index) + ']';
}

// A tree is printed and destroyed level by level, on the stack; ours has four levels.
void expect_flat(std::string_view text) {
  constexpr std::size_t kDeepest = 32;
  std::size_t depth = 0, line = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"') in_string = !in_string;
    if (c == '\\' && in_string) ++i;
    if (in_string) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepest) {
      throw Invalid("line " + std::to_string(line) + ": expected lists and objects in each other at most " +
                    std::to_string(kDeepest) + " deep, found more");
    }
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
}

// The parser says where syntax is wrong, but of a number too large for a double only the number, in quotes.
std::string line_of_number(std::string_view text, const Json::exception& error) {
  constexpr int kNumberOverflow = 406;
  const std::string_view message = error.what();
  const std::size_t from = message.find('\''), to = message.rfind('\'');
  if (error.id != kNumberOverflow || from == to) return "";
  const std::size_t at = std::min(text.find(message.substr(from + 1, to - from - 1)), text.size());
  return "line " + std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
         ": ";
}

// The members of one object, each asked for by name; what was never asked for is unknown.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse(where_.empty() ? "the plan" : where_, "an object", object);
  }

  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string list;
      for (const std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
      throw Invalid(input::shown(place(name)) + ": unknown field; expected " + list);
    }
  }
  std::string place(const std::string& name) const { return where_.empty() ? name : where_ + '.' + name; }
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const Json& get(const char* name, const char* expected) const {
    const Json* found = find(name);
    if (!found) throw Invalid(place(name) + ": is missing; expected " + expected);
    return *found;
  }

 private:
  const Json& object_;
  std::string where_;
};

std::uint64_t integer(const Json& value, const std::string& where, std::uint64_t least = 0,
                      std::uint64_t largest = kLargest) {
  const bool fits =
      value.is_number_unsigned() && value.get<std::uint64_t>() >= least && value.get<std::uint64_t>() <= largest;
  if (!fits) refuse(where, "an integer from " + std::to_string(least) + " to " + std::to_string(largest), value);
  return value.get<std::uint64_t>();
}

double number(const Json& value, const std::string& where) {
  if (value.is_number_unsigned()) return static_cast<double>(integer(value, where, 0, kLargestExact));
  // Above, sums of times would soon be infinite.
  const bool fits = value.is_number_float() && value.get<double>() >= 0 && value.get<double>() <= 0x1p62;
  if (!fits) refuse(where, "a number from 0 to 2^62", value);
  return value.get<double>();
}

bool boolean(const Json& value, const std::string& where) {
  if (!value.is_boolean()) refuse(where, "true or false", value);
  return value.get<bool>();
}

std::string string(const Json& value, const std::string& where) {
  if (!value.is_string()) refuse(where, "a string", value);
  return value.get<std::string>();
}

const Json& array(const Json& value, const std::string& where) {
  if (!value.is_array()) refuse(where, "a list", value);
  return value;
}

class Reader {
 public:
  explicit Reader(const Json& document) : top_(document, "") {}

  PlanFile read() {
    const Json& format = top_.get("format", kFormats);
    if (format != kFormat && format != kSecondFormat) refuse("format", kFormats, format);
    second_ = format == kSecondFormat;
    if (second_) {
      top_.only({"format", "name", "comment", "period", "ops", "blocks", "machine", "limit", "chunk", "align", "layout",
                 "lazy_malloc", "swaps", "launches", "recompute"});
    } else {
      top_.only({"format", "name", "comment", "period", "ops", "blocks", "machine", "limit", "chunk", "align", "layout",
                 "lazy_malloc", "swaps"});
    }
    Problem& problem = file_.problem;
    file_.spelling.fields = 0;
    if (const Json* v = optional("name", Spelling::kName)) problem.name = string(*v, "name");
    if (const Json* v = top_.find("comment")) file_.comment = string(*v, "comment");
    if (const Json* v = optional("limit", Spelling::kLimit); v && !v->is_null()) problem.limit = integer(*v, "limit");
    if (const Json* v = optional("chunk", Spelling::kChunk)) problem.chunk = integer(*v, "chunk", 1);
    if (const Json* v = optional("align", Spelling::kAlign)) problem.align = integer(*v, "align", 1);
    if (const Json* v = optional("layout", Spelling::kLayout)) problem.layout = boolean(*v, "layout");
    if (const Json* v = optional("lazy_malloc", Spelling::kLazyMalloc))
      problem.lazy_malloc = boolean(*v, "lazy_malloc");
    problem.period = number(top_.get("period", "nanoseconds"), "period");
    machine();
    blocks();
    operations();
    if (const Json* v = optional("swaps", Spelling::kSwaps)) swaps(*v);
    if (const Json* v = top_.find("launches")) launches(*v);
    if (const Json* v = top_.find("recompute")) recompute(*v);
    return std::move(file_);
  }

 private:
  const Json* optional(const char* name, Spelling::Field field) {
    const Json* found = top_.find(name);
    if (found) file_.spelling.fields |= field;
    return found;
  }

  void machine() {
    const Members members(top_.get("machine", "an object"), "machine");
    if (second_) {
      members.only({"out_bytes_per_ns", "in_bytes_per_ns", "out_latency_ns", "in_latency_ns", "remap_ns"});
    } else {
      members.only({"out_bytes_per_ns", "in_bytes_per_ns", "out_latency_ns", "in_latency_ns"});
    }
    Machine& m = file_.problem.machine;
    m.out_bytes_per_ns = number(members.get("out_bytes_per_ns", "a number"), "machine.out_bytes_per_ns");
    m.in_bytes_per_ns = number(members.get("in_bytes_per_ns", "a number"), "machine.in_bytes_per_ns");
    if (const Json* v = members.find("out_latency_ns")) {
      m.out_latency_ns = number(*v, "machine.out_latency_ns");
      file_.spelling.fields |= Spelling::kOutLatency;
    }
    if (const Json* v = members.find("in_latency_ns")) {
      m.in_latency_ns = number(*v, "machine.in_latency_ns");
      file_.spelling.fields |= Spelling::kInLatency;
    }
    if (const Json* v = members.find("remap_ns")) m.remap_ns = number(*v, "machine.remap_ns");
  }

  void blocks() {
    const Json& list = array(top_.get("blocks", "a list"), "blocks");
    bool placed = false;
    std::vector<Place> places(list.size());
    for (std::size_t j = 0; j < list.size(); ++j) {
      const std::string where = element("blocks", j);
      const Members members(list[j], where);
      members.only({"id", "size", "persistent", "pinned", "offset", "window", "name"});
      Block block;
      std::uint8_t given = 0;
      block.id = integer(members.get("id", "an integer"), where + ".id");
      if (!index_.emplace(block.id, static_cast<std::uint32_t>(j)).second) {
        throw Invalid(where + ".id: block " + std::to_string(block.id) + " is given twice");
      }
      block.bytes = integer(members.get("size", "bytes"), where + ".size");
      if (const Json* v = members.find("persistent")) {
        block.persistent = boolean(*v, where + ".persistent");
        given |= Spelling::kPersistent;
      }
      if (const Json* v = members.find("pinned")) {
        block.pinned = boolean(*v, where + ".pinned");
        given |= Spelling::kPinned;
      }
      if (const Json* v = members.find("name")) {
        block.name = string(*v, where + ".name");
        given |= Spelling::kBlockName;
      }
      if (const Json* v = members.find("window")) {
        places[j].own = is_own(*v, where + ".window");
        placed = true;
      }
      if (const Json* v = members.find("offset"); v && !v->is_null()) {
        placed = true;
        places[j].offsets = offsets(*v, where + ".offset");
      }
      file_.spelling.blocks.push_back(given);
      file_.problem.blocks.push_back(std::move(block));
    }
    if (placed) file_.decisions.places = std::move(places);
  }

  static bool is_own(const Json& window, const std::string& where) {
    if (window != "own" && window != "linear") refuse(where, "\"own\" or \"linear\"", window);
    return window == "own";
  }

  static std::vector<std::uint64_t> offsets(const Json& value, const std::string& where) {
    std::vector<std::uint64_t> result;
    if (!value.is_array()) {
      result.push_back(integer(value, where));
      return result;
    }
    if (value.empty() || value.size() > 8) refuse(where, "1 to 8 offsets", value);
    for (const Json& one : value) result.push_back(integer(one, where));
    return result;
  }

  std::uint32_t block(const Json& value, const std::string& where) const {
    const auto found = value.is_number_unsigned() ? index_.find(value.get<std::uint64_t>()) : index_.end();
    if (found == index_.end()) refuse(where, "the id of a block", value);
    return found->second;
  }

  void operations() {
    const Json& list = array(top_.get("ops", "a list"), "ops");
    std::vector<bool> born(file_.problem.blocks.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Json& one = list[i];
      const std::string where = element("ops", i);
      if (!one.is_array() || one.size() < 3 || one.size() > 5) {
        refuse(where, "[kind, block, time], [.., age] or [.., age, stream]", one);
      }
      Operation op;
      const auto kind = one[0].is_string() && one[0].get_ref<const std::string&>().size() == 1
                            ? kKinds.find(one[0].get_ref<const std::string&>())
                            : std::string_view::npos;
      if (kind == std::string_view::npos) refuse(where + ": kind", "m, f, r, w or x", one[0]);
      op.kind = static_cast<Kind>(kind);
      if (op.kind == Kind::kNothing) {
        if (one[1] != -1) refuse(where + ": block", "-1 for an operation of kind x", one[1]);
      } else {
        op.block = block(one[1], where + ": block");
      }
      op.time = number(one[2], where + ": time");
      auto given = static_cast<std::uint8_t>(one.size());
      if (one.size() > 3 && !one[3].is_null()) {
        op.age = static_cast<std::uint32_t>(integer(one[3], where + ": age", 0, 7));
      } else {
        if (one.size() > 3) given |= kNullAge;
        const bool young = op.kind == Kind::kNothing || op.kind == Kind::kMalloc || born[op.block] ||
                           file_.problem.blocks[op.block].persistent;
        op.age = young ? 0 : 1;
      }
      if (op.kind == Kind::kMalloc) born[op.block] = true;
      if (one.size() > 4) op.stream = static_cast<std::uint32_t>(integer(one[4], where + ": stream", 0, kNoBlock));
      file_.spelling.operations.push_back(given);
      file_.problem.operations.push_back(op);
    }
  }

  void swaps(const Json& list) {
    array(list, "swaps");
    for (std::size_t j = 0; j < list.size(); ++j) {
      const std::string where = element("swaps", j);
      const Members members(list[j], where);
      if (second_) {
        members.only({"block", "out_after", "in_after", "need", "copy", "offset"});
      } else {
        members.only({"block", "out_after", "in_after", "need", "copy"});
      }
      Swap swap;
      swap.block = block(members.get("block", "the id of a block"), where + ".block");
      swap.out_after = integer(members.get("out_after", "a position"), where + ".out_after");
      const auto position = [&](const char* name) {
        const Json* v = members.find(name);
        return v && !v->is_null() ? integer(*v, where + '.' + name) : kNever;
      };
      swap.in_after = position("in_after");
      swap.need = position("need");
      if (const Json* v = members.find("copy")) swap.copy = boolean(*v, where + ".copy");
      if (const Json* v = members.find("offset"); v && !v->is_null()) {
        swap.returns_to = offsets(*v, where + ".offset");
      }
      file_.decisions.swaps.push_back(swap);
    }
  }

  static constexpr const char* kFormats = "\"memopt-plan-1\" or \"memopt-plan-2\"";

  void launches(const Json& list) {
    array(list, "launches");
    file_.launches = true;
    std::vector<Operation>& operations = file_.problem.operations;
    std::uint64_t behind = 0;
    for (std::size_t j = 0; j < list.size(); ++j) {
      const std::string where = element("launches", j);
      const Json& one = list[j];
      if (!one.is_array() || one.size() != 2) refuse(where, "[first, number]", one);
      const std::uint64_t first = integer(one[0], where + ": first", behind, operations.size());
      const std::uint64_t number = integer(one[1], where + ": number", 1, operations.size() - first);
      for (std::uint64_t i = first; i < first + number; ++i) {
        Operation& operation = operations[i];
        if (operation.kind == Kind::kMalloc || operation.kind == Kind::kFree) {
          throw Invalid(where + ": expected operations of kind r, w or x, and operation " + std::to_string(i) +
                        " is none");
        }
        operation.continues = i > first;
      }
      behind = first + number;
    }
  }

  void recompute(const Json& list) {
    array(list, "recompute");
    const std::size_t n = file_.problem.operations.size();
    for (std::size_t j = 0; j < list.size(); ++j) {
      const std::string where = element("recompute", j);
      const Members members(list[j], where);
      members.only({"before", "drop", "replay", "places"});
      RecomputeStep step;
      step.before = static_cast<std::uint32_t>(integer(members.get("before", "an operation"), where + ".before", 0, n));
      const Json* const drop = members.find("drop");
      step.drop = drop != nullptr;
      if (step.drop == (members.find("replay") != nullptr))
        throw Invalid(where + ": expected drop or replay, and not both");
      if (step.drop) {
        step.what = block(*drop, where + ".drop");
      } else {
        const std::uint64_t least = 0, most = n == 0 ? 0 : n - 1;
        step.what = static_cast<std::uint32_t>(integer(*members.find("replay"), where + ".replay", least, most));
      }
      if (const Json* v = members.find("places")) {
        if (step.drop) throw Invalid(where + ".places: a drop has none");
        step_places(array(*v, where + ".places"), where, step);
      }
      file_.recompute.push_back(step);
    }
  }

  void step_places(const Json& list, const std::string& of, RecomputeStep& step) const {
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::string where = of + '.' + element("places", k);
      const Members members(list[k], where);
      members.only({"block", "offset", "window"});
      RecomputeStep::BlockPlace one;
      one.block = block(members.get("block", "the id of a block"), where + ".block");
      one.place.offsets = offsets(members.get("offset", "bytes"), where + ".offset");
      if (const Json* window = members.find("window")) one.place.own = is_own(*window, where + ".window");
      step.places.push_back(std::move(one));
    }
  }

  Members top_;
  bool second_ = false;
  PlanFile file_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

}  // namespace

PlanFile parse_plan(const std::string& content) {
  expect_flat(content);
  Json document;
  try {
    document = Json::parse(content);
  } catch (const Json::exception& error) {
    throw Invalid("not JSON: " + line_of_number(content, error) + input::shown(error.what(), kLongestMessage));
  }
  return Reader(document).read();
}

PlanFile read_plan(input::File& file) {
  std::string text;
  try {
    text = input::read_text(file, kPlanBounds);
  } catch (const input::InputError& error) {
    throw Invalid(error.what());
  }
  try {
    return parse_plan(text);
  } catch (const Invalid& error) {
    throw Invalid(file.name() + ": " + error.what());
  }
}

PlanFile read_plan(const std::string& path) {
  std::optional<input::File> file;
  try {
    file.emplace(path);
  } catch (const input::InputError& error) {
    throw Invalid(error.what());
  }
  return read_plan(*file);
}

}  // namespace memopt::swap
