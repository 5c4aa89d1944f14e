// Functions that the device brings along: vprintf, __assertfail, malloc, free.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "ptx/execution/block_run.h"
#include "ptx/execution/lowering.h"

namespace cudasim::ptx {
namespace {

// The device's heap, as large as cudaLimitMallocHeapSize is by default.
constexpr std::uint64_t kHeapBytes = 8 << 20;

struct Heap {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::uint64_t> blocks;
  std::uint64_t held = 0;
};
// Never destroyed: kernels may run while the process ends.
Heap& heap() {
  static Heap* const one = new Heap;
  return *one;
}

// The address of the lane's n-th result or argument, in its frame.
std::uint64_t slot_address(const Warp& warp, const Step& step, std::uint32_t n, int lane) {
  return const_cast<Warp&>(warp).source(warp.code().refs[step.list + n]).lane[lane];
}

template <class T>
T argument(const Warp& warp, const Step& step, std::uint32_t n, int lane) {
  T value{};
  const auto at = static_cast<std::uint32_t>(step.value) + n;
  if (at < step.count)
    std::memcpy(&value, reinterpret_cast<const void*>(slot_address(warp, step, at, lane)), sizeof value);
  return value;
}

template <class T>
void give_result(const Warp& warp, const Step& step, int lane, T value) {
  if (step.value != 0) std::memcpy(reinterpret_cast<void*>(slot_address(warp, step, 0, lane)), &value, sizeof value);
}

// Copied before anything is done with it: reading it may fault.
std::string text_at(std::uint64_t address, std::size_t most = 64 << 10) {
  std::string text;
  if (address == 0) return "(null)";
  for (const char* at = reinterpret_cast<const char*>(address); *at != 0 && text.size() < most; ++at) text += *at;
  return text;
}

// One conversion ("%-8.3lld") by the C library. Arguments lie packed at their own alignment.
void print_conversion(const std::string& spec, std::uint64_t arguments, std::uint64_t& at, std::string& out) {
  const char kind = spec.back();
  const auto take = [&](std::uint64_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    std::uint64_t value = 0;
    if (arguments != 0) std::memcpy(&value, reinterpret_cast<const void*>(arguments + at), bytes);
    at += bytes;
    return value;
  };
  char buffer[512];
  buffer[0] = 0;
  const bool is_long = spec.find('l') != std::string::npos || spec.find('z') != std::string::npos ||
                       spec.find('j') != std::string::npos || spec.find('t') != std::string::npos;
  std::string plain;  // without lengths
  for (const char c : spec) {
    if (std::strchr("hlLjzt", c) == nullptr || c == 0) plain += c;
  }
  plain.pop_back();
  switch (kind) {
    case 'd':
    case 'i': {
      const std::uint64_t raw = take(is_long ? 8 : 4);
      const long long value = is_long ? static_cast<long long>(raw) : static_cast<std::int32_t>(raw);
      std::snprintf(buffer, sizeof buffer, (plain + "ll" + kind).c_str(), value);
      break;
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      std::snprintf(buffer, sizeof buffer, (plain + "ll" + kind).c_str(),
                    static_cast<unsigned long long>(take(is_long ? 8 : 4)));
      break;
    case 'c':
      std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(), static_cast<int>(take(4)));
      break;
    case 'p':
      std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(), reinterpret_cast<void*>(take(8)));
      break;
    case 's':
      std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(), text_at(take(8)).c_str());
      break;
    case 'n':
      break;
    default:
      std::snprintf(buffer, sizeof buffer, (plain + kind).c_str(), value_of<double>(take(8)));
  }
  out += buffer;
}

std::string formatted(const std::string& format, std::uint64_t arguments) {
  std::string out;
  std::uint64_t used = 0;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    const std::size_t end = format.find_first_not_of("-+ #0123456789.hlLjzt", at + 1);
    if (end == std::string::npos) break;
    const std::string spec = format.substr(at, end - at + 1);
    if (spec.back() == '%') {
      out += '%';
    } else if (std::strchr("diuxXocpsneEfFgGaA", spec.back()) == nullptr || spec.size() > 16) {
      out += spec;
    } else {
      print_conversion(spec, arguments, used, out);
    }
    at = end;
  }
  return out;
}

void run_vprintf(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) {
    const auto format = argument<std::uint64_t>(warp, step, 0, l),
               arguments = argument<std::uint64_t>(warp, step, 1, l);
    std::int32_t count = 0;
    if (!warp.block.sampling) {
      const std::string text = formatted(text_at(format), arguments);
      std::fwrite(text.data(), 1, text.size(), stdout);
      count = static_cast<std::int32_t>(text.size());
    }
    give_result(warp, step, l, count);
  });
}

void run_assertfail(Warp& warp, const Step& step, Mask mask) {
  if (warp.block.sampling) return;
  const int l = std::countr_zero(mask);
  const auto at = [&](Special s) {
    return std::to_string(warp.source(ref_to(Base::kSpecials, static_cast<std::uint32_t>(s))).lane[l]);
  };
  const auto& index = warp.block.index;
  throw Stopped{Stop::kAssert, 0, step.source,
                text_at(argument<std::uint64_t>(warp, step, 1, l)) + ":" +
                    std::to_string(argument<std::uint32_t>(warp, step, 2, l)) + ": " +
                    text_at(argument<std::uint64_t>(warp, step, 3, l)) + ": block: [" + std::to_string(index[0]) + "," +
                    std::to_string(index[1]) + "," + std::to_string(index[2]) + "], thread: [" + at(Special::kTidX) +
                    "," + at(Special::kTidY) + "," + at(Special::kTidZ) + "] Assertion `" +
                    text_at(argument<std::uint64_t>(warp, step, 0, l)) + "` failed."};
}

void run_malloc(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) {
    const auto bytes = argument<std::uint64_t>(warp, step, 0, l);
    std::uint64_t address = 0;
    Heap& h = heap();
    const std::scoped_lock lock(h.mutex);
    if (!warp.block.sampling && bytes <= kHeapBytes && h.held + bytes <= kHeapBytes) {
      address = reinterpret_cast<std::uint64_t>(std::aligned_alloc(16, (bytes + 16) / 16 * 16));
      if (address != 0) {
        h.blocks.emplace(address, bytes);
        h.held += bytes;
      }
    }
    give_result(warp, step, l, address);
  });
}

void run_free(Warp& warp, const Step& step, Mask mask) {
  for_lanes(mask, [&](int l) {
    const auto address = argument<std::uint64_t>(warp, step, 0, l);
    if (warp.block.sampling || address == 0) return;
    Heap& h = heap();
    const std::scoped_lock lock(h.mutex);
    const auto found = h.blocks.find(address);
    if (found == h.blocks.end())
      throw Stopped{Stop::kTrap, address, step.source, "free of an address that malloc did not give"};
    h.held -= found->second;
    h.blocks.erase(found);
    std::free(reinterpret_cast<void*>(address));
  });
}

}  // namespace

Runner builtin_runner(const std::string& name) {
  if (name == "vprintf") return run_vprintf;
  if (name == "__assertfail") return run_assertfail;
  if (name == "malloc") return run_malloc;
  if (name == "free") return run_free;
  return nullptr;
}

}  // namespace cudasim::ptx
