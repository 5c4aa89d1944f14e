#include "agent/operations/tensor_lists.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace memopt::agent {
namespace {

// Elements of a tensor that a thread block works on.
constexpr std::uint64_t kChunk = 65536;
constexpr std::uint32_t kMostLists = 5;

// How much room there is, by the number of lists: for devices whose kernels take 32 KiB of parameters seven times as
// much as for others.
struct Room {
  std::array<std::uint32_t, kMostLists> tensors;
  std::array<std::uint32_t, kMostLists> tensors_with_scalars;
  std::array<std::uint32_t, 2> tensors_with_complex_doubles;  // of one and two lists; more are as above
  std::uint32_t blocks;
  std::uint32_t index_bytes;
};
constexpr Room kSmall{{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, {72, 60}, 320, 1};
constexpr Room kLarge{{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, {504, 420}, 2240, 2};

enum class Kind { kPlain, kScalars, kSteps };

bool skip(std::string_view& text, std::string_view what) noexcept {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(what.size());
  return true;
}

constexpr std::uint32_t align(std::uint32_t bytes, std::uint32_t to) noexcept { return (bytes + to - 1) / to * to; }

// The structure with so many tensors and scalars of so many bytes; its size goes to `bytes`.
TensorLists lay_out(Kind kind, std::uint32_t lists, std::uint32_t tensors, std::uint32_t steps, std::uint32_t scalar,
                    const Room& room, std::uint32_t* bytes) noexcept {
  TensorLists made;
  made.lists = lists;
  made.tensors = tensors;
  made.blocks = room.blocks;
  made.index_bytes = room.index_bytes;
  made.elements = lists * tensors * 8;
  std::uint32_t end = made.elements + tensors * 8;
  if (kind == Kind::kSteps) {
    made.steps = end;
    end += steps * 8;
  }
  // Not more than the 8 that the whole has: scalars of 16 bytes are two doubles.
  if (kind == Kind::kScalars) end = align(end, scalar < 8 ? scalar : 8) + tensors * scalar;
  made.tensor_of_block = align(end, room.index_bytes);
  made.chunk_of_block = align(made.tensor_of_block + room.blocks * room.index_bytes, 4);
  end = made.chunk_of_block + room.blocks * 4;
  // Which of the program's tensors comes first here.
  if (kind != Kind::kScalars) end += 4;
  *bytes = align(end, 8);
  return made;
}

// `scalar`: bytes of one, of a structure that has them.
std::optional<TensorLists> of_size(Kind kind, std::uint32_t lists, std::uint32_t scalar, std::uint32_t wanted,
                                   const Room& room) noexcept {
  const std::uint32_t with_scalars = room.tensors_with_scalars[lists - 1];
  std::uint32_t tensors = kind == Kind::kScalars ? with_scalars : room.tensors[lists - 1];
  if (scalar == 16 && lists <= room.tensors_with_complex_doubles.size()) {
    tensors = room.tensors_with_complex_doubles[lists - 1];
  }
  std::uint32_t bytes = 0;
  const TensorLists made = lay_out(kind, lists, tensors, with_scalars, scalar, room, &bytes);
  return bytes == wanted ? std::optional(made) : std::nullopt;
}

// Bytes of the type that the mangled name goes on with; 0: none that PyTorch has scalars of.
std::uint32_t skip_scalar(std::string_view& text) noexcept {
  if (skip(text, "N3c107complexIfEE")) return 8;
  if (skip(text, "N3c107complexIdEE")) return 16;
  if (text.empty()) return 0;
  const char type = text.front();
  text.remove_prefix(1);
  switch (type) {
    case 'a':
    case 'b':
    case 'h':
      return 1;
    case 's':
    case 't':
      return 2;
    case 'f':
    case 'i':
    case 'j':
      return 4;
    case 'd':
    case 'l':
    case 'm':
      return 8;
    default:
      return 0;
  }
}

template <typename T>
T load(const void* structure, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof(value));
  return value;
}

}  // namespace

// For example _ZN2at6native…25multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEENS1_….
std::optional<TensorLists> tensor_lists_of(std::string_view kernel, std::uint32_t first_parameter_bytes) noexcept {
  constexpr std::string_view kNamespace = "_ZN2at6native", kKernel = "25multi_tensor_apply_kernelI";
  if (!kernel.starts_with(kNamespace)) return std::nullopt;
  const std::size_t found = kernel.find(kKernel);
  if (found == std::string_view::npos) return std::nullopt;
  std::string_view rest = kernel.substr(found + kKernel.size());
  // The namespace that both are in: NS1_.
  if (!skip(rest, "NS")) return std::nullopt;
  rest.remove_prefix(std::min(rest.find('_') + 1, rest.size()));
  Kind kind;
  std::uint32_t scalar = 0;
  if (skip(rest, "18TensorListMetadataI")) {
    kind = Kind::kPlain;
  } else if (skip(rest, "28TensorListScalarListMetadataI")) {
    kind = Kind::kScalars;
    scalar = skip_scalar(rest);
    if (scalar == 0) return std::nullopt;
  } else if (skip(rest, "32FusedOptimizerTensorListMetadataI")) {
    kind = Kind::kSteps;
  } else {
    return std::nullopt;
  }
  if (!skip(rest, "Li") || rest.size() < 2 || rest[0] < '1' || rest[0] > '0' + static_cast<int>(kMostLists) ||
      rest[1] != 'E') {
    return std::nullopt;
  }
  const auto lists = static_cast<std::uint32_t>(rest[0] - '0');
  for (const Room* room : {&kSmall, &kLarge}) {
    if (const auto made = of_size(kind, lists, scalar, first_parameter_bytes, *room)) return made;
  }
  return std::nullopt;
}

namespace {

// A number of a mangled name: Li128E. 0: there is none, or one that is not of a cat kernel.
std::uint32_t skip_number(std::string_view& text) noexcept {
  if (!skip(text, "Li")) return 0;
  std::uint32_t number = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9' && number < 1000) {
    number = number * 10 + static_cast<std::uint32_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return skip(text, "E") ? number : 0;
}

}  // namespace

// For example _ZN2at6native…35CatArrayBatchedCopy_alignedK_contigINS1_10OpaqueTypeILj4EEEjLi1ELi128ELi1ELi16EEEvPT_…:
// the type of an element, that of an index, the number of dimensions, how many inputs there is room for, and strides.
std::optional<CatInputs> cat_inputs_of(std::string_view kernel, std::uint32_t second_parameter_bytes) noexcept {
  constexpr std::string_view kNamespace = "_ZN2at6native", kKernel = "CatArrayBatchedCopy";
  constexpr std::string_view kStructure = "25CatArrInputTensorMetadataI";
  constexpr std::uint32_t kMostDimensions = 4;
  if (!kernel.starts_with(kNamespace) || kernel.find(kStructure) == std::string_view::npos) return std::nullopt;
  const std::size_t found = kernel.find(kKernel);
  if (found == std::string_view::npos) return std::nullopt;
  // Indices of four bytes: 32-bit indexing is what these kernels are for.
  const std::size_t index = kernel.find("jLi", found);
  if (index == std::string_view::npos) return std::nullopt;
  std::string_view rest = kernel.substr(index + 1);
  const std::uint32_t dimensions = skip_number(rest);
  const std::uint32_t inputs = skip_number(rest);
  const std::uint32_t strides = skip_number(rest);
  if (dimensions == 0 || dimensions > kMostDimensions || inputs == 0 || strides == 0) return std::nullopt;
  // Sizes and strides of each input, or of none; whether each is contiguous comes before, in a byte.
  const std::uint32_t bytes = align(align(inputs * (8 + 3 * 4 + 1), 4) + strides * 2 * kMostDimensions * 4, 8);
  return bytes == second_parameter_bytes ? std::optional(CatInputs{inputs}) : std::nullopt;
}

bool are_inputs(const CatInputs& inputs, const void* structure, std::uint32_t count) noexcept {
  if (structure == nullptr || count == 0 || count > inputs.inputs) return false;
  const std::size_t offsets = std::size_t{8} * inputs.inputs;
  const std::size_t sizes = offsets + std::size_t{4} * inputs.inputs;
  const std::size_t elements = sizes + std::size_t{4} * inputs.inputs;
  std::uint32_t others = 0;  // what each has in all other dimensions together
  for (std::size_t i = 0; i < count; ++i) {
    const auto offset = load<std::uint32_t>(structure, offsets + 4 * i);
    const auto size = load<std::uint32_t>(structure, sizes + 4 * i);
    const auto number = load<std::uint32_t>(structure, elements + 4 * i);
    if ((size == 0) != (number == 0)) return false;
    // Each input begins where the one before ends; other launches may have had those before the first.
    if (i + 1 < count && load<std::uint32_t>(structure, offsets + 4 * (i + 1)) != offset + size) return false;
    if (size == 0) continue;
    if (number % size != 0 || (others != 0 && number / size != others)) return false;
    others = number / size;
  }
  return others != 0;
}

std::uint32_t tensors_in_use(const TensorLists& lists, const void* structure, std::uint32_t thread_blocks) noexcept {
  if (structure == nullptr || thread_blocks == 0 || thread_blocks > lists.blocks) return 0;
  std::uint32_t tensor = 0;
  std::uint64_t chunks = 0;  // of this tensor
  std::uint64_t next = 0;    // chunk of it
  for (std::uint32_t i = 0; i < thread_blocks; ++i) {
    const std::uint32_t of = lists.index_bytes == 1 ? load<std::uint8_t>(structure, lists.tensor_of_block + i)
                                                    : load<std::uint16_t>(structure, lists.tensor_of_block + 2 * i);
    const auto chunk = static_cast<std::uint64_t>(load<std::int32_t>(structure, lists.chunk_of_block + 4 * i));
    if (i == 0 || of != tensor) {
      // The first tensor may have been begun by the launch before, each other one begins when the last has ended.
      const bool follows = i == 0 ? of == 0 : of == tensor + 1 && next == chunks && chunk == 0;
      if (!follows || of >= lists.tensors) return 0;
      tensor = of;
      const auto elements = load<std::uint64_t>(structure, lists.elements + 8 * tensor);
      if (elements == 0 || elements > UINT64_MAX - kChunk) return 0;
      chunks = (elements + kChunk - 1) / kChunk;
      next = chunk;
    }
    if (chunk != next || chunk >= chunks) return 0;
    next = chunk + 1;
  }
  return tensor + 1;
}

}  // namespace memopt::agent
