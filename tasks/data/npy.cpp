// .npy: six bytes of magic, a version, the length of a header, the header (a Python dict as text), then the elements.
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "engine/core/parse.h"
#include "tasks/data/arrays.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_axes = 8;
static_assert(std::endian::native == std::endian::little);

template <class T>
void convert(const char* from, std::vector<double>& to) {
  for (double& value : to) {
    T x;
    std::memcpy(&x, from, sizeof x);
    value = static_cast<double>(x);
    from += sizeof x;
  }
}

/// IEEE half precision.
void convert_half(const char* from, std::vector<double>& to) {
  for (double& value : to) {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    from += sizeof bits;
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    value = exponent == 31  ? (fraction ? missing_value : std::numeric_limits<double>::infinity())
            : exponent == 0 ? std::ldexp(fraction, -24)
                            : std::ldexp(1024 + fraction, exponent - 25);
    if (bits >> 15) value = -value;
  }
}

struct NpyType {
  std::string_view descr;
  std::size_t bytes;
  bool whole;
  void (*convert)(const char*, std::vector<double>&);
};

constexpr NpyType kinds[] = {
    {"<f2", 2, false, convert_half},          {"<f4", 4, false, convert<float>},
    {"<f8", 8, false, convert<double>},       {"|b1", 1, true, convert<std::uint8_t>},
    {"|i1", 1, true, convert<std::int8_t>},   {"<i2", 2, true, convert<std::int16_t>},
    {"<i4", 4, true, convert<std::int32_t>},  {"<i8", 8, true, convert<std::int64_t>},
    {"|u1", 1, true, convert<std::uint8_t>},  {"<u2", 2, true, convert<std::uint16_t>},
    {"<u4", 4, true, convert<std::uint32_t>}, {"<u8", 8, true, convert<std::uint64_t>},
};

/// The header's dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Header {
 public:
  explicit Header(std::string_view text) : text_(text) {}

  std::string_view descr;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> shape;

  /// False if it is not such a dict.
  bool read() {
    if (!take('{')) return false;
    while (!take('}')) {
      std::string_view key;
      if (!quoted(key) || !take(':')) return false;
      if (key == "descr" ? !quoted(descr) : key == "fortran_order" ? !boolean() : key == "shape" ? !extents() : true)
        return false;
      if (!take(',') && !ahead('}')) return false;
    }
    skip();
    return text_.empty() && !descr.empty() && fortran && shape;
  }

 private:
  void skip() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  bool ahead(char c) {
    skip();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    if (!ahead(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool quoted(std::string_view& out) {
    if (!ahead('\'') && !ahead('"')) return false;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == text_.npos) return false;
    out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool boolean() {
    skip();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      fortran = value;
      return true;
    }
    return false;
  }
  bool extents() {
    if (!take('(')) return false;
    shape.emplace();
    while (!take(')')) {
      skip();
      const std::size_t size = std::min(text_.find_first_not_of("0123456789"), text_.size());
      const auto n = parse<std::int64_t>(text_.substr(0, size));
      if (!n || shape->size() == most_axes) return false;
      shape->push_back(*n);
      text_.remove_prefix(size);
      if (!take(',') && !ahead(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

}  // namespace

Array parse_npy(const std::string& path, std::string_view bytes) {
  const auto fail = [&](const std::string& what) { throw FileError(path + ": " + what); };
  if (!bytes.starts_with(magic) || bytes.size() < 8)
    fail("this is not an .npy file: it does not start with \\x93NUMPY");
  const auto version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) fail(fmt::format("version 1, 2 or 3 of .npy is expected, got {}", version));
  const std::size_t digits = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (bytes.size() < 8 + digits) fail("the file is cut off in its header");
  std::memcpy(&length, bytes.data() + 8, digits);
  if (length > bytes.size() - 8 - digits) fail("the file is cut off in its header");
  Header header(bytes.substr(8 + digits, length));
  if (!header.read()) fail("the header is damaged");
  bytes.remove_prefix(8 + digits + length);

  const NpyType* kind = nullptr;
  std::vector<std::string_view> known;
  for (const NpyType& k : kinds) {
    if (k.descr == header.descr ||
        (k.bytes == 1 && header.descr.size() == 3 && header.descr.substr(1) == k.descr.substr(1)))
      kind = &k;
    known.push_back(k.descr);
  }
  if (!kind && header.descr.find_first_of("US") != header.descr.npos)
    fail(fmt::format(
        "numbers are expected, got text (\"{}\"). Hint: numpy.unique(y, return_inverse=True) numbers the classes",
        header.descr));
  if (!kind)
    fail(fmt::format("elements of one of {} are expected, got \"{}\". Hint: x.astype(\"float32\") before numpy.save",
                     fmt::join(known, ", "), header.descr));
  Array array{.shape = *header.shape, .whole = kind->whole};
  if (*header.fortran && array.shape.size() > 1)
    fail("the array is in Fortran order. Hint: numpy.ascontiguousarray(x) before numpy.save");
  std::size_t elements = 1;
  bool overflow = false;
  for (const std::int64_t n : array.shape)
    overflow = __builtin_mul_overflow(elements, static_cast<std::size_t>(n), &elements) || overflow;
  if (overflow || elements > bytes.size() / kind->bytes || elements * kind->bytes != bytes.size())
    fail(fmt::format("{} elements of {} bytes are expected by the header, got {} bytes", fmt::join(array.shape, " x "),
                     kind->bytes, bytes.size()));
  if (elements > most_values) fail(fmt::format("{} values or fewer are expected, got {}", most_values, elements));
  array.values.resize(elements);
  kind->convert(bytes.data(), array.values);
  return array;
}

}  // namespace reel
