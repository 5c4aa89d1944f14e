#include "planner/swap/files/dtr_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/input/shown.h"
#include "planner/input/text.h"
#include "planner/json/tree.h"

namespace memopt::swap {
namespace {

using Json = nlohmann::json;

constexpr input::TextBounds kBounds{.expected = "a log for DTR's simulator",
                                    .line_bytes = std::size_t{1} << 20,
                                    .lines = std::uint64_t{1} << 22,
                                    .bytes = std::uint64_t{1} << 30};
// A block takes two lines, so that sizes add up to 2^59 at most, which is what find_liveness counts to; times to 2^62.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 38, kMostTime = std::uint64_t{1} << 40;

// One line.
class Instruction {
 public:
  Instruction(const input::Lines& lines, std::string_view line) : lines_(lines) {
    object_ = Json::parse(line, nullptr, false);
    if (!object_.is_object())
      lines.fail("an instruction, such as {\"INSTRUCTION\":\"RELEASE\",\"NAME\":\"x1\"}", input::shown(line));
  }

  std::string text(const char* member) const {
    const Json& value = get(member);
    if (!value.is_string()) fail(member, "text", value);
    return value.get<std::string>();
  }
  std::uint64_t number(const char* member, std::uint64_t most) const {
    const Json& value = get(member);
    const std::optional<std::uint64_t> result = digits(value);
    if (!result || *result > most) fail(member, "a number from 0 to " + std::to_string(most), value);
    return *result;
  }
  std::vector<std::string> names(const char* member) const {
    const Json& value = get(member);
    std::vector<std::string> result;
    for (const Json& one : value) {
      if (!one.is_string()) break;
      result.push_back(one.get<std::string>());
    }
    if (!value.is_array() || result.size() != value.size()) fail(member, "a list of names", value);
    return result;
  }
  // Of the list of so many, each by its place.
  std::vector<std::size_t> places(const char* member, std::size_t count) const {
    const Json& value = get(member);
    std::vector<std::size_t> result;
    for (const Json& one : value) {
      const std::optional<std::uint64_t> place = digits(one);
      if (!place || *place >= count) break;
      result.push_back(*place);
    }
    if (!value.is_array() || result.size() != value.size()) {
      fail(member, "a list of numbers below " + std::to_string(count), value);
    }
    return result;
  }
  // -1: of none.
  std::optional<std::size_t> alias(std::size_t count) const {
    const Json& value = get("ALIAS");
    if (value == -1 || value == "-1") return std::nullopt;
    const std::optional<std::uint64_t> place = digits(value);
    if (!place || *place >= count) fail("ALIAS", "-1 or a number below " + std::to_string(count), value);
    return place;
  }

  [[noreturn]] void fail(const char* member, const std::string& expected, const Json& found) const {
    // Printing goes as deep on the stack as what is printed.
    const bool deep = std::any_of(found.begin(), found.end(), [](const Json& one) { return one.is_structured(); });
    lines_.fail(std::string(member) + " to be " + expected,
                deep ? "lists or objects in each other"
                     : input::shown(found.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    lines_.fail(expected, input::shown(found));
  }

 private:
  // As a number or as text.
  static std::optional<std::uint64_t> digits(const Json& value) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return result;
  }

  const Json& get(const char* member) const {
    const auto found = object_.find(member);
    if (found == object_.end()) lines_.fail(member, "an instruction without it");
    return *found;
  }

  const input::Lines& lines_;
  Json object_;
};

class Reader {
 public:
  explicit Reader(input::File& file) : lines_(file, kBounds) {}

  PlanFile read() {
    for (bool started = false; advance();) {
      const Instruction one(lines_, line_);
      const std::string name = one.text("INSTRUCTION");
      if (name == "ANNOTATE") {
        started = started || one.text("ANNOTATION") == "START";
      } else if (started) {
        follow(name, one);
      }
    }
    if (calls_ == 0) lines_.fail("a CALL behind the annotation START", "none");
    return finish();
  }

 private:
  // Memory that tensors have in common.
  struct Storage {
    std::uint32_t block = kNoBlock;  // none: of no bytes
    std::uint64_t names = 0;
    std::uint64_t read_by = 0, written_by = 0;  // the last call, from 1
    bool before_calls = false;
  };
  using StorageId = std::size_t;

  // To the next line that is not blank.
  bool advance() {
    while (lines_.next(line_)) {
      if (line_.find_first_not_of(" \t\r") != std::string_view::npos) return true;
    }
    return false;
  }

  // Whatever is wrong with an instruction is said before the line behind it is read: only then is the line its own.
  void follow(const std::string& name, const Instruction& one) {
    if (name == "CONSTANT") {
      constant(one);
    } else if (name == "CALL") {
      call(one);
    } else if (name == "MUTATE") {
      const std::vector<std::string> arguments = one.names("ARGS");
      std::vector<StorageId> changed;
      for (const std::size_t place : one.places("MUTATE", arguments.size()))
        changed.push_back(find(arguments[place], one));
      launch(find(arguments, one), changed, one.number("TIME", kMostTime));
    } else if (name == "COPY") {
      const StorageId source = find(one.text("SRC"), one);
      const std::string target = one.text("DST");
      declare(target, one);
      bind(target, source);
    } else if (name == "COPY_FROM") {
      const StorageId source = find(one.text("SRC"), one);
      ++storages_[source].names;  // first, as both may be the same
      const std::string target = one.text("DST");
      release(find(target, one));
      tensors_[target] = source;
    } else if (name == "RELEASE") {
      // Of what was made before START there is nothing here.
      const auto found = tensors_.find(one.text("NAME"));
      if (found == tensors_.end()) return;
      const StorageId storage = found->second;
      tensors_.erase(found);
      release(storage);
    } else {
      one.fail("CONSTANT, CALL, MUTATE, COPY, COPY_FROM, RELEASE or ANNOTATE", name);
    }
  }

  StorageId find(const std::string& tensor, const Instruction& one) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) one.fail("a tensor that there is", tensor);
    return found->second;
  }

  std::vector<StorageId> find(const std::vector<std::string>& tensors, const Instruction& one) const {
    std::vector<StorageId> result;
    for (const std::string& tensor : tensors) result.push_back(find(tensor, one));
    return result;
  }

  // Of a tensor that is not bound yet.
  void declare(const std::string& tensor, const Instruction& one) {
    if (!tensors_.emplace(tensor, 0).second) one.fail("a new tensor", tensor);
  }
  void bind(const std::string& tensor, StorageId storage) {
    tensors_[tensor] = storage;
    ++storages_[storage].names;
  }

  // The line behind.
  Instruction next(const char* expected) {
    if (!advance()) lines_.fail(expected, "the end");
    Instruction one(lines_, line_);
    if (one.text("INSTRUCTION") != expected) one.fail(expected, one.text("INSTRUCTION"));
    return one;
  }

  StorageId make(std::uint64_t bytes, const std::string& name, bool before_calls) {
    Storage storage;
    storage.before_calls = before_calls;
    if (bytes != 0) {
      storage.block = static_cast<std::uint32_t>(plan_.problem.blocks.size());
      plan_.problem.blocks.push_back({.id = storage.block, .bytes = bytes, .name = name});
      add(Kind::kMalloc, storage.block);
    }
    storages_.push_back(storage);
    return storages_.size() - 1;
  }

  void release(StorageId id) {
    Storage& storage = storages_[id];
    if (--storage.names == 0 && storage.block != kNoBlock) add(Kind::kFree, storage.block);
  }

  void constant(const Instruction& one) {
    const std::string tensor = one.text("NAME");
    declare(tensor, one);
    bind(tensor, make(next("MEMORY").number("MEMORY", kMostBytes), "constant", calls_ == 0));
  }

  void call(const Instruction& one) {
    const std::string name = one.text("NAME");
    const std::vector<StorageId> arguments = find(one.names("ARGS"), one);
    const std::vector<std::string> results = one.names("RESULT");
    const std::uint64_t ns = one.number("TIME", kMostTime);
    for (const std::string& result : results) declare(result, one);
    std::vector<StorageId> made;
    for (const std::string& result : results) {
      const std::uint64_t bytes = next("MEMORY").number("MEMORY", kMostBytes);
      const std::optional<std::size_t> of = next("ALIAS").alias(arguments.size());
      if (!of) made.push_back(make(bytes, name, false));
      bind(result, of ? arguments[*of] : made.back());
    }
    launch(arguments, made, ns);
  }

  // One access for each block; the last has all its time.
  void launch(const std::vector<StorageId>& read, const std::vector<StorageId>& written, std::uint64_t ns) {
    ++calls_;
    bool continues = false;
    const auto access = [&](Kind kind, std::uint32_t block) {
      add(kind, block);
      plan_.problem.operations.back().continues = std::exchange(continues, true);
    };
    for (const StorageId id : read) {
      Storage& storage = storages_[id];
      if (storage.block != kNoBlock && std::exchange(storage.read_by, calls_) != calls_)
        access(Kind::kRead, storage.block);
    }
    for (const StorageId id : written) {
      Storage& storage = storages_[id];
      if (storage.block != kNoBlock && std::exchange(storage.written_by, calls_) != calls_)
        access(Kind::kWrite, storage.block);
    }
    if (!continues) access(Kind::kNothing, kNoBlock);
    now_ += static_cast<double>(ns);
  }

  void add(Kind kind, std::uint32_t block) {
    plan_.problem.operations.push_back({.kind = kind, .block = block, .time = now_});
  }

  PlanFile finish() {
    Problem& problem = plan_.problem;
    std::vector<bool> persistent(problem.blocks.size());
    for (const Storage& storage : storages_) {
      if (storage.names == 0 || storage.block == kNoBlock) continue;
      if (storage.before_calls) {
        persistent[storage.block] = problem.blocks[storage.block].persistent = true;
      } else {
        add(Kind::kFree, storage.block);
      }
    }
    std::erase_if(problem.operations, [&](const Operation& operation) {
      return operation.kind == Kind::kMalloc && persistent[operation.block];
    });
    problem.period = now_;
    return std::move(plan_);
  }

  input::Lines lines_;
  std::string_view line_;
  PlanFile plan_;
  std::vector<Storage> storages_;
  std::unordered_map<std::string, StorageId> tensors_;
  std::uint64_t calls_ = 0;
  double now_ = 0;
};

}  // namespace

bool is_dtr_log(const input::File& file) {
  const std::string_view head = file.head();
  const std::string_view line = head.substr(0, head.find('\n'));
  constexpr std::string_view kMember = "\"INSTRUCTION\"";
  const std::size_t member = line.find(kMember);
  if (!file.begins_with('{') || member == std::string_view::npos) return false;
  // A member, not the name of something in a plan.
  const std::size_t behind = line.find_first_not_of(" \t", member + kMember.size());
  return behind != std::string_view::npos && line[behind] == ':';
}

PlanFile read_dtr_log(input::File& file) {
  try {
    return Reader(file).read();
  } catch (const input::InputError& error) {
    throw Invalid(error.what());
  }
}

}  // namespace memopt::swap
