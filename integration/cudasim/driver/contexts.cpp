#include "contexts.h"

#include <pthread.h>

#include "driver.h"
#include "pools.h"
#include "texture/arrays.h"
#include "texture/texture_objects.h"

namespace cudasim {
namespace {

// Not a thread_local object with a destructor: calls arrive from destructors of other thread-local and static objects,
// after ours would be gone. The key's destructor frees it at a thread's end (and again if a later destructor made a new
// one); the main thread's stays.
using Stack = std::vector<Context*>;
thread_local Stack* t_stack = nullptr;

Stack& stack() {
  if (t_stack == nullptr) {
    static const pthread_key_t key = [] {
      pthread_key_t made{};
      pthread_key_create(&made, [](void* value) {
        t_stack = nullptr;
        delete static_cast<Stack*>(value);
      });
      return made;
    }();
    t_stack = new Stack;
    pthread_setspecific(key, t_stack);
  }
  return *t_stack;
}

}  // namespace

Contexts::Contexts(Driver& driver) : driver_(driver) {
  all_.push_back(std::make_unique<Context>());
  primary().primary = true;
}

Context* Contexts::current() const { return t_stack == nullptr || t_stack->empty() ? nullptr : t_stack->back(); }

void Contexts::push(Context& context) { stack().push_back(&context); }

Context* Contexts::pop() {
  Context* const top = current();
  if (top != nullptr) stack().pop_back();
  return top;
}

void Contexts::set_current(Context* context) {
  pop();
  if (context != nullptr) push(*context);
}

Context* Contexts::find(CUcontext handle) const {
  for (const auto& context : all_) {
    if (reinterpret_cast<CUcontext>(context.get()) == handle) return context.get();
  }
  return nullptr;
}

Context& Contexts::create(unsigned flags, unsigned api_version) {
  all_.push_back(std::make_unique<Context>());
  Context& context = *all_.back();
  context.flags = flags;
  context.api_version = api_version;
  context.uses = 1;
  activate(context);
  return context;
}

void Contexts::activate(Context& context) {
  context.id = ContextId{++last_id_};
  context.alive = true;
  context.cache = CU_FUNC_CACHE_PREFER_NONE;
  context.shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  context.limits = {};
  context.limits[CU_LIMIT_STACK_SIZE] = 1024;
  context.limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
  context.limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
  context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context.limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  driver_.engine.add_context(context.id);
}

void Contexts::destroy(Context& context) {
  // Dead first: the engine releases the driver's lock while host functions run, and no other thread may add work
  // meanwhile.
  context.alive = false;
  driver_.engine.remove_context(context.id);
  driver_.modules.release_context(context.id);
  driver_.textures->release_context(context.id);
  driver_.arrays->release_context(context.id);
  driver_.memory.release_context(context.id);
  driver_.pools->context_destroyed(context.id, context.primary);
}

void Contexts::retain_primary() {
  if (!primary().alive) activate(primary());
  ++primary().uses;
}

bool Contexts::release_primary() {
  if (primary().uses == 0) return false;
  if (--primary().uses == 0 && primary().alive) destroy(primary());
  return true;
}

// Resetting does not release: whoever retained it still owes a release, and the next retain makes it anew under the
// same handle.
void Contexts::reset_primary() {
  if (primary().alive) destroy(primary());
}

}  // namespace cudasim
