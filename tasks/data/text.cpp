#include "tasks/data/text.h"

#include <algorithm>

namespace reel {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;  // decoded, it takes four times as many bytes

/// The length of the character at the start of the bytes, and its code point in `code`. Returns 0 if the bytes are not
/// UTF-8, which includes overlong forms, surrogates and values beyond the last code point.
std::size_t decode(std::string_view bytes, char32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || bytes.size() < length) return 0;
  code = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < least[length] || surrogate || code > 0x10FFFF ? 0 : length;
}

/// Applies a function to each line of a text.
std::u32string by_line(const std::u32string& text, const auto& change) {
  std::u32string out;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(U'\n', first), text.size());
    out += change(text.substr(first, end - first)) + U'\n';
    first = end + 1;
  }
  return out;
}

std::u32string stripped(const std::u32string& line) {
  const std::size_t first = line.find_first_not_of(U' ');
  return first == std::u32string::npos ? U"" : line.substr(first, line.find_last_not_of(U' ') - first + 1);
}

/// "a b _ c" becomes "ab c".
std::u32string without_fields(const std::u32string& line) {
  std::u32string out;
  for (const char32_t c : line)
    if (c != U' ') out += c == U'_' ? U' ' : c;
  return out;
}

}  // namespace

std::u32string characters(const std::string& set, const std::string& name, std::string_view bytes,
                          const std::string& help) {
  std::u32string text;
  text.reserve(static_cast<std::size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) >> 6 != 2; })));
  for (std::size_t at = 0; at < bytes.size();) {
    char32_t code = 0;
    const std::size_t length = decode(bytes.substr(at), code);
    if (length == 0)
      throw DataError(set, name,
                      fmt::format("is not UTF-8 text: byte {} is {:#04x}", at, static_cast<unsigned char>(bytes[at])),
                      help);
    text += code;
    at += length;
  }
  return text;
}

bool is_utf8(std::string_view bytes) {
  char32_t code = 0;
  for (std::size_t length = 0; !bytes.empty(); bytes.remove_prefix(length))
    if (length = decode(bytes, code); length == 0) return false;
  return true;
}

std::string utf8(const std::u32string& text) {
  std::string bytes;
  for (const char32_t c : text) {
    const auto put = [&](unsigned lead, int shift) {
      bytes += static_cast<char>(lead | c >> shift);
      for (shift -= 6; shift >= 0; shift -= 6) bytes += static_cast<char>(0x80U | (c >> shift & 0x3FU));
    };
    c < 0x80 ? put(0, 0) : c < 0x800 ? put(0xC0, 6) : c < 0x10000 ? put(0xE0, 12) : put(0xF0, 18);
  }
  return bytes;
}

std::u32string ptb_text(const std::string& name, std::string_view bytes, bool fields, bool strip) {
  std::u32string text = characters("ptb", name, bytes);
  if (fields) text = by_line(text, without_fields);
  return strip ? by_line(text, stripped) : text;
}

Corpus read_ptb(const std::string& data, bool strip) {
  const std::filesystem::path folder = std::filesystem::path(data) / "ptb";
  const bool fields =
      !std::filesystem::exists(folder / "ptb.train.txt") && std::filesystem::exists(folder / "ptb.char.train.txt");
  Corpus corpus;
  for (const auto& [part, text] :
       {std::pair{"train", &corpus.train}, {"valid", &corpus.valid}, {"test", &corpus.test}}) {
    const std::string name = fmt::format("ptb.{}{}.txt", fields ? "char." : "", part);
    *text = ptb_text(name, read_data("ptb", name, data_file(data, "ptb", name), most_bytes), fields, strip);
  }
  return corpus;
}

Corpus read_text(const std::string& path, bool keep_mark) {
  constexpr const char* help = "Hint: --text FILE";
  if (std::error_code error; !std::filesystem::is_regular_file(path, error))
    throw DataError("text", path, "is not there, or is no file", help);
  std::u32string all =
      characters("text", path, read_data("text", path, path, most_bytes, help), "Hint: save it as UTF-8");
  if (!keep_mark && all.starts_with(byte_order_mark) && all.find(byte_order_mark, 1) == all.npos) all.erase(0, 1);
  const std::size_t part = all.size() / 20, train = all.size() - 2 * part;
  return {all.substr(0, train), all.substr(train, part), all.substr(train + part)};
}

}  // namespace reel
