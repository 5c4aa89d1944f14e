#include "module/ptx_tokens.h"

#include <algorithm>

namespace cudasim {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

}  // namespace

void PtxTokens::skip_blanks() {
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

void PtxTokens::next() {
  skip_blanks();
  std::size_t end = at_;
  if (at_ < text_.size() && text_[at_] == '"') {
    end = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
  } else {
    // Directives may stand side by side (".param.u64"); an instruction's suffixes are part of its word
    // ("st.shared.u32").
    const bool directive = at_ < text_.size() && text_[at_] == '.';
    if (directive) ++end;
    while (end < text_.size() && is_word(text_[end]) && !(directive && text_[end] == '.')) ++end;
    if (end == at_ && at_ < text_.size()) ++end;
  }
  token_ = text_.substr(at_, end - at_);
  at_ = end;
}

}  // namespace cudasim
