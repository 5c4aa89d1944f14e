// PTX text cut into words: directives and names (".entry", "_Z1kv", "%r1"), numbers, strings, and single characters for
// the rest. Comments and white space are left out.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudasim::ptx {

// Decimal, 0x…, 0b…, octal 0…, with an optional U.
std::optional<std::uint64_t> integer_of(std::string_view token);

// A literal with a fraction: 0f… and 0d… by their bits, or decimal.
struct FloatLiteral {
  bool single;         // 0f…
  std::uint64_t bits;  // of a float where `single`, else of a double
};
std::optional<FloatLiteral> float_of(std::string_view token);

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { next(); }

  // Empty at the end.
  std::string_view current() const { return token_; }
  bool at_end() const { return token_.empty(); }
  bool is(std::string_view word) const { return token_ == word; }
  int line() const { return line_; }

  void next();
  // The current token, and on to the next one.
  std::string_view take() {
    const std::string_view token = token_;
    next();
    return token;
  }
  bool take_if(std::string_view word) {
    if (!is(word)) return false;
    next();
    return true;
  }

 private:
  void skip_blanks();

  std::string_view text_;
  std::string_view token_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace cudasim::ptx
