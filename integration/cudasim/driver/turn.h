// One thread's turn at the driver: through the schedule or the serialize gate, then under the lock; all given back in
// the opposite order.
#pragma once
#include "driver.h"

namespace cudasim {

class Turn {
 public:
  // `symbol`: the call, for the schedule's trace.
  Turn(Driver& driver, const char* symbol)
      : driver_(driver), symbol_(symbol), scheduled_(driver.schedule && !driver.is_service_thread()) {
    if (scheduled_) driver_.schedule->point(symbol, symbol);
    driver_.gate.enter();
    driver_.mutex.lock();
  }
  ~Turn() {
    driver_.mutex.unlock();
    driver_.gate.leave();
    if (scheduled_) driver_.schedule->point("returns", symbol_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Driver& driver_;
  const char* const symbol_;
  const bool scheduled_;
};

}  // namespace cudasim
