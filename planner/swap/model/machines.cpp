#include "planner/swap/model/machines.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace memopt::swap {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string shortest(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

}  // namespace

Machine parse_machine(std::string_view text) {
  std::string names;
  for (const NamedMachine& known : kMachines) {
    if (text == known.name) return known.machine;
    names += std::string(known.name) + ", ";
  }
  std::vector<std::optional<double>> values;
  for (std::string_view rest = text;;) {
    const std::size_t colon = rest.find(':');
    values.push_back(number(rest.substr(0, colon)));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  bool fits = values.size() == 2 || values.size() == 4;
  for (std::size_t i = 0; fits && i < values.size(); ++i)
    fits = values[i] && (i < 2 ? *values[i] >= 1e-12 : *values[i] >= 0);
  if (!fits) {
    throw Invalid("expected " + names + "or OUT:IN or OUT:IN:OUT_LATENCY:IN_LATENCY in GB/s and nanoseconds, found \"" +
                  std::string(text) + "\"");
  }
  values.resize(4, 0.0);
  return {*values[0], *values[1], *values[2], *values[3]};
}

std::string name_of(const Machine& machine) {
  const auto copies = [](const Machine& one) {
    return std::tie(one.out_bytes_per_ns, one.in_bytes_per_ns, one.out_latency_ns, one.in_latency_ns);
  };
  for (const NamedMachine& known : kMachines) {
    if (copies(machine) == copies(known.machine)) return std::string(known.name);
  }
  return shortest(machine.out_bytes_per_ns) + ':' + shortest(machine.in_bytes_per_ns) + ':' +
         shortest(machine.out_latency_ns) + ':' + shortest(machine.in_latency_ns);
}

}  // namespace memopt::swap
