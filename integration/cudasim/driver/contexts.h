// Contexts of the one device: the primary one and those the program creates, and the stack of current ones of each
// thread.
//
// A CUcontext points to a Context. Records are never freed (a few per process), so that a handle of a destroyed context
// is recognised for as long as the process lives instead of being mistaken for a newer one.
//
// Threads: called with the driver's lock held; the stacks are the calling thread's own.
#pragma once
#include <cuda.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "units.h"

namespace cudasim {

struct Driver;

struct Context {
  ContextId id = ContextId::kNone;  // the primary context has a new one after each reset or last release
  bool alive = false;
  bool primary = false;
  unsigned flags = 0;
  unsigned api_version = 3020;
  unsigned uses = 0;  // primary: retains; others: attaches
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::array<std::size_t, CU_LIMIT_MAX> limits{};
};

class Contexts {
 public:
  explicit Contexts(Driver& driver);

  // The calling thread's current context, dead or alive; null when it has none.
  Context* current() const;
  void push(Context& context);
  Context* pop();                      // null when the stack is empty
  void set_current(Context* context);  // replaces the top; null pops it

  // Null when the handle was never one of ours. The record may be of a context that is destroyed.
  Context* find(CUcontext handle) const;
  // The live context with this id, or null.
  Context* find(ContextId id) const {
    for (const std::unique_ptr<Context>& context : all_) {
      if (context->alive && context->id == id) return context.get();
    }
    return nullptr;
  }
  static CUcontext handle(Context& context) { return reinterpret_cast<CUcontext>(&context); }

  Context& create(unsigned flags, unsigned api_version);
  // Waits for its work, then frees its modules, memory, streams and events.
  void destroy(Context& context);

  Context& primary() { return *all_.front(); }
  void retain_primary();
  bool release_primary();  // false: not retained
  void reset_primary();

 private:
  void activate(Context& context);

  Driver& driver_;
  std::vector<std::unique_ptr<Context>> all_;  // the primary one first
  std::uint64_t last_id_ = 0;
};

}  // namespace cudasim
