// What a user chooses about a picture: its size on paper and its font.
#pragma once
#include <string>

namespace reel {

struct PictureStyle {
  double width = 0, height = 0;  // in cm; 0: the picture's own size
  std::string font = {};         // a family: "Times New Roman"; empty: sans serif
  double points = 0;             // size of the text; 0: 10.5, or 8 up to a width of 12 cm, as in a column of a paper
};

/// The size of the text in points, whether it is given or not.
double points_of(const PictureStyle& style);

/// True if it is to fit a column of a paper.
bool narrow(const PictureStyle& style);

/// From the values of two options: `size` is WIDTHxHEIGHT in cm, as 8.4x5.2; `font` is a family, a size in points, or
/// both, as Times,9. Empty values keep the defaults. Throws Usage that names the option, `size_option` or
/// `font_option`.
PictureStyle picture_style(const std::string& size_option, const std::string& size, const std::string& font_option,
                           const std::string& font);

}  // namespace reel
