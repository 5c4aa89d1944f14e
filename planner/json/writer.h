// Writes JSON to a stream as it is told, value by value. Names and values must alternate in objects, and what is begun
// must be ended: nothing is checked, and nothing is kept but the spacing of what is open.
//
// Numbers are the shortest text that reads as the same double; whole ones below 2^53 have no point and no exponent.
// What is not finite is null. Bytes of strings that are not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

namespace memopt::json {

// What stands around the elements of an object or a list.
struct Spacing {
  std::string_view before = "";   // the first element
  std::string_view between = "";  // a comma and the next element
  std::string_view colon = "";    // a colon and its value
  std::string_view after = "";    // the last element and what closes the list; of an empty one, too
};

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}

  void begin_object(const Spacing& spacing = {}) { begin('{', spacing); }
  void end_object() { end('}'); }
  void begin_list(const Spacing& spacing = {}) { begin('[', spacing); }
  void end_list() { end(']'); }

  void name(std::string_view name);  // of the value that follows
  void value(std::uint64_t value);
  void value(std::int64_t value);
  void value(double value);
  void value(bool value);
  void value(std::string_view value);
  void value(const char* text) { value(std::string_view(text)); }  // else it would be a bool
  void value(char letter) { value(std::string_view(&letter, 1)); }
  void null();
  // With so many digits behind the point, whatever they are.
  void fixed(double value, int digits);

  template <typename Value>
  void member(std::string_view its_name, const Value& its_value) {
    name(its_name);
    value(its_value);
  }

  // From here on, in the object or list that is open.
  void between(std::string_view between) { open_.back().spacing.between = between; }

 private:
  struct Open {
    Spacing spacing;
    bool empty = true;
  };

  void begin(char bracket, const Spacing& spacing);
  void end(char bracket);
  void separate();
  void text(std::string_view raw);

  std::ostream& out_;
  std::vector<Open> open_;
  bool named_ = false;  // the next value has its name, and what stands before that
};

}  // namespace memopt::json
