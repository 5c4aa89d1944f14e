#include "agent/order/arena_lock.h"

namespace memopt::agent {

constinit QuickLock arena_lock_word;

}  // namespace memopt::agent
