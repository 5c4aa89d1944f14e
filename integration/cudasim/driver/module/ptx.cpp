// PTX: the declarations at its top level. Bodies are skipped (but for their shared memory); instructions mean nothing
// here. Grammar: "Parallel Thread Execution ISA", chapters 4 and 5 and 11.
#include <algorithm>
#include <charconv>
#include <optional>

#include "module/bytes.h"
#include "module/ptx_tokens.h"

namespace cudasim {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 36;

std::optional<std::uint64_t> size_of_type(std::string_view type) {
  for (const auto& [name, size] : {std::pair<std::string_view, std::uint64_t>{".pred", 1},
                                   {".b8", 1},
                                   {".u8", 1},
                                   {".s8", 1},
                                   {".e4m3", 1},
                                   {".e5m2", 1},
                                   {".b16", 2},
                                   {".u16", 2},
                                   {".s16", 2},
                                   {".f16", 2},
                                   {".bf16", 2},
                                   {".b32", 4},
                                   {".u32", 4},
                                   {".s32", 4},
                                   {".f32", 4},
                                   {".f16x2", 4},
                                   {".bf16x2", 4},
                                   {".b64", 8},
                                   {".u64", 8},
                                   {".s64", 8},
                                   {".f64", 8},
                                   {".b128", 16},
                                   {".texref", 8},
                                   {".samplerref", 8},
                                   {".surfref", 8}}) {
    if (type == name) return size;
  }
  return std::nullopt;
}

// One variable or parameter as declared.
struct Declaration {
  std::string_view name;
  std::uint64_t element = 0;  // bytes
  std::uint64_t alignment = 0;
  std::uint64_t size = 0;  // 0 for an unsized array
  bool managed = false;
};

class Ptx {
 public:
  explicit Ptx(std::string_view text) : tokens_(text) {}

  Image read() {
    image_.form = Image::Form::kPtx;
    if (!tokens_.take_if(".version"))
      throw ImageError(CUDA_ERROR_INVALID_IMAGE, "image: text, but not PTX (no .version at its begin)");
    tokens_.next();
    while (!tokens_.at_end()) read_top_level();
    if (image_.arch == 0) fail("no .target");
    return std::move(image_);
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw ImageError(CUDA_ERROR_INVALID_PTX, "PTX line " + std::to_string(tokens_.line()) + ": " + text);
  }

  void expect(std::string_view word) {
    if (!tokens_.take_if(word))
      fail("expected '" + std::string(word) + "', found '" + std::string(tokens_.current().substr(0, 40)) + "'");
  }

  std::uint64_t take_number() {
    const std::string_view token = tokens_.take();
    const auto value = integer(token);
    if (!value) fail("expected a number, found '" + std::string(token.substr(0, 40)) + "'");
    return *value;
  }

  // Decimal, 0x…, 0b…, octal 0…, with an optional U.
  static std::optional<std::uint64_t> integer(std::string_view token) {
    int base = 10;
    if (token.ends_with('U')) token.remove_suffix(1);
    if (token.starts_with("0x") || token.starts_with("0X")) {
      base = 16;
      token.remove_prefix(2);
    } else if (token.starts_with("0b") || token.starts_with("0B")) {
      base = 2;
      token.remove_prefix(2);
    } else if (token.size() > 1 && token[0] == '0') {
      base = 8;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
    if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
    return value;
  }

  void read_top_level() {
    const std::string_view word = tokens_.current();
    if (word == ".target") {
      read_target();
    } else if (word == ".entry") {
      read_entry();
    } else if (word == ".global" || word == ".const") {
      read_variables();
    } else if (word == ".func") {
      skip_function();
    } else if (word == "{") {
      skip_block(nullptr);
    } else if (word == ".extern") {
      tokens_.next();
      skip_extern();
    } else {
      tokens_.next();  // .visible, .weak, .address_size 64, .file …, .section name, ;
    }
  }

  void read_target() {
    tokens_.next();
    const std::string_view token = tokens_.take();
    std::string_view number = token;
    if (!number.starts_with("sm_")) fail("unknown target '" + std::string(token.substr(0, 40)) + "'");
    number.remove_prefix(3);
    if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) {
      image_.arch_suffix = number.back();
      number.remove_suffix(1);
    }
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), image_.arch);
    if (error != std::errc() || end != number.data() + number.size() || image_.arch <= 0)
      fail("unknown target '" + std::string(token.substr(0, 40)) + "'");
  }

  // What another module defines is not ours. A function's prototype or a variable ends at its semicolon.
  void skip_extern() {
    while (!tokens_.at_end() && !tokens_.is(";")) tokens_.next();
  }

  // From "{" to the matching "}". Shared memory declared inside is added to `shared_bytes`.
  void skip_block(std::uint64_t* shared_bytes) {
    std::size_t depth = 0;
    do {
      if (tokens_.at_end()) fail("a '{' without its '}'");
      if (shared_bytes != nullptr && tokens_.is(".shared")) {
        tokens_.next();
        // Instructions carry the word as a suffix (st.shared.u32), so a word of its own begins a declaration.
        add_aligned(*shared_bytes, read_declaration());
        continue;
      }
      if (tokens_.is("{")) ++depth;
      if (tokens_.is("}")) --depth;
      tokens_.next();
    } while (depth != 0);
  }

  static void add_aligned(std::uint64_t& end, const Declaration& d) {
    end = (end + d.alignment - 1) / d.alignment * d.alignment;
    end += d.size;
  }

  void skip_function() {
    while (!tokens_.at_end() && !tokens_.is("{") && !tokens_.is(";")) tokens_.next();
    if (tokens_.is("{")) skip_block(nullptr);
  }

  // After the state space: [.attribute(.managed)] [.align N] [.v4] .type [.ptr …] name [dimensions].
  Declaration read_declaration() {
    Declaration d;
    std::uint64_t vector = 1;
    std::uint64_t declared_alignment = 0;
    while (tokens_.current().starts_with('.')) {
      const std::string_view word = tokens_.take();
      if (word == ".align") {
        const std::uint64_t n = take_number();
        if (n == 0 || n > 4096 || (n & (n - 1)) != 0) fail(".align " + std::to_string(n));
        if (d.element == 0 || declared_alignment == 0) declared_alignment = n;
      } else if (word == ".ptr") {
        read_pointee();
      } else if (word == ".attribute") {
        expect("(");
        while (!tokens_.at_end() && !tokens_.is(")")) d.managed |= tokens_.take() == ".managed";
        expect(")");
      } else if (word == ".v2" || word == ".v4" || word == ".v8") {
        vector = static_cast<std::uint64_t>(word[2] - '0');
      } else if (const auto size = size_of_type(word)) {
        d.element = *size;
      } else {
        fail("unknown type or attribute '" + std::string(word.substr(0, 40)) + "'");
      }
    }
    if (d.element == 0) fail("a declaration without a type");
    d.name = tokens_.take();
    if (d.name.empty() || std::string_view("(){}[];,=<>\"").find(d.name[0]) != std::string_view::npos)
      fail("a declaration without a name");
    read_shape(d, vector, declared_alignment);
    return d;
  }

  // Of a pointer parameter: what it points at; its .align is the pointee's.
  void read_pointee() {
    for (const std::string_view space : {".global", ".const", ".shared", ".local"}) tokens_.take_if(space);
    if (tokens_.take_if(".align")) take_number();
  }

  void read_shape(Declaration& d, std::uint64_t vector, std::uint64_t declared_alignment) {
    d.size = d.element * vector;
    d.alignment = declared_alignment != 0 ? declared_alignment : d.size;
    if (tokens_.take_if("<")) fail("parameterised names are not supported");
    while (tokens_.take_if("[")) {
      if (tokens_.take_if("]")) {
        d.size = 0;
        continue;
      }
      const std::uint64_t count = take_number();
      expect("]");
      if (d.size != 0 && count > kMaxVariableBytes / d.size) fail(std::string(d.name) + " is too large");
      d.size *= count;
    }
  }

  void read_entry() {
    tokens_.next();
    KernelImage kernel;
    kernel.name = tokens_.take();
    if (kernel.name.empty() || kernel.name[0] == '(' || kernel.name[0] == '{') fail(".entry without a name");
    if (tokens_.take_if("(")) read_parameters(kernel);
    while (!tokens_.is("{") && !tokens_.is(";")) {
      if (tokens_.at_end()) fail("kernel " + kernel.name + " has no body");
      const std::string_view word = tokens_.take();
      if (word == ".maxntid" || word == ".reqntid") read_max_threads(kernel);
      if (word == ".pragma") {
        tokens_.next();
        expect(";");
      }
    }
    if (tokens_.take_if(";")) return;  // declared only
    std::uint64_t shared = 0;
    skip_block(&shared);
    kernel.static_shared_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, UINT32_MAX));
    image_.kernels.push_back(std::move(kernel));
  }

  void read_parameters(KernelImage& kernel) {
    std::uint64_t end = 0;
    while (!tokens_.take_if(")")) {
      if (!kernel.parameters.empty()) expect(",");
      expect(".param");
      const Declaration d = read_declaration();
      const std::uint64_t before = end;
      add_aligned(end, d);
      if (end > 65536 || end < before) fail("kernel " + kernel.name + " has too many bytes of parameters");
      kernel.parameters.push_back({static_cast<std::uint32_t>(end - d.size), static_cast<std::uint32_t>(d.size)});
    }
  }

  void read_max_threads(KernelImage& kernel) {
    std::uint32_t threads = 1;
    do {
      threads = std::clamp(threads * static_cast<std::uint32_t>(std::clamp<std::uint64_t>(take_number(), 1, 1024)), 1u,
                           1024u);
    } while (tokens_.take_if(","));
    kernel.max_threads = threads;
  }

  void read_variables() {
    const bool constant = tokens_.take() == ".const";
    // .const[bank] of old.
    if (tokens_.take_if("[")) {
      tokens_.next();
      expect("]");
    }
    const Declaration d = read_declaration();
    GlobalImage variable{std::string(d.name), d.size, {}, constant, d.managed};
    if (tokens_.take_if("=")) read_initial(variable, d);
    image_.globals.push_back(std::move(variable));
    if (tokens_.is(",")) fail("several variables in one declaration are not supported");
    expect(";");
  }

  // Values in order, braces flat. Addresses of other variables stay zero: nobody runs the code that would follow them.
  void read_initial(GlobalImage& variable, const Declaration& d) {
    if (d.size == 0) fail("variable " + variable.name + " has no size but an initial value");
    std::uint64_t at = 0;
    bool negative = false;
    int depth = 0;
    while (!tokens_.is(";")) {
      if (tokens_.at_end()) fail("variable " + variable.name + ": its initial value has no end");
      if (depth == 0 && tokens_.is(",")) return;
      const std::string_view token = tokens_.take();
      if (token == "{") ++depth;
      if (token == "}") --depth;
      if (token == "-") negative = !negative;
      if (token == "{" || token == "}" || token == "-") continue;
      if (token == ",") {
        at += d.element;
        negative = false;
        continue;
      }
      const auto value = initial_value(token, d.element, negative);
      if (!value || at > d.size - d.element) continue;
      variable.initial.resize(at + d.element);
      std::memcpy(&variable.initial[at], &*value, std::min<std::size_t>(d.element, sizeof *value));
    }
  }

  static std::optional<std::uint64_t> initial_value(std::string_view token, std::uint64_t element, bool negative) {
    std::uint64_t bits = 0;
    if (token.size() > 2 && token[0] == '0' && std::string_view("fFdD").find(token[1]) != std::string_view::npos) {
      const auto [end, error] = std::from_chars(token.data() + 2, token.data() + token.size(), bits, 16);
      if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
      return bits;
    }
    if (const auto value = integer(token)) return negative ? 0 - *value : *value;
    double number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
    if (negative) number = -number;
    if (element == 4) {
      const float single = static_cast<float>(number);
      std::memcpy(&bits, &single, sizeof single);
    } else if (element == 8) {
      std::memcpy(&bits, &number, sizeof number);
    }
    return bits;
  }

  PtxTokens tokens_;
  Image image_;
};

}  // namespace

Image read_ptx(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Ptx(text.substr(0, text.find('\0'))).read();
}

}  // namespace cudasim
