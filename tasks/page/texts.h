// Files that pages contain, as text in the program (CMake's reel_texts).
#pragma once
#include <string_view>

namespace reel::page {

extern const std::string_view uplot_js, uplot_css, uplot_license, page_css, charts_js, tables_js, page_js;

}  // namespace reel::page
