#include "ptx/front/tokens.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace cudasim::ptx {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

bool is_exponent(char c) { return c == 'e' || c == 'E'; }

// Digits with a point.
bool is_decimal(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

std::optional<std::uint64_t> integer_of(std::string_view token) {
  int base = 10;
  if (token.ends_with('U')) token.remove_suffix(1);
  if (token.starts_with("0x") || token.starts_with("0X")) {
    base = 16;
    token.remove_prefix(2);
  } else if (token.starts_with("0b") || token.starts_with("0B")) {
    base = 2;
    token.remove_prefix(2);
  } else if (token.size() > 1 && token[0] == '0') {
    base = 8;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

std::optional<FloatLiteral> float_of(std::string_view token) {
  if (token.size() > 2 && token[0] == '0' && std::string_view("fFdD").find(token[1]) != std::string_view::npos) {
    std::uint64_t bits = 0;
    const auto [end, error] = std::from_chars(token.data() + 2, token.data() + token.size(), bits, 16);
    if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
    return FloatLiteral{token[1] == 'f' || token[1] == 'F', bits};
  }
  if (token.empty() || token[0] < '.' || token[0] > '9') return std::nullopt;  // "inf" is a name
  double number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return FloatLiteral{false, std::bit_cast<std::uint64_t>(number)};
}

void Tokens::skip_blanks() {
  while (at_ < text_.size()) {
    if (is_blank(text_[at_])) {
      if (text_[at_] == '\n') ++line_;
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_.substr(at_, 2) == "/*") {
      const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
      line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
      at_ = std::min(end + 2, text_.size());
    } else {
      return;
    }
  }
}

void Tokens::next() {
  skip_blanks();
  std::size_t end = at_;
  if (at_ < text_.size() && text_[at_] == '"') {
    end = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
  } else {
    // Directives may stand side by side (".param.u64"); an instruction's suffixes are part of its word
    // ("st.shared.u32").
    const bool directive = at_ < text_.size() && text_[at_] == '.';
    if (directive) ++end;
    while (end < text_.size()) {
      // ".shared::cta", and "1.5e-3".
      const bool joined = text_.substr(end, 2) == "::" && end != at_;
      const bool exponent = (text_[end] == '-' || text_[end] == '+') && end - at_ >= 2 && is_exponent(text_[end - 1]) &&
                            is_decimal(text_.substr(at_, end - at_ - 1));
      if (!joined && !exponent && (!is_word(text_[end]) || (directive && text_[end] == '.'))) break;
      end += joined ? 2 : 1;
    }
    if (end == at_ && at_ < text_.size()) ++end;
  }
  token_ = text_.substr(at_, end - at_);
  at_ = end;
}

}  // namespace cudasim::ptx
