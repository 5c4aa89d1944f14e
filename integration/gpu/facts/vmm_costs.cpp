#include <algorithm>
#include <cmath>
#include <string>

#include "fact.h"
#include "vmm.h"

namespace facts {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Every call on `count` chunks, one after the other. Each is timed, so that a cost which grows with the number shows.
Json one_case(const Device& device, std::size_t chunk_bytes, std::size_t count) {
  std::vector<double> create, map, allow, unmap, release;
  double allow_whole = 0;
  std::vector<Chunk> chunks;
  chunks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    create.push_back(timed([&] { chunks.emplace_back(device, chunk_bytes); }));
  }
  {
    Range range(count * chunk_bytes, chunk_bytes);
    for (std::size_t i = 0; i < count; ++i) map.push_back(timed([&] { range.map(i, chunks[i]); }));
    for (std::size_t i = 0; i < count; ++i) allow.push_back(timed([&] { range.allow(device, i); }));
    for (std::size_t i = 0; i < count; ++i) unmap.push_back(timed([&] { range.unmap(i); }));
    // Once more, with the access of all set by one call.
    for (std::size_t i = 0; i < count; ++i) range.map(i, chunks[i]);
    allow_whole = timed([&] { range.allow(device, 0, count); });
  }
  for (Chunk& chunk : chunks) release.push_back(timed([&] { chunk.release(); }));
  const auto last_to_first = [](const std::vector<double>& all) {
    const std::size_t part = std::max<std::size_t>(1, all.size() / 10);
    const auto middle = [](std::vector<double> some) {
      std::nth_element(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2), some.end());
      return some[some.size() / 2];
    };
    const double first = middle({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(part)});
    const double last = middle({all.end() - static_cast<std::ptrdiff_t>(part), all.end()});
    return first > 0 ? std::round(100 * last / first) / 100 : 0;
  };
  return {{"chunk_mib", chunk_bytes / kMiB},
          {"mappings", count},
          {"create_ns", spread(create)},
          {"map_ns", spread(map)},
          {"set_access_ns", spread(allow)},
          {"set_access_all_at_once_ns_per_mapping", std::round(allow_whole / static_cast<double>(count))},
          {"unmap_ns", spread(unmap)},
          {"release_ns", spread(release)},
          {"last_tenth_to_first",
           {{"create", last_to_first(create)},
            {"map", last_to_first(map)},
            {"set_access", last_to_first(allow)},
            {"unmap", last_to_first(unmap)}}}};
}

// One chunk at many addresses: what further mappings cost where the physical memory is the same.
Json aliases(const Device& device, std::size_t chunk_bytes, std::size_t count) {
  const Chunk chunk(device, chunk_bytes);
  Range range(count * chunk_bytes, chunk_bytes);
  std::vector<double> map, allow, unmap;
  for (std::size_t i = 0; i < count; ++i) {
    map.push_back(timed([&] { range.map(i, chunk); }));
    allow.push_back(timed([&] { range.allow(device, i); }));
  }
  for (std::size_t i = 0; i < count; ++i) unmap.push_back(timed([&] { range.unmap(i); }));
  return {{"chunk_mib", chunk_bytes / kMiB},
          {"mappings", count},
          {"map_ns", spread(map)},
          {"set_access_ns", spread(allow)},
          {"unmap_ns", spread(unmap)}};
}

}  // namespace

void vmm_costs(const Settings& settings, Findings& findings) {
  const Device device;
  const std::int64_t started = now_ns();
  const auto time_left = [&] { return settings.seconds - static_cast<double>(now_ns() - started) * 1e-9; };
  const std::vector<std::size_t> sizes =
      settings.small ? std::vector<std::size_t>{2, 16} : std::vector<std::size_t>{2, 4, 8, 16, 32, 64, 128, 256, 512};
  const std::vector<std::size_t> numbers =
      settings.small ? std::vector<std::size_t>{1, 20} : std::vector<std::size_t>{1, 1000, 20000};
  for (const std::size_t wanted : numbers) {
    for (const std::size_t mib : sizes) {
      const std::string key = "chunks_of_" + std::to_string(mib) + "_mib_times_" + std::to_string(wanted);
      if (time_left() < 0) {
        findings.add(key, Json{{"error", "not measured: the time for this fact is over"}});
        continue;
      }
      const std::size_t room = device.free_bytes() / 10 * 9 / (mib * kMiB);
      const std::size_t count = std::min(wanted, room);
      findings.attempt(key, [&] {
        if (count == 0) throw std::runtime_error("not measured: no room for one");
        // A number bounded by memory says nothing new where the next smaller number was bounded as well.
        if (wanted > numbers[1] && count <= numbers[1])
          throw std::runtime_error("not measured: no room for more than before");
        Json result = one_case(device, mib * kMiB, count);
        if (count < wanted) result["bounded_by"] = "free memory";
        return result;
      });
    }
    const std::string key = "aliases_of_one_2_mib_chunk_times_" + std::to_string(wanted);
    if (time_left() < 0) {
      findings.add(key, Json{{"error", "not measured: the time for this fact is over"}});
    } else {
      findings.attempt(key, [&] { return aliases(device, 2 * kMiB, wanted); });
    }
  }
}

}  // namespace facts
