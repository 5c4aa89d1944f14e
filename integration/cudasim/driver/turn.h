// One thread's turn at the driver: through the serialize gate, then under the lock; both given back in the opposite
// order.
#pragma once
#include "driver.h"

namespace cudasim {

class Turn {
 public:
  explicit Turn(Driver& driver) : driver_(driver) {
    driver_.gate.enter();
    driver_.mutex.lock();
  }
  ~Turn() {
    driver_.mutex.unlock();
    driver_.gate.leave();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Driver& driver_;
};

}  // namespace cudasim
