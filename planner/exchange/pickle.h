// Python's pickles, as far as they are plain data: protocols 2 to 5, none, truth values, whole numbers of 64 bits,
// numbers, text, bytes, lists, tuples and dicts. A pickle may also name code to be run when it is read; here that is an
// error, and nothing is ever run. Memory is bounded by kMostValues, whatever the pickle says.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memopt::exchange {

// What is wrong with a pickle, with the byte at which it shows.
class PickleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a pickle holds. Values are named by numbers, so that one may be in several places, as pickles have it.
class Pickle {
 public:
  using Value = std::uint32_t;
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kNumber, kText, kBytes, kList, kTuple, kDict };

  static constexpr std::size_t kMostValues = std::size_t{1} << 25;
  static constexpr std::size_t kMostBytes = std::size_t{2} << 30;

  // `bytes` must stay as they are while the pickle is used: text is not copied. Throws PickleError.
  explicit Pickle(std::string_view bytes);

  // Whether a file that begins so may be a pickle of these protocols.
  static bool begins(std::string_view head) {
    return head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  }

  Value root() const { return root_; }
  Kind kind(Value value) const { return nodes_[value].kind; }

  // Nothing where the value is of another kind.
  std::optional<std::int64_t> integer(Value value) const;
  std::optional<std::string_view> text(Value value) const;
  // Elements of a list or a tuple; of a dict, key and value in turn. Empty for others.
  std::span<const Value> elements(Value value) const;
  // Of a dict: what has that key; the last of several.
  std::optional<Value> find(Value dict, std::string_view key) const;

 private:
  struct Node {
    Kind kind = Kind::kNone;
    std::uint32_t length = 0;  // kText, kBytes: bytes
    std::uint64_t word = 0;    // number; where the text begins; which of lists_
  };
  class Machine;

  std::string_view bytes_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Value>> lists_;
  Value root_ = 0;
};

// Writes a pickle (protocol 4) as it is told. What is begun must be ended, and keys and values alternate in dicts:
// nothing is checked. Text that was written before is written as a reference, up to kMostRemembered.
class PickleWriter {
 public:
  explicit PickleWriter(std::ostream& out);

  void none() { out_.put('N'); }
  void value(bool value) { out_.put(value ? '\x88' : '\x89'); }
  void value(std::int64_t value);
  void value(std::uint64_t value);  // of 2^63 or more, too
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void begin_list();
  void end_list() { out_.put('e'); }
  void begin_dict();
  void end_dict() { out_.put('u'); }

  template <typename Value>
  void member(std::string_view key, const Value& its_value) {
    value(key);
    value(its_value);
  }

  // The list or dict that was ended last, to be written again by refer(). A number for it.
  std::uint32_t remember();
  void refer(std::uint32_t remembered);

  // The end of the pickle.
  void finish() { out_.put('.'); }

 private:
  static constexpr std::size_t kMostRemembered = 1'000'000;

  void little(std::uint64_t number, int bytes);

  std::ostream& out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t next_ = 0;
};

}  // namespace memopt::exchange
