// Text as a row of characters (Unicode code points), and corpora of it in parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace reel {

/// The characters of UTF-8 bytes. Throws DataError, which names data set and file, with the place of the first byte
/// that is not UTF-8.
std::u32string characters(const std::string& set, const std::string& name, std::string_view bytes);
/// The same text as UTF-8 bytes.
std::string utf8(const std::u32string& text);

/// A corpus cut into what is trained on, validated on and tested on.
struct Corpus {
  std::u32string train, valid, test;
};

/// The Penn Treebank from DATA/ptb: ptb.{train,valid,test}.txt, words as Mikolov prepared them, or else the characters
/// ptb.char.{train,valid,test}.txt, one a field, "_" for a space. `strip` takes the spaces from both ends of each line,
/// as the latter files have it. Throws DataError when a file is missing or not UTF-8.
Corpus read_ptb(const std::string& data, bool strip);
/// One of these files from its bytes: `fields` for the latter kind, where characters are apart.
std::u32string ptb_text(const std::string& name, std::string_view bytes, bool fields, bool strip);
/// Any text file; its last 5 % are for the test, the 5 % before to validate on. Throws DataError when it cannot be read
/// or is not UTF-8.
Corpus read_text(const std::string& path);

}  // namespace reel
