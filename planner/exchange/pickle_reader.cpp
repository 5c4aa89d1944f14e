#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "planner/exchange/pickle.h"

namespace memopt::exchange {
namespace {

// The opcodes of Python's Lib/pickle.py that stand for plain data.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kNoneOp = 'N',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kAppend = 'a',
  kAppends = 'e',
  kDictOp = 'd',
  kEmptyDict = '}',
  kListOp = 'l',
  kEmptyList = ']',
  kTupleOp = 't',
  kEmptyTuple = ')',
  kSetItem = 's',
  kSetItems = 'u',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Those that name code, or objects that only code can make.
bool names_code(unsigned char opcode) {
  constexpr std::string_view kCode = "cRbioPQ\x81\x82\x83\x84\x92\x93";
  return kCode.find(static_cast<char>(opcode)) != std::string_view::npos;
}

}  // namespace

class Pickle::Machine {
 public:
  explicit Machine(Pickle& pickle) : pickle_(pickle), bytes_(pickle.bytes_) {}

  void run() {
    if (!begins(bytes_)) fail("expected a pickle of protocol 2 to 5");
    for (;;) {
      at_opcode_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == kStop) break;
      step(opcode);
    }
    if (stack_.empty() || !marks_.empty()) fail("expected one value at its end");
    pickle_.root_ = stack_.back();
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw PickleError("byte " + std::to_string(at_opcode_) + ": " + why);
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle is cut off");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::uint64_t little(int count) {
    const std::string_view taken = take(static_cast<std::uint64_t>(count));
    std::uint64_t number = 0;
    for (int i = count; i-- > 0;) number = number << 8 | static_cast<unsigned char>(taken[static_cast<std::size_t>(i)]);
    return number;
  }

  Value add(Kind kind, std::uint64_t word = 0, std::uint32_t length = 0) {
    if (pickle_.nodes_.size() == kMostValues) fail("expected at most " + std::to_string(kMostValues) + " values");
    pickle_.nodes_.push_back({kind, length, word});
    return static_cast<Value>(pickle_.nodes_.size() - 1);
  }
  void push(Kind kind, std::uint64_t word = 0, std::uint32_t length = 0) { stack_.push_back(add(kind, word, length)); }
  void push_bytes(Kind kind, std::uint64_t length) {
    if (length > kMostBytes) fail("the pickle is cut off");
    const std::uint64_t from = at_;
    take(length);
    push(kind, from, static_cast<std::uint32_t>(length));
  }
  void push_list(Kind kind, std::vector<Value> elements = {}) {
    push(kind, pickle_.lists_.size());
    pickle_.lists_.push_back(std::move(elements));
  }

  // Not below the innermost mark.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value pop() {
    if (stack_.size() <= floor()) fail("a value is missing");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fail("a mark is missing");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> values(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return values;
  }
  std::vector<Value> pop_some(int count) {
    std::vector<Value> values(static_cast<std::size_t>(count));
    for (int i = count; i-- > 0;) values[static_cast<std::size_t>(i)] = pop();
    return values;
  }
  // What values are added to: the value on top.
  std::vector<Value>& target(Kind kind) {
    if (stack_.size() <= floor()) fail("a value is missing");
    const Node& node = pickle_.nodes_[stack_.back()];
    if (node.kind != kind) fail(kind == Kind::kDict ? "expected a dict to add to" : "expected a list to add to");
    return pickle_.lists_[node.word];
  }
  void extend(Kind kind, const std::vector<Value>& values) {
    if (kind == Kind::kDict && values.size() % 2 != 0) fail("a value is missing");
    std::vector<Value>& elements = target(kind);
    // As exactly as it can be for what is added to once, as most are.
    if (elements.empty()) elements.reserve(values.size());
    elements.insert(elements.end(), values.begin(), values.end());
  }

  void remember(std::uint64_t number) {
    if (stack_.size() <= floor()) fail("a value is missing");
    if (number < memo_.size()) {
      memo_[number] = stack_.back();
    } else if (number == memo_.size()) {
      memo_.push_back(stack_.back());
    } else {
      fail("expected values to be remembered one after the other");
    }
  }
  void recall(std::uint64_t number) {
    if (number >= memo_.size()) fail("a value is named that was not remembered");
    stack_.push_back(memo_[number]);
  }

  void step(unsigned char opcode) {
    // So many at most that no row of references fills the memory.
    if (stack_.size() >= kMostValues || memo_.size() >= kMostValues || marks_.size() >= kMostValues) {
      fail("expected at most " + std::to_string(kMostValues) + " values");
    }
    switch (opcode) {
      case kProto:
        if (little(1) > 5) fail("expected protocol 2 to 5");
        return;
      case kFrame:
        little(8);
        return;
      case kMark:
        marks_.push_back(stack_.size());
        return;
      case kPop:
        // As Python has it: a mark, if nothing is above it.
        if (!marks_.empty() && stack_.size() == marks_.back()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return;
      case kPopMark:
        pop_to_mark();
        return;
      case kDup: {
        const Value value = pop();
        stack_.push_back(value);
        stack_.push_back(value);
        return;
      }
      case kNoneOp:
        return push(Kind::kNone);
      case kNewTrue:
        return push(Kind::kBool, 1);
      case kNewFalse:
        return push(Kind::kBool, 0);
      case kBinInt:
        return push(Kind::kInteger, static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                        static_cast<std::int32_t>(static_cast<std::uint32_t>(little(4))))));
      case kBinInt1:
        return push(Kind::kInteger, little(1));
      case kBinInt2:
        return push(Kind::kInteger, little(2));
      case kLong1:
        return push_long(static_cast<int>(little(1)));
      case kBinFloat: {
        std::uint64_t bits = 0;
        for (const char letter : take(8)) bits = bits << 8 | static_cast<unsigned char>(letter);
        return push(Kind::kNumber, bits);
      }
      case kShortBinString:
      case kShortBinUnicode:
        return push_bytes(Kind::kText, little(1));
      case kBinString:
      case kBinUnicode:
        return push_bytes(Kind::kText, little(4));
      case kBinUnicode8:
        return push_bytes(Kind::kText, little(8));
      case kShortBinBytes:
        return push_bytes(Kind::kBytes, little(1));
      case kBinBytes:
        return push_bytes(Kind::kBytes, little(4));
      case kBinBytes8:
        return push_bytes(Kind::kBytes, little(8));
      case kEmptyList:
        return push_list(Kind::kList);
      case kEmptyDict:
        return push_list(Kind::kDict);
      case kEmptyTuple:
        return push_list(Kind::kTuple);
      case kListOp:
        return push_list(Kind::kList, pop_to_mark());
      case kTupleOp:
        return push_list(Kind::kTuple, pop_to_mark());
      case kDictOp: {
        const std::vector<Value> values = pop_to_mark();
        push_list(Kind::kDict);
        return extend(Kind::kDict, values);
      }
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return push_list(Kind::kTuple, pop_some(opcode - kTuple1 + 1));
      case kAppend:
        return extend(Kind::kList, pop_some(1));
      case kAppends:
        return extend(Kind::kList, pop_to_mark());
      case kSetItem:
        return extend(Kind::kDict, pop_some(2));
      case kSetItems:
        return extend(Kind::kDict, pop_to_mark());
      case kMemoize:
        return remember(memo_.size());
      case kBinPut:
        return remember(little(1));
      case kLongBinPut:
        return remember(little(4));
      case kBinGet:
        return recall(little(1));
      case kLongBinGet:
        return recall(little(4));
      default:
        if (names_code(opcode)) fail("it names code to be run, and only plain data is read");
        fail("it has a value of a kind that snapshots do not have (opcode " + std::to_string(opcode) + ")");
    }
  }

  // Little-endian, two's complement.
  void push_long(int count) {
    const std::string_view taken = take(static_cast<std::uint64_t>(count));
    const bool negative = !taken.empty() && (static_cast<unsigned char>(taken.back()) & 0x80) != 0;
    std::uint64_t number = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = taken.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(taken[i]);
      if (i >= 8) {
        // 2^63 and more takes a ninth.
        if (byte != (negative ? 0xff : 0)) fail("expected whole numbers of at most 64 bits");
        continue;
      }
      number = (number & ~(std::uint64_t{0xff} << (8 * i))) | std::uint64_t{byte} << (8 * i);
    }
    push(Kind::kInteger, number);
  }

  Pickle& pickle_;
  std::string_view bytes_;
  std::uint64_t at_ = 0;
  std::uint64_t at_opcode_ = 0;
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<Value> memo_;
};

Pickle::Pickle(std::string_view bytes) : bytes_(bytes) { Machine(*this).run(); }

std::optional<std::int64_t> Pickle::integer(Value value) const {
  const Node& node = nodes_[value];
  if (node.kind != Kind::kInteger) return std::nullopt;
  return static_cast<std::int64_t>(node.word);
}

std::optional<std::string_view> Pickle::text(Value value) const {
  const Node& node = nodes_[value];
  if (node.kind != Kind::kText) return std::nullopt;
  return bytes_.substr(node.word, node.length);
}

std::span<const Pickle::Value> Pickle::elements(Value value) const {
  const Node& node = nodes_[value];
  if (node.kind != Kind::kList && node.kind != Kind::kTuple && node.kind != Kind::kDict) return {};
  return lists_[node.word];
}

std::optional<Pickle::Value> Pickle::find(Value dict, std::string_view key) const {
  if (nodes_[dict].kind != Kind::kDict) return std::nullopt;
  const std::span<const Value> pairs = elements(dict);
  std::optional<Value> found;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (text(pairs[i]) == key) found = pairs[i + 1];
  }
  return found;
}

}  // namespace memopt::exchange
