#include "agent/operations/launch_parameters.h"

#include <cstring>
#include <new>
#include <optional>

#include "agent/process/driver.h"
#include "agent/process/open_table.h"
#include "agent/process/spin_lock.h"

namespace memopt::agent {
namespace {

// CUDA allows 32,764 bytes of parameters since 12.1.
constexpr std::size_t kMaxParameters = 1024;
constexpr std::size_t kMaxParameterBytes = 32768;
constexpr std::size_t kFirstCapacity = 1024;

// Readers walk a table without a lock. A grown table is a new one; the old one stays mapped, since other threads may
// still be reading it: together the old ones are smaller than the newest.
struct Slot {
  std::uint64_t key;  // the function; written last
  const FunctionLayout* layout;

  static std::size_t home(std::uint64_t function) noexcept { return (function * 0x9E3779B97F4A7C15ull) >> 24; }
};
struct Table {
  std::size_t capacity;  // a power of two
  std::size_t used;      // written with the lock held
  Slot slots[1];
};

constinit Table* g_table = nullptr;
constinit std::uint64_t g_unloads = 1;
constinit int g_lock = 0;
constinit MappedBump g_memory;                    // with g_lock held
constinit const FunctionLayout* g_ids = nullptr;  // newest first, chained through Named
constinit std::uint32_t g_last_id = 0;
constinit const FunctionLayout* g_graphs = nullptr;
constinit const FunctionLayout g_unknown{};

struct Named {
  FunctionLayout layout;  // first
  const Named* previous;
};

const FunctionLayout* find(std::uint64_t function) noexcept {
  // Acquire pairs with the release in insert: slots and layouts are written before they are published.
  const Table* const table = __atomic_load_n(&g_table, __ATOMIC_ACQUIRE);
  if (table == nullptr) return nullptr;
  const Slot& slot = table->slots[probe(table->slots, table->capacity - 1, function)];
  // An empty slot may have been taken since, by another function.
  if (__atomic_load_n(&slot.key, __ATOMIC_ACQUIRE) != function) return nullptr;
  return __atomic_load_n(&slot.layout, __ATOMIC_ACQUIRE);
}

void put(Table& table, std::uint64_t function, const FunctionLayout* layout) noexcept {
  Slot& slot = table.slots[probe(table.slots, table.capacity - 1, function)];
  if (slot.key == 0) ++table.used;
  __atomic_store_n(&slot.layout, layout, __ATOMIC_RELEASE);
  __atomic_store_n(&slot.key, function, __ATOMIC_RELEASE);
}

void insert(std::uint64_t function, const FunctionLayout* layout) noexcept {
  Table* table = g_table;
  if (table == nullptr || (table->used + 1) * 2 > table->capacity) {
    const std::size_t capacity = table == nullptr ? kFirstCapacity : table->capacity * 2;
    auto* const grown = static_cast<Table*>(map_pages(sizeof(Table) + capacity * sizeof(Slot)));
    if (grown == nullptr) {
      // Without room the function is asked about again at each launch.
      if (table == nullptr || table->used + 1 >= table->capacity) return;
    } else {
      grown->capacity = capacity;
      for (std::size_t i = 0; table != nullptr && i < table->capacity; ++i) {
        if (table->slots[i].key != 0) put(*grown, table->slots[i].key, table->slots[i].layout);
      }
      table = grown;
    }
  }
  put(*table, function, layout);
  __atomic_store_n(&g_table, table, __ATOMIC_RELEASE);
}

// What the driver says about one function, before it is given memory of its own.
struct Answer {
  bool known = false;
  const char* name = nullptr;
  std::uint32_t parameter_count = 0;
  std::uint32_t word_count = 0;
  std::uint32_t parameter_bytes = 0;
};

// The first word of a parameter that is aligned as the kernel sees it.
std::uint32_t first_word(const ParameterExtent& parameter) noexcept { return (8 - parameter.offset % 8) % 8; }

std::uint32_t words_of(const ParameterExtent& parameter) noexcept {
  const std::uint32_t first = first_word(parameter);
  return parameter.bytes < first + 8 ? 0 : (parameter.bytes - first) / 8;
}

// False if the layout is not what a driver can mean. `ask`: function or kernel.
template <typename Ask>
bool read_parameters(Ask&& ask, ParameterExtent* parameters, Answer* answer) noexcept {
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    const CUresult result = ask(i, &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) return true;  // there are no more
    if (result != CUDA_SUCCESS || i == kMaxParameters || offset > kMaxParameterBytes || bytes > kMaxParameterBytes) {
      return false;
    }
    parameters[i] = {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)};
    ++answer->parameter_count;
    answer->word_count += words_of(parameters[i]);
    const auto end = static_cast<std::uint32_t>(offset + bytes);
    if (end > answer->parameter_bytes) answer->parameter_bytes = end;
  }
}

Answer ask_driver(CUfunction function, ParameterExtent* parameters) noexcept {
  const Driver& calls = driver();
  Answer answer;
  // An unknown function would be answered like one without parameters: the name tells them apart.
  if (calls.function_name(&answer.name, function) == CUDA_SUCCESS && answer.name != nullptr) {
    answer.known =
        read_parameters([&](std::size_t i, std::size_t* offset,
                            std::size_t* bytes) { return calls.function_parameter(function, i, offset, bytes); },
                        parameters, &answer);
    if (answer.known) return answer;
    answer = {false, answer.name, 0, 0, 0};
  }
  const auto kernel = reinterpret_cast<CUkernel>(function);
  const char* name = nullptr;
  if (calls.kernel_name(&name, kernel) != CUDA_SUCCESS || name == nullptr) return answer;
  answer.name = name;
  answer.known = read_parameters([&](std::size_t i, std::size_t* offset,
                                     std::size_t* bytes) { return calls.kernel_parameter(kernel, i, offset, bytes); },
                                 parameters, &answer);
  if (!answer.known) answer = {false, name, 0, 0, 0};
  return answer;
}

bool is_same(const FunctionLayout& layout, const Answer& answer, const ParameterExtent* parameters) noexcept {
  return layout.known == answer.known && std::strcmp(layout.name, answer.name != nullptr ? answer.name : "") == 0 &&
         layout.parameter_count == answer.parameter_count &&
         std::memcmp(layout.parameters, parameters, answer.parameter_count * sizeof(ParameterExtent)) == 0;
}

// With the lock held. A linear search: once per function, and programs have hundreds.
std::uint32_t id_of(const char* name) noexcept {
  for (auto* named = reinterpret_cast<const Named*>(g_ids); named != nullptr; named = named->previous) {
    if (std::strcmp(named->layout.name, name) == 0) return named->layout.id;
  }
  return ++g_last_id;
}

const FunctionLayout* store(const Answer& answer, const ParameterExtent* parameters) noexcept {
  const char* const name = answer.name != nullptr ? answer.name : "";
  const std::size_t name_bytes = std::strlen(name) + 1;
  auto* const named = static_cast<Named*>(g_memory.take(sizeof(Named)));
  auto* const name_copy = static_cast<char*>(g_memory.take(name_bytes));
  auto* const extents =
      static_cast<ParameterExtent*>(g_memory.take(answer.parameter_count * sizeof(ParameterExtent) + 1));
  auto* const words = static_cast<ParameterWord*>(g_memory.take(answer.word_count * sizeof(ParameterWord) + 1));
  const auto lists =
      answer.known && answer.parameter_count > 0 ? tensor_lists_of(name, parameters[0].bytes) : std::nullopt;
  const auto inputs = answer.known && answer.parameter_count > 1 && words_of(parameters[0]) == 1
                          ? cat_inputs_of(name, parameters[1].bytes)
                          : std::nullopt;
  void* const lists_copy = lists ? g_memory.take(sizeof(TensorLists)) : nullptr;
  void* const inputs_copy = inputs ? g_memory.take(sizeof(CatInputs)) : nullptr;
  if (named == nullptr || name_copy == nullptr || extents == nullptr || words == nullptr) return nullptr;
  if ((lists && lists_copy == nullptr) || (inputs && inputs_copy == nullptr)) return nullptr;
  std::memcpy(name_copy, name, name_bytes);
  std::memcpy(extents, parameters, answer.parameter_count * sizeof(ParameterExtent));
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < answer.parameter_count; ++i) {
    for (std::uint32_t k = 0; k < words_of(parameters[i]); ++k) words[next++] = {i, first_word(parameters[i]) + 8 * k};
  }
  FunctionLayout& layout = named->layout;
  layout.known = answer.known;
  layout.id = id_of(name);
  layout.word_count = answer.word_count;
  layout.parameter_count = answer.parameter_count;
  layout.parameter_bytes = answer.parameter_bytes;
  layout.words = words;
  layout.parameters = extents;
  layout.name = name_copy;
  if (lists) {
    layout.lists = new (lists_copy) TensorLists(*lists);
    layout.list_words = words_of(parameters[0]);
  } else if (inputs) {
    layout.inputs = new (inputs_copy) CatInputs(*inputs);
    layout.first_list_word = words_of(parameters[0]);
    layout.list_words = words_of(parameters[1]);
  }
  named->previous = reinterpret_cast<const Named*>(g_ids);
  g_ids = &layout;
  return &layout;
}

[[gnu::cold, gnu::noinline]] const FunctionLayout& learn(CUfunction function) noexcept {
  const int kept = errno;
  const std::uint64_t unloads = __atomic_load_n(&g_unloads, __ATOMIC_ACQUIRE);
  ParameterExtent parameters[kMaxParameters];
  // The driver is asked without a lock: it may have locks of its own.
  const Answer answer = ask_driver(function, parameters);
  const auto key = reinterpret_cast<std::uint64_t>(function);
  const LockGuard guard(g_lock);
  const FunctionLayout* layout = find(key);
  if (layout == nullptr || !is_same(*layout, answer, parameters)) {
    layout = store(answer, parameters);
    if (layout == nullptr) return g_unknown;
    insert(key, layout);
  }
  __atomic_store_n(&layout->checked_at, unloads, __ATOMIC_RELEASE);
  errno = kept;
  return *layout;
}

}  // namespace

const FunctionLayout& launch_layout(CUfunction function) noexcept {
  if (function == nullptr) return g_unknown;
  const FunctionLayout* const layout = find(reinterpret_cast<std::uint64_t>(function));
  if (layout != nullptr && __atomic_load_n(&layout->checked_at, __ATOMIC_ACQUIRE) ==
                               __atomic_load_n(&g_unloads, __ATOMIC_RELAXED)) [[likely]] {
    return *layout;
  }
  return learn(function);
}

const FunctionLayout& layout_of_graphs() noexcept {
  const FunctionLayout* layout = __atomic_load_n(&g_graphs, __ATOMIC_ACQUIRE);
  if (layout == nullptr) {
    const LockGuard guard(g_lock);
    layout = g_graphs;
    // No kernel has such a name.
    const ParameterExtent none{};
    if (layout == nullptr) layout = store({true, "(graph)", 0, 0, 0}, &none);
    __atomic_store_n(&g_graphs, layout, __ATOMIC_RELEASE);
  }
  return layout != nullptr ? *layout : g_unknown;
}

void functions_were_unloaded() noexcept { __atomic_fetch_add(&g_unloads, 1, __ATOMIC_ACQ_REL); }

void forget_functions_after_fork() noexcept {
  // The tables stay as they are: another thread may have been in the middle of one. Their memory is left alone.
  __atomic_store_n(&g_lock, 0, __ATOMIC_RELAXED);
  g_table = nullptr;
  g_memory = MappedBump();
  g_ids = nullptr;
  g_graphs = nullptr;
  functions_were_unloaded();
}

}  // namespace memopt::agent
