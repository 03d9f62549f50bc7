// Text as a sequence of characters (Unicode code points), and corpora split into parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tasks/data/data_error.h"

namespace reel {

/// Decodes UTF-8. Throws DataError naming the data set, the file, and the position of the first invalid byte.
std::u32string characters(const std::string& set, const std::string& name, std::string_view bytes,
                          const std::string& help = data_help);
/// True if the bytes are UTF-8.
bool is_utf8(std::string_view bytes);
/// Encodes the text as UTF-8.
std::string utf8(const std::u32string& text);

constexpr char32_t byte_order_mark = 0xFEFF;

/// A corpus split into training, validation and test text.
struct Corpus {
  std::u32string train, valid, test;
};

/// The Penn Treebank from DATA/ptb: ptb.{train,valid,test}.txt, the words as Mikolov prepared them, or else the
/// characters in ptb.char.{train,valid,test}.txt, one per field, "_" for a space. `strip` removes the spaces at both
/// ends of each line, as in the character files. Throws DataError if a file is missing or not UTF-8.
Corpus read_ptb(const std::string& data, bool strip);
/// Parses one of these files from its bytes; `fields` for the character files.
std::u32string ptb_text(const std::string& name, std::string_view bytes, bool fields, bool strip);
/// Reads any text file; its last 5 % are the test set, the 5 % before that the validation set. Throws DataError if it
/// cannot be read or is not UTF-8. A byte order mark (U+FEFF) at the start is no character of the text, unless
/// `keep_mark`, or the text has another one: then the run of a text shows by its characters which it was.
Corpus read_text(const std::string& path, bool keep_mark = false);

}  // namespace reel
