#include "checker/checker.h"

#include <cstdio>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "checker/shadow.h"
#include "checker/vector_clock.h"
#include "counters.h"
#include "memory/memory.h"

namespace cudasim {
namespace {

constexpr std::uint64_t kReportedInFull = 10;
constexpr std::size_t kRememberedPairs = 1u << 20;  // beyond this a pair may be counted again

const char* doing(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "reads";
    case AccessKind::kWrite:
      return "writes";
    case AccessKind::kFree:
    case AccessKind::kFreeInOrder:
      return "frees";
    case AccessKind::kAllocate:
      return "allocates";
    case AccessKind::kReserve:
      return "reserves";
  }
  return "accesses";
}

}  // namespace

struct Checker::Impl {
  bool enabled;
  Memory& memory;
  Counters& counters;
  std::vector<std::string> actors;
  std::vector<AccessorPtr> latest;  // by actor: pieces of one operation share their accessor
  Shadow device, pinned;
  std::uint64_t races = 0, printed = 0;
  std::string last_race;
  std::set<std::tuple<ActorId, std::uint64_t, ActorId, std::uint64_t>> seen_pairs;
  std::set<std::pair<std::string, std::string>> printed_names;

  AccessorPtr accessor(ActorId actor, const VectorClock& clock, const std::string& operation) {
    AccessorPtr& latest_of_actor = latest.at(static_cast<std::size_t>(actor));
    const std::uint64_t step = clock.of(actor);
    if (!latest_of_actor || latest_of_actor->step != step || latest_of_actor->operation != operation) {
      latest_of_actor =
          std::make_shared<Accessor>(Accessor{actor, step, operation, actors[static_cast<std::size_t>(actor)]});
    }
    return latest_of_actor;
  }

  Shadow& shadow(ByteRange::Space space) { return space == ByteRange::Space::kDevice ? device : pinned; }

  void access(const ByteRange& range, AccessKind kind, const AccessorPtr& later, const VectorClock& clock,
              std::uintptr_t address) {
    const Shadow::Conflict conflict = [&](const Accessor& earlier, AccessKind earlier_kind, std::uint64_t begin,
                                          std::uint64_t end) {
      report(earlier, earlier_kind, *later, kind, {range.space, begin, end},
             address == 0 ? 0 : address + (begin - range.begin), earlier.before(clock));
    };
    switch (kind) {
      case AccessKind::kRead:
        shadow(range.space).read(range.begin, range.end, later, clock, conflict);
        break;
      case AccessKind::kWrite:
        shadow(range.space).write(range.begin, range.end, later, clock, conflict);
        break;
      case AccessKind::kFree:
        shadow(range.space).forget(range.begin, range.end, clock, conflict);
        break;
      case AccessKind::kAllocate:
        shadow(range.space).allocate(range.begin, range.end, later, clock, conflict);
        break;
      case AccessKind::kFreeInOrder:
        shadow(range.space).free_in_order(range.begin, range.end, later, clock, conflict);
        break;
      case AccessKind::kReserve:
        shadow(range.space).reserve(range.begin, range.end, later);
        break;
    }
  }

  void access_all(ActorId actor, const VectorClock& clock, const std::string& operation,
                  std::span<const ByteRange> ranges, AccessKind kind) {
    if (!enabled) return;
    const AccessorPtr by = accessor(actor, clock, operation);
    for (const ByteRange& range : ranges) access(range, kind, by, clock, 0);
  }

  void report(const Accessor& earlier, AccessKind earlier_kind, const Accessor& later, AccessKind kind,
              const ByteRange& bytes, std::uintptr_t address, bool ordered) {
    if (!seen_pairs.emplace(earlier.actor, earlier.step, later.actor, later.step).second) return;
    if (seen_pairs.size() > kRememberedPairs) seen_pairs.clear();
    ++races;
    ++counters.totals.races;

    std::ostringstream text;
    text << (earlier_kind == AccessKind::kReserve ? "not allocated: '"
             : ordered                            ? "used after it was freed: '"
                                                  : "not ordered: '")
         << earlier.operation << "' on " << earlier.actor_name << " (" << doing(earlier_kind) << ") and '"
         << later.operation << "' on " << later.actor_name << " (" << doing(kind) << "): " << bytes.end - bytes.begin
         << " bytes of ";
    if (bytes.space == ByteRange::Space::kDevice) {
      text << "device memory at physical offset 0x" << std::hex << bytes.begin;
      if (address != 0) text << ", accessed at 0x" << address;
    } else {
      text << "pinned host memory at 0x" << std::hex << bytes.begin;
    }
    text << std::dec;
    if (!ordered && earlier_kind != AccessKind::kReserve)
      text << "; nothing makes " << later.actor_name << " wait for " << earlier.actor_name;
    last_race = text.str();

    // A loop repeats its mistake with every iteration: the same two names are shown once.
    if (printed > kReportedInFull ||
        !printed_names.emplace(earlier.operation + '\n' + earlier.actor_name, later.operation + '\n' + later.actor_name)
             .second) {
      return;
    }
    ++printed;
    if (printed > kReportedInFull) {
      std::fprintf(stderr, "cudasim: race: more were found; they are counted only\n");
    } else {
      std::fprintf(stderr, "cudasim: race: %s\n", last_race.c_str());
    }
  }
};

Checker::Checker(bool enabled, Memory& memory, Counters& counters)
    : impl_(std::make_unique<Impl>(Impl{enabled, memory, counters, {}, {}, {}, {}, 0, 0, {}, {}, {}})) {}
Checker::~Checker() = default;

bool Checker::enabled() const { return impl_->enabled; }

ActorId Checker::add_actor(std::string name) {
  impl_->actors.push_back(std::move(name));
  impl_->latest.emplace_back();
  return static_cast<ActorId>(impl_->actors.size() - 1);
}

void Checker::rename_actor(ActorId actor, std::string name) {
  impl_->actors.at(static_cast<std::size_t>(actor)) = std::move(name);
  impl_->latest.at(static_cast<std::size_t>(actor)) = nullptr;
}

void Checker::check(ActorId actor, const VectorClock& clock, const std::string& operation, const AccessLog& log) {
  if (!impl_->enabled || log.empty()) return;
  const AccessorPtr accessor = impl_->accessor(actor, clock, operation);
  // Reads first: of bytes that it also writes, the operation is remembered as the writer.
  for (const auto& [ranges, kind] :
       {std::pair{log.reads(), AccessKind::kRead}, std::pair{log.writes(), AccessKind::kWrite}}) {
    for (const AddressRange& range : ranges) {
      std::uintptr_t address = range.begin;
      impl_->memory.for_each_byte_range(range.begin, range.end - range.begin, [&, kind = kind](const ByteRange& bytes) {
        impl_->access(bytes, kind, accessor, clock, address);
        address += bytes.end - bytes.begin;
      });
    }
  }
}

void Checker::check_bytes(ActorId actor, const VectorClock& clock, const std::string& operation,
                          std::span<const ByteRange> reads, std::span<const ByteRange> writes) {
  if (!impl_->enabled) return;
  const AccessorPtr accessor = impl_->accessor(actor, clock, operation);
  for (const ByteRange& range : reads) impl_->access(range, AccessKind::kRead, accessor, clock, 0);
  for (const ByteRange& range : writes) impl_->access(range, AccessKind::kWrite, accessor, clock, 0);
}

void Checker::forget(ActorId actor, const VectorClock& clock, const std::string& operation,
                     std::span<const ByteRange> ranges) {
  impl_->access_all(actor, clock, operation, ranges, AccessKind::kFree);
}

void Checker::allocate(ActorId actor, const VectorClock& clock, const std::string& operation,
                       std::span<const ByteRange> ranges) {
  impl_->access_all(actor, clock, operation, ranges, AccessKind::kAllocate);
}

void Checker::free_in_order(ActorId actor, const VectorClock& clock, const std::string& operation,
                            std::span<const ByteRange> ranges) {
  impl_->access_all(actor, clock, operation, ranges, AccessKind::kFreeInOrder);
}

void Checker::reserve(ActorId actor, const VectorClock& clock, const std::string& operation,
                      std::span<const ByteRange> ranges) {
  impl_->access_all(actor, clock, operation, ranges, AccessKind::kReserve);
}

std::uint64_t Checker::races() const { return impl_->races; }
const std::string& Checker::last_race() const { return impl_->last_race; }

}  // namespace cudasim
