// PTX text to a Program. The text is hostile: whatever stands there ends in a Program or in ParseError.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ptx/front/program.h"

namespace cudasim::ptx {

class ParseError : public std::runtime_error {
 public:
  // `line` 0: not PTX at all.
  ParseError(int line, const std::string& text)
      : std::runtime_error(line == 0 ? text : "PTX line " + std::to_string(line) + ": " + text),
        line_(line),
        text_(text) {}
  bool is_ptx() const { return line_ != 0; }
  const std::string& text() const { return text_; }  // without the line

 private:
  int line_;
  std::string text_;
};

// Throws ParseError where declarations or braces are wrong. What is wrong inside a body, or not known, is the problem
// of its function alone.
std::shared_ptr<const Program> parse(std::string_view text);

}  // namespace cudasim::ptx
