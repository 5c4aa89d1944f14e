// Every function that gcc 12 and clang 14 call in code compiled with -fsanitize=thread. The names and signatures are
// the compilers'; what they do is ours. Atomic operations are performed here, sequentially consistent whatever order
// was asked for: stronger is always correct.
#include <cstdint>
#include <cstring>

#include "record.h"

using cudasim::instrument::Access;
using cudasim::instrument::record;

#define CALLBACK extern "C" __attribute__((visibility("hidden")))

// ---- no memory
// ---------------------------------------------------------------------------------------------------------------------

CALLBACK void __tsan_init() {}
CALLBACK void __tsan_func_entry(void*) {}
CALLBACK void __tsan_func_exit() {}
CALLBACK void __tsan_ignore_thread_begin() {}
CALLBACK void __tsan_ignore_thread_end() {}
CALLBACK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
CALLBACK void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// ---- plain loads and stores
// --------------------------------------------------------------------------------------------------------

#define LOADS_AND_STORES(size)                                                                      \
  CALLBACK void __tsan_read##size(void* p) { record(p, size, Access::kRead); }                      \
  CALLBACK void __tsan_write##size(void* p) { record(p, size, Access::kWrite); }                    \
  CALLBACK void __tsan_unaligned_read##size(void* p) { record(p, size, Access::kRead); }            \
  CALLBACK void __tsan_unaligned_write##size(void* p) { record(p, size, Access::kWrite); }          \
  CALLBACK void __tsan_volatile_read##size(void* p) { record(p, size, Access::kRead); }             \
  CALLBACK void __tsan_volatile_write##size(void* p) { record(p, size, Access::kWrite); }           \
  CALLBACK void __tsan_unaligned_volatile_read##size(void* p) { record(p, size, Access::kRead); }   \
  CALLBACK void __tsan_unaligned_volatile_write##size(void* p) { record(p, size, Access::kWrite); } \
  CALLBACK void __tsan_read_write##size(void* p) {                                                  \
    record(p, size, Access::kRead);                                                                 \
    record(p, size, Access::kWrite);                                                                \
  }                                                                                                 \
  CALLBACK void __tsan_unaligned_read_write##size(void* p) {                                        \
    record(p, size, Access::kRead);                                                                 \
    record(p, size, Access::kWrite);                                                                \
  }
LOADS_AND_STORES(1)
LOADS_AND_STORES(2)
LOADS_AND_STORES(4)
LOADS_AND_STORES(8)
LOADS_AND_STORES(16)

CALLBACK void __tsan_read_range(void* p, std::size_t size) { record(p, size, Access::kRead); }
CALLBACK void __tsan_write_range(void* p, std::size_t size) { record(p, size, Access::kWrite); }
CALLBACK void __tsan_vptr_read(void** p) { record(p, sizeof *p, Access::kRead); }
CALLBACK void __tsan_vptr_update(void** p, void*) { record(p, sizeof *p, Access::kWrite); }

CALLBACK void* __tsan_memcpy(void* to, const void* from, std::size_t size) {
  record(from, size, Access::kRead);
  record(to, size, Access::kWrite);
  return memcpy(to, from, size);
}
CALLBACK void* __tsan_memmove(void* to, const void* from, std::size_t size) {
  record(from, size, Access::kRead);
  record(to, size, Access::kWrite);
  return memmove(to, from, size);
}
CALLBACK void* __tsan_memset(void* to, int value, std::size_t size) {
  record(to, size, Access::kWrite);
  return memset(to, value, size);
}

// ---- atomics
// -----------------------------------------------------------------------------------------------------------------------

namespace {

void record_update(const volatile void* p, std::size_t size) {
  record(const_cast<const void*>(p), size, Access::kRead);
  record(const_cast<const void*>(p), size, Access::kWrite);
}

}  // namespace

#define ATOMIC_UPDATE(bits, name, operation)                                           \
  CALLBACK A##bits __tsan_atomic##bits##_##name(volatile A##bits* p, A##bits v, int) { \
    record_update(p, sizeof *p);                                                       \
    return operation(p, v, __ATOMIC_SEQ_CST);                                          \
  }

#define ATOMICS(bits)                                                                                                 \
  CALLBACK A##bits __tsan_atomic##bits##_load(const volatile A##bits* p, int) {                                       \
    record(const_cast<const A##bits*>(p), sizeof *p, Access::kRead);                                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                      \
  }                                                                                                                   \
  CALLBACK void __tsan_atomic##bits##_store(volatile A##bits* p, A##bits v, int) {                                    \
    record(const_cast<A##bits*>(p), sizeof *p, Access::kWrite);                                                       \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                                         \
  }                                                                                                                   \
  ATOMIC_UPDATE(bits, exchange, __atomic_exchange_n)                                                                  \
  ATOMIC_UPDATE(bits, fetch_add, __atomic_fetch_add)                                                                  \
  ATOMIC_UPDATE(bits, fetch_sub, __atomic_fetch_sub)                                                                  \
  ATOMIC_UPDATE(bits, fetch_and, __atomic_fetch_and)                                                                  \
  ATOMIC_UPDATE(bits, fetch_or, __atomic_fetch_or)                                                                    \
  ATOMIC_UPDATE(bits, fetch_xor, __atomic_fetch_xor)                                                                  \
  ATOMIC_UPDATE(bits, fetch_nand, __atomic_fetch_nand)                                                                \
  CALLBACK int __tsan_atomic##bits##_compare_exchange_strong(volatile A##bits* p, A##bits* expected, A##bits desired, \
                                                             int, int) {                                              \
    record_update(p, sizeof *p);                                                                                      \
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                                   \
  CALLBACK int __tsan_atomic##bits##_compare_exchange_weak(volatile A##bits* p, A##bits* expected, A##bits desired,   \
                                                           int, int) {                                                \
    record_update(p, sizeof *p);                                                                                      \
    return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }                                                                                                                   \
  CALLBACK A##bits __tsan_atomic##bits##_compare_exchange_val(volatile A##bits* p, A##bits expected, A##bits desired, \
                                                              int, int) {                                             \
    record_update(p, sizeof *p);                                                                                      \
    __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
    return expected;                                                                                                  \
  }

using A8 = std::uint8_t;
using A16 = std::uint16_t;
using A32 = std::uint32_t;
using A64 = std::uint64_t;
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)
