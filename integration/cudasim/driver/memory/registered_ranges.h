// The host ranges that a program registered, in a form that any thread may ask without a lock while one thread changes
// it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cudasim {

class RegisteredRanges {
 public:
  RegisteredRanges();

  // Under the driver's lock. Ranges never overlap.
  void insert(std::uintptr_t begin, std::uintptr_t end);
  void erase(std::uintptr_t begin);

  bool contains(std::uintptr_t address) const;  // lock-free

 private:
  struct Entry {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
  };
  struct Table {
    explicit Table(std::size_t size) : capacity(size), entries(std::make_unique<Entry[]>(size)) {}
    std::size_t capacity;
    std::unique_ptr<Entry[]> entries;  // sorted by begin
  };
  void publish(const std::vector<std::pair<std::uintptr_t, std::uintptr_t>>& ranges);

  // A sequence lock: odd while the table changes. Readers that saw a change start over. Elements are stored with
  // release and loaded with acquire, which keeps them between the two accesses to version_ on either side without
  // fences.
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::size_t> size_{0};
  std::atomic<Table*> table_;
  // Tables that were outgrown stay: a reader may still be in one. Each is twice the last, so together they cost less
  // than the newest.
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges_;
};

}  // namespace cudasim
