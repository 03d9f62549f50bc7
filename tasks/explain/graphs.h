// Graphs drawn by Graphviz, if it is installed.
#pragma once
#include <string>

namespace reel::explain {

struct Drawn {
  std::string svg;      // an <svg> element to put into a page
  std::string problem;  // why there is none
};

/// Draws text in the language of Graphviz by its program dot, which has ten seconds for it.
Drawn draw_graph(const std::string& dot);

/// The text for a page of HTML or XML.
std::string escaped(const std::string& text);

}  // namespace reel::explain
