// One open question about a device, and how it is answered. Each runs in a process of its own: a sticky error or a call
// that never returns takes no other fact with it.
#pragma once

#include <string>
#include <vector>

#include "measure.h"

namespace facts {

struct Settings {
  bool small = false;  // few repeats and little memory: to see that it works, not to measure
  double seconds = 0;  // the fact should be done by then, and is killed at twice that
};

// What has been found so far. Told at once, so that whatever ends the process loses only what was not found yet.
class Findings {
 public:
  void add(const std::string& key, const Json& value);
  // A part that may fail by itself: the error becomes its value.
  template <typename Work>
  void attempt(const std::string& key, Work&& work) {
    try {
      add(key, work());
    } catch (const std::exception& error) {
      add(key, Json{{"error", error.what()}});
    }
  }
};

struct Fact {
  const char* name;
  const char* question;
  const char* how;
  double seconds;
  void (*find)(const Settings& settings, Findings& findings);
};

const std::vector<Fact>& all_facts();

void device_properties(const Settings&, Findings&);
void vmm_costs(const Settings&, Findings&);
void vmm_under_load(const Settings&, Findings&);
void alias_coherence(const Settings&, Findings&);
void free_drains(const Settings&, Findings&);
void tensor_map(const Settings&, Findings&);
void pinned_bandwidth(const Settings&, Findings&);
void host_memory_costs(const Settings&, Findings&);
void host_call_costs(const Settings&, Findings&);
void event_clock(const Settings&, Findings&);

}  // namespace facts
