#include "tasks/page/page.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "tasks/explain/graphs.h"
#include "tasks/page/texts.h"

namespace reel::page {

namespace {

/// JSON within a script element, where no "</script>" may end it.
std::string json_text(const nlohmann::ordered_json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) c == '<' ? void(out += "\\u003c") : out.push_back(c);
  return out;
}

}  // namespace

std::string html(const std::string& title, const nlohmann::ordered_json& data) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\"><title>{}</title>\n",
      explain::escaped(title));
  out += fmt::format("<style>{}\n{}</style></head>\n<body>\n<noscript>This page needs JavaScript.</noscript>\n",
                     uplot_css, page_css);
  out += "<script type=\"application/json\" id=\"data\">" + json_text(data) + "</script>\n";
  out += fmt::format("<!-- uPlot:\n{}-->\n", uplot_license);
  for (const std::string_view script : {uplot_js, charts_js, tables_js, page_js})
    out += fmt::format("<script>{}</script>\n", script);
  return out + "</body></html>\n";
}

std::string data_uri(std::string_view type, std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = fmt::format("data:{};base64,", type);
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) three = (three << 8) | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? digits[(three >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

std::string url_path(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

nlohmann::ordered_json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

}  // namespace reel::page
