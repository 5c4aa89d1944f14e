#include "thread_state.h"

#include <stdlib.h>

namespace cudart {
namespace {

constexpr int kInlineDepth = 4;

struct Overflow {
  CallConfiguration configuration;
  Overflow* below;
};

// dim3 has constructors, so the inline part is plain storage; a depth above it (launches nested in launch arguments) is
// allocated.
struct ConfigurationStack {
  alignas(CallConfiguration) unsigned char inline_part[kInlineDepth][sizeof(CallConfiguration)];
  int depth;
  Overflow* overflow;
};

constinit thread_local ConfigurationStack t_configurations = {};

}  // namespace

constinit thread_local ThreadState t_state = {cudaSuccess, 0, 0};

bool push_configuration(const CallConfiguration& configuration) {
  ConfigurationStack& stack = t_configurations;
  if (stack.depth < kInlineDepth) {
    __builtin_memcpy(stack.inline_part[stack.depth], &configuration, sizeof configuration);
  } else {
    auto* node = static_cast<Overflow*>(malloc(sizeof(Overflow)));
    if (!node) return false;
    node->configuration = configuration;
    node->below = stack.overflow;
    stack.overflow = node;
  }
  ++stack.depth;
  return true;
}

bool pop_configuration(CallConfiguration& configuration) {
  ConfigurationStack& stack = t_configurations;
  if (!stack.depth) return false;
  --stack.depth;
  if (Overflow* node = stack.overflow) {
    configuration = node->configuration;
    stack.overflow = node->below;
    free(node);
  } else {
    __builtin_memcpy(&configuration, stack.inline_part[stack.depth], sizeof configuration);
  }
  return true;
}

}  // namespace cudart
