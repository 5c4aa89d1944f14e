// What is written at exit: checksums, and a table of launches by kernel.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cudasim/cudasim.h"
#include "instrument.h"
#include "options.h"

namespace launch_effects {
namespace {

constexpr std::size_t kRowsOfText = 25;

std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

// Kernels' names are the only text, and theirs are letters, digits and underscores as a rule.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

// Copies the blocks to the host as the program would: what stands between it and the driver has to have them there.
std::uint64_t Instrument::checksum_of(const std::vector<Block>& live) {
  const auto copy = reinterpret_cast<decltype(&cuMemcpyDtoH_v2)>(driver_function("cuMemcpyDtoH_v2"));
  std::uint64_t checksum = 0;
  std::vector<unsigned char> bytes;
  for (const Block& block : live) {
    checksum = mixed(mixed(checksum, std::uint64_t{block.id.thread} << 32 | block.id.number), block.size);
    for (const Range& range : block.written.inside({0, block.size})) {
      bytes.resize(range.end - range.begin);
      if (copy == nullptr || copy(bytes.data(), block.address + range.begin, bytes.size()) != CUDA_SUCCESS) {
        ++live_unreadable_;
        break;
      }
      checksum = mixed(checksum, hash_of(bytes.data(), range, options().extent));
    }
  }
  return checksum;
}

void Instrument::finish() {
  const Options& asked = options();
  // The driver is called without the lock: threads of the program may still run.
  std::unique_lock lock(mutex_);
  if (finished_) return;
  finished_ = true;
  std::vector<Block> live;
  for (const Block* const block : blocks_.in_order()) live.push_back(*block);
  if (!asked.decide.empty()) write_decisions(asked.decide, deciding_);
  if ((asked.report.empty() && asked.uses.empty()) || context_ == nullptr) return;
  lock.unlock();
  if (const auto counters = reinterpret_cast<decltype(&cudasim_counters)>(driver_function("cudasim_counters"))) {
    CudasimCounters now{};
    now.struct_size = sizeof now;
    if (counters(&now) == 0) host_end_nanoseconds_ = now.host_now_ns;
  }
  if (asked.extent != Extent::kNone) read_live_blocks(live);
  lock.lock();
  if (!asked.uses.empty()) write_uses();
  if (asked.report.empty()) return;
  if (asked.report == "stderr") {
    std::fputs(report_text().c_str(), stderr);
    return;
  }
  const std::string json = report_json();
  std::FILE* const file = std::fopen(asked.report.c_str(), "we");
  if (file == nullptr || std::fwrite(json.data(), 1, json.size(), file) != json.size())
    std::fprintf(stderr, "launch effects: cannot write %s: %s\n", asked.report.c_str(), std::strerror(errno));
  if (file != nullptr) std::fclose(file);
}

void Instrument::read_live_blocks(const std::vector<Block>& live) {
  const auto set_current = reinterpret_cast<decltype(&cuCtxSetCurrent)>(driver_function("cuCtxSetCurrent"));
  // Of CUDA before 13, which every driver has.
  const auto synchronize = reinterpret_cast<CUresult (*)()>(driver_function("cuCtxSynchronize"));
  if (set_current == nullptr || synchronize == nullptr || set_current(context_) != CUDA_SUCCESS ||
      synchronize() != CUDA_SUCCESS) {
    std::fputs("launch effects: the device is in error, or its context gone: the checksums are not complete\n", stderr);
    ++live_unreadable_;
  } else {
    live_checksum_ = checksum_of(live);
  }
}

// In the order of the calls: where two runs first differ, a launch has found other bytes.
void Instrument::write_uses() {
  std::FILE* const file = std::fopen(options().uses.c_str(), "we");
  if (file == nullptr) {
    std::fprintf(stderr, "launch effects: cannot write %s: %s\n", options().uses.c_str(), std::strerror(errno));
    return;
  }
  for (const Use& use : uses_)
    std::fprintf(file, "%u %u %s %s\n", use.id.thread, use.id.number, hexadecimal(use.hash.load()).c_str(),
                 use.kernel.c_str());
  std::fclose(file);
}

std::string Instrument::report_json() const {
  std::uint64_t launches = 0, nanoseconds = 0;
  std::string kernels;
  for (const auto& [name, totals] : totals_) {
    launches += totals.launches;
    nanoseconds += totals.nanoseconds;
    kernels += (kernels.empty() ? "\n" : ",\n") + std::string("    {\"name\": ") + quoted(name) +
               ", \"launches\": " + number(totals.launches) + ", \"blocks\": " + number(totals.blocks) +
               ", \"bytes\": " + number(totals.bytes) + ", \"ns\": " + number(totals.nanoseconds) + "}";
  }
  return "{\n  \"launches\": " + number(launches) + ",\n  \"launch_ns\": " + number(nanoseconds) +
         ",\n  \"host_end_ns\": " + number(host_end_nanoseconds_) +
         ",\n  \"effects\": " + number(sums_.effects.load()) + ",\n  \"uses_checksum\": \"" +
         hexadecimal(sums_.hash.load()) + "\",\n  \"live_checksum\": \"" + hexadecimal(live_checksum_) +
         "\",\n  \"live_blocks\": " + number(blocks_.in_order().size()) +
         ",\n  \"live_bytes\": " + number(blocks_.bytes()) + ",\n  \"live_unreadable\": " + number(live_unreadable_) +
         ",\n  \"peak_bytes\": " + number(blocks_.peak_bytes()) + ",\n  \"allocated\": " + number(blocks_.allocated()) +
         ",\n  \"freed\": " + number(blocks_.freed()) + ",\n  \"undecided\": " + number(undecided_) +
         ",\n  \"disagreed\": " + number(disagreed_) + ",\n  \"kernels\": [" + kernels + "\n  ]\n}\n";
}

std::string Instrument::report_text() const {
  std::vector<std::pair<std::string, Totals>> rows(totals_.begin(), totals_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.nanoseconds > b.second.nanoseconds; });
  std::uint64_t launches = 0, nanoseconds = 0;
  for (const auto& [name, totals] : rows) {
    launches += totals.launches;
    nanoseconds += totals.nanoseconds;
  }
  char line[512];
  std::string text;
  const auto add = [&](auto... values) {
    std::snprintf(line, sizeof line, values...);
    text += "launch effects: " + std::string(line) + "\n";
  };
  using Number = unsigned long long;
  add("%llu launches, %.3f ms; %llu with an effect, checksum of all that they read %016llx", Number{launches},
      double(nanoseconds) / 1e6, Number{sums_.effects.load()}, Number{sums_.hash.load()});
  add("%llu blocks allocated, %llu freed; checksum of the %llu left %016llx%s", Number{blocks_.allocated()},
      Number{blocks_.freed()}, Number{blocks_.in_order().size()}, Number{live_checksum_},
      live_unreadable_ != 0 ? " (not all can be read)" : "");
  if (undecided_ != 0 || disagreed_ != 0) {
    add("not as decided: %llu launches that are new, %llu words that name something else", Number{undecided_},
        Number{disagreed_});
  }
  add("%10s %14s %8s %14s  %s", "launches", "us", "blocks", "KiB", "kernel");
  for (std::size_t i = 0; i < std::min(rows.size(), kRowsOfText); ++i) {
    const Totals& totals = rows[i].second;
    add("%10llu %14.1f %8llu %14llu  %.300s", Number{totals.launches}, double(totals.nanoseconds) / 1e3,
        Number{totals.blocks}, Number{totals.bytes >> 10}, rows[i].first.c_str());
  }
  if (rows.size() > kRowsOfText) add("… and %zu more", rows.size() - kRowsOfText);
  return text;
}

}  // namespace launch_effects
