// What stream-ordered memory needs of the engine: who is ordered behind whom, operations that give memory out and free
// it, and their places in the checker's books.
#include "checker/checker.h"
#include "device/engine_impl.h"

namespace cudasim {

VectorClock Engine::Impl::order_of_next(const Stream& stream) const {
  VectorClock order = synchronized;
  for (const OperationPtr& predecessor : predecessors(stream)) order.join(predecessor->order);
  return order;
}

OperationPtr Engine::Impl::queue_marker(Stream& stream, Work work, const std::vector<OperationPtr>& behind,
                                        const std::vector<OperationPtr>& ran_before) {
  OperationPtr operation = make_operation(stream, std::move(work), enter());
  submit(stream, operation, behind, ran_before);
  return operation;
}

void Engine::Impl::show_unless_known(const OperationPtr& operation) {
  if (!checker.enabled() || operation->run) return;
  if (host_clock.of(operation->actor) >= operation->clock.of(operation->actor)) return;
  bytes.try_require({&operation, 1}, std::chrono::milliseconds(0));
}

namespace {

using Entry = void (Checker::*)(ActorId, const VectorClock&, const std::string&, std::span<const ByteRange>);

// In the name of the piece that is running on this thread, else of the calling host thread.
void note(Engine::Impl& engine, Entry entry, const std::string& name, std::span<const ByteRange> ranges) {
  if (const Operation* const running = engine.bytes.running()) {
    (engine.checker.*entry)(running->actor, running->clock, name, ranges);
    return;
  }
  engine.enter();
  (engine.checker.*entry)(engine.host_actor, engine.host_clock, name, ranges);
}

}  // namespace

void Engine::forget(const std::string& operation, std::span<const ByteRange> ranges) {
  note(*impl_, &Checker::forget, operation, ranges);
}

void Engine::allocate(const std::string& operation, std::span<const ByteRange> ranges) {
  note(*impl_, &Checker::allocate, operation, ranges);
}

void Engine::free_in_order(const std::string& operation, std::span<const ByteRange> ranges) {
  note(*impl_, &Checker::free_in_order, operation, ranges);
}

void Engine::reserve(const std::string& operation, std::span<const ByteRange> ranges) {
  note(*impl_, &Checker::reserve, operation, ranges);
}

}  // namespace cudasim
