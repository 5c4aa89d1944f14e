// Bytes and times of plans, as people read them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "planner/swap/model/machines.h"
#include "planner/swap/model/model.h"

namespace memopt::tools {

inline std::string mib(double bytes) { return fmt::format("{:.2f} MiB", bytes / (1 << 20)); }
inline std::string mib(std::uint64_t bytes) { return mib(static_cast<double>(bytes)); }
inline std::string milliseconds(double ns) { return fmt::format("{:.3f} ms", ns / 1e6); }

inline std::string machine_text(const swap::Machine& machine) {
  return fmt::format("{}: {:.4g} GB/s and {:.4g} us out, {:.4g} GB/s and {:.4g} us in", swap::name_of(machine),
                     machine.out_bytes_per_ns, machine.out_latency_ns / 1e3, machine.in_bytes_per_ns,
                     machine.in_latency_ns / 1e3) +
         (machine.remap_ns ? fmt::format(", {:.4g} us to map a chunk anew", *machine.remap_ns / 1e3) : std::string());
}

}  // namespace memopt::tools
