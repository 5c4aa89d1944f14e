// Makes a program from a seed: draws operations, and puts in what orders them, now by events, now by waiting.
#pragma once

#include <random>
#include <vector>

#include "happens_before.h"
#include "program.h"

namespace memopt::order {

class Generator {
 public:
  Generator(std::uint64_t seed, const GeneratorOptions& options);
  Program make();

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Block {
    std::size_t allocated = kNone;  // its call
    std::size_t writer = kNone;
    std::vector<std::size_t> readers{};  // since the last write
    std::vector<std::size_t> uses{};     // all of them
    Content content{};
    bool live = false;
  };
  struct Event {
    std::size_t record = kNone;
    std::size_t older = kNone;        // the record before, if all that came before that comes before `record`
    std::vector<std::size_t> uses{};  // of what was recorded last, and its making
    std::size_t made = kNone;
  };
  struct Slot {
    std::size_t copied = kNone;
    Content content{};
  };

  std::uint32_t below(std::size_t bound) { return std::uint32_t(random_() % bound); }
  bool one_in(std::uint32_t chances) { return below(chances) == 0; }
  int any_thread() { return int(below(std::size_t(program_.threads))); }
  int any_stream(int thread);
  Content any_content() { return {std::uint32_t(random_()), std::uint32_t(random_()) | 1}; }

  // Appends the operation to the program; the thread waits for what `awaited` says first.
  std::size_t emit(Op op, const OpSet& extra = {});
  void await(Op& op, std::size_t other);
  void await_next(int thread, std::size_t other);
  int queued_on(const Op& op) const;

  // Everything in `needed` comes before what the thread queues on the stream next.
  void order(int thread, int stream, const OpSet& needed);
  std::size_t recorded_for(int thread, const Event& event) const;
  bool order_by_event(int thread, int stream, std::size_t earlier);
  // Everything in `needed` is over, and the thread knows.
  void finish(int thread, const OpSet& needed);
  void sync_stream(int thread, std::size_t earlier);
  std::size_t record(int thread, int stream, int event);
  int free_event(int thread);
  void await_uses(Op& op, const std::vector<std::size_t>& uses);
  bool can_name(int thread, int stream) const;

  void one();
  void allocate(int thread);
  void release(int thread, int block);
  void write(int thread, int block);
  void copy(int thread, int block);
  void look(int thread, int block);
  void host_function();
  void ask(int thread);
  void wait(int thread);
  void make_anew(int thread);
  int any_live_block(int thread);
  void use(std::size_t op, int block, bool writes);
  OpSet needed_by(int block, bool writes) const;

  std::mt19937_64 random_;
  const GeneratorOptions options_;
  Program program_;
  HappensBefore order_;
  std::vector<Block> blocks_;
  std::vector<Event> events_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> stream_made_;  // the call that made the slot's stream anew
  std::vector<std::vector<std::size_t>> stream_uses_;
  std::vector<std::pair<int, int>> waits_;  // of the operation that is to come: thread, calls
};

}  // namespace memopt::order
