#include "planner/swap/plan_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string_view>
#include <unordered_map>

namespace memopt::swap {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "memopt-plan-1";
constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestExact = std::uint64_t{1} << 53;
constexpr std::string_view kKinds = "mfrwx";
constexpr std::uint8_t kNullAge = 8;

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const json& found) {
  std::string shown = found.dump(-1, ' ', true, json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  throw Invalid(where + ": expected " + expected + ", found " + shown);
}

std::string element(const char* list, std::size_t index) {
  return std::string(list) + '[' + std::to_string(index) + ']';
}

// The members of one object, each asked for by name; what was never asked for is unknown.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse(where_.empty() ? "the plan" : where_, "an object", object);
  }

  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      std::string list;
      for (const std::string_view one : known) list += (list.empty() ? "" : ", ") + std::string(one);
      throw Invalid(place(name) + ": unknown field; expected " + list);
    }
  }
  std::string place(const std::string& name) const { return where_.empty() ? name : where_ + '.' + name; }
  const json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const json& get(const char* name, const char* expected) const {
    const json* found = find(name);
    if (!found) throw Invalid(place(name) + ": is missing; expected " + expected);
    return *found;
  }

 private:
  const json& object_;
  std::string where_;
};

std::uint64_t integer(const json& value, const std::string& where, std::uint64_t least = 0,
                      std::uint64_t largest = kLargest) {
  const bool fits =
      value.is_number_unsigned() && value.get<std::uint64_t>() >= least && value.get<std::uint64_t>() <= largest;
  if (!fits) refuse(where, "an integer from " + std::to_string(least) + " to " + std::to_string(largest), value);
  return value.get<std::uint64_t>();
}

double number(const json& value, const std::string& where) {
  if (value.is_number_unsigned()) return static_cast<double>(integer(value, where, 0, kLargestExact));
  if (!value.is_number_float() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
    refuse(where, "a number of 0 or more", value);
  }
  return value.get<double>();
}

bool boolean(const json& value, const std::string& where) {
  if (!value.is_boolean()) refuse(where, "true or false", value);
  return value.get<bool>();
}

std::string string(const json& value, const std::string& where) {
  if (!value.is_string()) refuse(where, "a string", value);
  return value.get<std::string>();
}

const json& array(const json& value, const std::string& where) {
  if (!value.is_array()) refuse(where, "a list", value);
  return value;
}

class Reader {
 public:
  explicit Reader(const json& document) : top_(document, "") {}

  PlanFile read() {
    top_.only({"format", "name", "comment", "period", "ops", "blocks", "machine", "limit", "chunk", "align", "layout",
               "lazy_malloc", "swaps"});
    if (const json& format = top_.get("format", "\"memopt-plan-1\""); format != kFormat) {
      refuse("format", "\"memopt-plan-1\"", format);
    }
    Problem& problem = file_.problem;
    file_.spelling.fields = 0;
    if (const json* v = optional("name", Spelling::kName)) problem.name = string(*v, "name");
    if (const json* v = top_.find("comment")) file_.comment = string(*v, "comment");
    if (const json* v = optional("limit", Spelling::kLimit); v && !v->is_null()) problem.limit = integer(*v, "limit");
    if (const json* v = optional("chunk", Spelling::kChunk)) problem.chunk = integer(*v, "chunk", 1);
    if (const json* v = optional("align", Spelling::kAlign)) problem.align = integer(*v, "align", 1);
    if (const json* v = optional("layout", Spelling::kLayout)) problem.layout = boolean(*v, "layout");
    if (const json* v = optional("lazy_malloc", Spelling::kLazyMalloc))
      problem.lazy_malloc = boolean(*v, "lazy_malloc");
    problem.period = number(top_.get("period", "nanoseconds"), "period");
    machine();
    blocks();
    operations();
    if (const json* v = optional("swaps", Spelling::kSwaps)) swaps(*v);
    return std::move(file_);
  }

 private:
  const json* optional(const char* name, Spelling::Field field) {
    const json* found = top_.find(name);
    if (found) file_.spelling.fields |= field;
    return found;
  }

  void machine() {
    const Members members(top_.get("machine", "an object"), "machine");
    members.only({"out_bytes_per_ns", "in_bytes_per_ns", "out_latency_ns", "in_latency_ns"});
    Machine& m = file_.problem.machine;
    m.out_bytes_per_ns = number(members.get("out_bytes_per_ns", "a number"), "machine.out_bytes_per_ns");
    m.in_bytes_per_ns = number(members.get("in_bytes_per_ns", "a number"), "machine.in_bytes_per_ns");
    if (const json* v = members.find("out_latency_ns")) {
      m.out_latency_ns = number(*v, "machine.out_latency_ns");
      file_.spelling.fields |= Spelling::kOutLatency;
    }
    if (const json* v = members.find("in_latency_ns")) {
      m.in_latency_ns = number(*v, "machine.in_latency_ns");
      file_.spelling.fields |= Spelling::kInLatency;
    }
  }

  void blocks() {
    const json& list = array(top_.get("blocks", "a list"), "blocks");
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
      if (const json* v = members.find("persistent")) {
        block.persistent = boolean(*v, where + ".persistent");
        given |= Spelling::kPersistent;
      }
      if (const json* v = members.find("pinned")) {
        block.pinned = boolean(*v, where + ".pinned");
        given |= Spelling::kPinned;
      }
      if (const json* v = members.find("name")) {
        block.name = string(*v, where + ".name");
        given |= Spelling::kBlockName;
      }
      if (const json* v = members.find("window")) {
        if (*v != "own" && *v != "linear") refuse(where + ".window", "\"own\" or \"linear\"", *v);
        places[j].own = *v == "own";
        placed = true;
      }
      if (const json* v = members.find("offset"); v && !v->is_null()) {
        placed = true;
        if (v->is_array()) {
          if (v->empty() || v->size() > 8) refuse(where + ".offset", "1 to 8 offsets", *v);
          for (const json& one : *v) places[j].offsets.push_back(integer(one, where + ".offset"));
        } else {
          places[j].offsets.push_back(integer(*v, where + ".offset"));
        }
      }
      file_.spelling.blocks.push_back(given);
      file_.problem.blocks.push_back(std::move(block));
    }
    if (placed) file_.decisions.places = std::move(places);
  }

  std::uint32_t block(const json& value, const std::string& where) const {
    const auto found = value.is_number_unsigned() ? index_.find(value.get<std::uint64_t>()) : index_.end();
    if (found == index_.end()) refuse(where, "the id of a block", value);
    return found->second;
  }

  void operations() {
    const json& list = array(top_.get("ops", "a list"), "ops");
    std::vector<bool> born(file_.problem.blocks.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const json& one = list[i];
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

  void swaps(const json& list) {
    array(list, "swaps");
    for (std::size_t j = 0; j < list.size(); ++j) {
      const std::string where = element("swaps", j);
      const Members members(list[j], where);
      members.only({"block", "out_after", "in_after", "need", "copy"});
      Swap swap;
      swap.block = block(members.get("block", "the id of a block"), where + ".block");
      swap.out_after = integer(members.get("out_after", "a position"), where + ".out_after");
      const auto position = [&](const char* name) {
        const json* v = members.find(name);
        return v && !v->is_null() ? integer(*v, where + '.' + name) : kNever;
      };
      swap.in_after = position("in_after");
      swap.need = position("need");
      if (const json* v = members.find("copy")) swap.copy = boolean(*v, where + ".copy");
      file_.decisions.swaps.push_back(swap);
    }
  }

  Members top_;
  PlanFile file_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

std::string text(double value) {
  std::array<char, 64> digits{};
  const bool whole = value == std::floor(value) && value < static_cast<double>(kLargestExact);
  const auto end = whole
                       ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::uint64_t>(value))
                       : std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}

std::string quoted(const std::string& value) {
  return json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* text(bool value) { return value ? "true" : "false"; }

void write_operation(const PlanFile& plan, std::size_t i, std::ostream& out) {
  const Operation& op = plan.problem.operations[i];
  const auto& spelled = plan.spelling.operations;
  std::uint8_t given = 3;
  if (i < spelled.size()) {
    given = spelled[i];
  } else if (op.stream != 0) {
    given = 5;
  } else if (op.kind != Kind::kMalloc && op.kind != Kind::kNothing) {
    given = 4;
  }
  out << "[\"" << kKinds[static_cast<std::size_t>(op.kind)] << "\",";
  if (op.block == kNoBlock) {
    out << -1;
  } else {
    out << plan.problem.blocks[op.block].id;
  }
  out << ',' << text(op.time);
  if ((given & 7) > 3) out << ',' << ((given & kNullAge) != 0 ? "null" : std::to_string(op.age));
  if ((given & 7) > 4) out << ',' << op.stream;
  out << ']';
}

void write_block(const PlanFile& plan, std::size_t j, std::ostream& out) {
  const Block& block = plan.problem.blocks[j];
  const bool spelled = j < plan.spelling.blocks.size();
  const unsigned given = spelled ? plan.spelling.blocks[j] : 0U;
  out << "{\"id\":" << block.id << ",\"size\":" << block.bytes;
  if (block.persistent || (given & Spelling::kPersistent) != 0) out << ",\"persistent\":" << text(block.persistent);
  if (block.pinned || (given & Spelling::kPinned) != 0) out << ",\"pinned\":" << text(block.pinned);
  if (j < plan.decisions.places.size()) {
    const Place& place = plan.decisions.places[j];
    if (place.offsets.size() == 1) out << ",\"offset\":" << place.offsets[0];
    if (place.offsets.size() > 1) {
      out << ",\"offset\":[";
      for (std::size_t k = 0; k < place.offsets.size(); ++k) out << (k == 0 ? "" : ",") << place.offsets[k];
      out << ']';
    }
    out << (place.own ? ",\"window\":\"own\"" : ",\"window\":\"linear\"");
  }
  if (!block.name.empty() || (given & Spelling::kBlockName) != 0) out << ",\"name\":" << quoted(block.name);
  out << '}';
}

template <typename Write>
void write_list(const char* name, std::size_t count, std::ostream& out, const Write& write) {
  out << ",\n\"" << name << "\": [";
  for (std::size_t i = 0; i < count; ++i) {
    out << (i == 0 ? "\n" : ",\n");
    write(i);
  }
  out << "\n]";
}

}  // namespace

PlanFile parse_plan(const std::string& content) {
  json document;
  try {
    document = json::parse(content);
  } catch (const json::exception& error) {
    throw Invalid(std::string("not JSON: ") + error.what());
  }
  return Reader(document).read();
}

PlanFile read_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw Invalid(path + ": cannot be read: " + std::strerror(errno));
  try {
    return parse_plan(std::move(content).str());
  } catch (const Invalid& error) {
    throw Invalid(path + ": " + error.what());
  }
}

void write_plan(const PlanFile& plan, std::ostream& out) {
  const Problem& problem = plan.problem;
  const auto given = [&](Spelling::Field field) { return (plan.spelling.fields & field) != 0; };
  out << "{\n\"format\": \"" << kFormat << '"';
  if (given(Spelling::kName) || !problem.name.empty()) out << ",\n\"name\": " << quoted(problem.name);
  if (!plan.comment.empty()) out << ",\n\"comment\": " << quoted(plan.comment);
  out << ",\n\"period\": " << text(problem.period)
      << ",\n\"machine\": {\"out_bytes_per_ns\": " << text(problem.machine.out_bytes_per_ns)
      << ", \"in_bytes_per_ns\": " << text(problem.machine.in_bytes_per_ns);
  if (given(Spelling::kOutLatency) || problem.machine.out_latency_ns != 0) {
    out << ", \"out_latency_ns\": " << text(problem.machine.out_latency_ns);
  }
  if (given(Spelling::kInLatency) || problem.machine.in_latency_ns != 0) {
    out << ", \"in_latency_ns\": " << text(problem.machine.in_latency_ns);
  }
  out << '}';
  if (problem.limit || given(Spelling::kLimit)) {
    out << ",\n\"limit\": " << (problem.limit ? std::to_string(*problem.limit) : "null");
  }
  const Problem usual;
  if (given(Spelling::kChunk) || problem.chunk != usual.chunk) out << ",\n\"chunk\": " << problem.chunk;
  if (given(Spelling::kAlign) || problem.align != usual.align) out << ",\n\"align\": " << problem.align;
  if (given(Spelling::kLayout) || problem.layout != usual.layout) out << ",\n\"layout\": " << text(problem.layout);
  if (given(Spelling::kLazyMalloc) || problem.lazy_malloc) out << ",\n\"lazy_malloc\": " << text(problem.lazy_malloc);
  write_list("blocks", problem.blocks.size(), out, [&](std::size_t j) { write_block(plan, j, out); });
  write_list("ops", problem.operations.size(), out, [&](std::size_t i) { write_operation(plan, i, out); });
  if (given(Spelling::kSwaps) || !plan.decisions.swaps.empty()) {
    write_list("swaps", plan.decisions.swaps.size(), out, [&](std::size_t j) {
      const Swap& swap = plan.decisions.swaps[j];
      out << "{\"block\":" << problem.blocks[swap.block].id << ",\"out_after\":" << swap.out_after;
      if (swap.returns()) out << ",\"in_after\":" << swap.in_after << ",\"need\":" << swap.need;
      if (!swap.copy) out << ",\"copy\":false";
      out << '}';
    });
  }
  out << "\n}\n";
}

}  // namespace memopt::swap
