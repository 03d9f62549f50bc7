// Event files, as TensorBoard reads them: records, each a message of the protocol buffer "Event" with its checksum.
// Only what Reel writes of that format is here (docs/decisions.md says why it is written without a library).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reel {

/// Numbers in buckets: bucket i holds those in (limits[i - 1], limits[i]].
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits, counts;
};

/// At most 30 buckets of the same width; values that are not finite are left out.
Histogram histogram(std::span<const double> values);

/// A value of an event: a number, a histogram or a picture, under a tag.
std::string scalar_value(const std::string& tag, double value);
std::string histogram_value(const std::string& tag, const Histogram& histogram);
/// `png`: the bytes of the file; empty if they are none of PNG.
std::string image_value(const std::string& tag, std::string_view png);

/// Which seconds the name of the last event file in a folder says; none if there is no such file.
std::optional<double> last_event_file(const std::string& folder);

/// A file that grows by an event at a time, each on disk when its call returns.
class EventFile {
 public:
  /// Of a new name in the folder, which is made. The file is made with its first event. `first_step`: events of earlier
  /// files from this step on are no longer part of the run.
  EventFile(std::string folder, std::int64_t first_step);
  /// Values from above, at a step. Throws Error if they cannot be written, and leaves a file of whole events.
  void add(std::int64_t step, const std::vector<std::string>& values);

 private:
  void append(std::string_view records);

  std::string folder_, path_;
  std::int64_t first_step_;
};

/// The checksum CRC-32C (Castagnoli) of bytes.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace reel
