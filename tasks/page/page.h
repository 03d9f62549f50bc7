// Pages for a browser: data as JSON, and the script that shows it, which draws curves by uPlot. A page is one file and
// loads nothing.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace reel::page {

/// The page of this data. Its texts may be anything: they are shown as text, never read as HTML.
std::string html(const std::string& title, const nlohmann::ordered_json& data);

/// Bytes as an address that a page can hold in place of a file.
std::string data_uri(std::string_view type, std::string_view bytes);

/// A path as a page writes it in an address.
std::string url_path(const std::string& path);

/// A number in six digits, which are all that can be seen; null if it is not finite.
nlohmann::ordered_json number(double value);

}  // namespace reel::page
