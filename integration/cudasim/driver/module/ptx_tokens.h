// PTX text cut into words: directives and names (".entry", "_Z1kv", "%r1"), numbers, strings, and single characters for
// the rest. Comments and white space are left out.
#pragma once
#include <string_view>

namespace cudasim {

class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : text_(text) { next(); }

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

}  // namespace cudasim
