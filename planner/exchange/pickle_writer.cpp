#include "planner/exchange/pickle.h"

namespace memopt::exchange {

PickleWriter::PickleWriter(std::ostream& out) : out_(out) { out_ << "\x80\x04"; }

void PickleWriter::little(std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out_.put(static_cast<char>(number >> (8 * i)));
}

void PickleWriter::value(std::int64_t value) {
  if (value >= 0 && value < 256) {
    out_.put('K');
    little(static_cast<std::uint64_t>(value), 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_.put('J');
    little(static_cast<std::uint64_t>(value), 4);
  } else {
    out_ << "\x8a\x08";
    little(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::value(std::uint64_t value) {
  if (value >> 63 == 0) return this->value(static_cast<std::int64_t>(value));
  out_ << "\x8a\x09";
  little(value, 8);
  out_.put('\0');
}

void PickleWriter::value(std::string_view text) {
  const auto known = texts_.find(std::string(text));
  if (known != texts_.end()) return refer(known->second);
  out_.put('X');
  little(text.size(), 4);
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (texts_.size() < kMostRemembered) texts_.emplace(text, remember());
}

void PickleWriter::begin_list() { out_ << "]("; }
void PickleWriter::begin_dict() { out_ << "}("; }

std::uint32_t PickleWriter::remember() {
  out_.put('\x94');
  return next_++;
}

void PickleWriter::refer(std::uint32_t remembered) {
  out_.put('j');
  little(remembered, 4);
}

}  // namespace memopt::exchange
