#include "tasks/io/event_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/core/error.h"
#include "tasks/io/files.h"
#include "tasks/io/folder.h"

namespace reel {

namespace {

constexpr std::size_t most_buckets = 30;
constexpr std::string_view name_begin = "events.out.tfevents.";  // by which TensorBoard knows the files

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// The wire format of protocol buffers: a key of field number and kind, then the content. Numbers are little-endian.

template <class T>
std::string little_endian(T value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  return out + static_cast<char>(value);
}

std::string integer(int field, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}
std::string real(int field, double value) {
  return varint((static_cast<std::uint64_t>(field) << 3) | 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string single(int field, float value) {
  return varint((static_cast<std::uint64_t>(field) << 3) | 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string bytes(int field, std::string_view content) {
  return varint((static_cast<std::uint64_t>(field) << 3) | 2) + varint(content.size()) + std::string(content);
}
std::string reals(int field, const std::vector<double>& values) {
  std::string content;
  for (const double v : values) content += little_endian(std::bit_cast<std::uint64_t>(v));
  return bytes(field, content);
}

// Field numbers of Summary.Value, Summary.Image, HistogramProto, SessionLog and Event, from TensorBoard's .proto files.

std::string value(const std::string& tag, const std::string& content) { return bytes(1, bytes(1, tag) + content); }

std::string event(std::int64_t step, const std::string& content) { return real(1, now()) + integer(2, step) + content; }

/// A record: its length and its content, each with a checksum that is rotated and shifted ("masked").
std::string record(const std::string& content) {
  const auto masked = [](std::string_view text) {
    return little_endian<std::uint32_t>(std::rotr(crc32c(text), 15) + 0xA282EAD8u);
  };
  const std::string length = little_endian<std::uint64_t>(content.size());
  return length + masked(length) + content + masked(content);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      out[i] = i;
      for (int bit = 0; bit < 8; ++bit) out[i] = (out[i] >> 1) ^ (out[i] & 1 ? 0x82F63B78u : 0);
    }
    return out;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

Histogram histogram(std::span<const double> values) {
  Histogram out;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    out.min = out.count == 0 ? v : std::min(out.min, v);
    out.max = out.count == 0 ? v : std::max(out.max, v);
    ++out.count;
    out.sum += v;
    out.squares += v * v;
  }
  if (out.count == 0) return out;
  const std::size_t n = out.min < out.max ? most_buckets : 1;
  const double width = (out.max - out.min) / static_cast<double>(n);
  for (std::size_t i = 1; i < n; ++i) out.limits.push_back(out.min + static_cast<double>(i) * width);
  out.limits.push_back(out.max);
  out.counts.resize(n);
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const auto at = std::lower_bound(out.limits.begin(), out.limits.end(), v);
    out.counts[static_cast<std::size_t>(at - out.limits.begin())] += 1;
  }
  return out;
}

std::string scalar_value(const std::string& tag, double v) { return value(tag, single(2, static_cast<float>(v))); }

std::string histogram_value(const std::string& tag, const Histogram& h) {
  return value(tag, bytes(5, real(1, h.min) + real(2, h.max) + real(3, h.count) + real(4, h.sum) + real(5, h.squares) +
                                 reals(6, h.limits) + reals(7, h.counts)));
}

std::string image_value(const std::string& tag, std::string_view png) {
  if (png.size() < 24 || !png.starts_with("\x89PNG")) return "";
  const auto size_at = [&](std::size_t at) {  // big-endian, in the first chunk
    std::int64_t size = 0;
    for (std::size_t i = at; i < at + 4; ++i) size = (size << 8) | static_cast<unsigned char>(png[i]);
    return size;
  };
  return value(tag, bytes(4, integer(1, size_at(20)) + integer(2, size_at(16)) + integer(3, 3) + bytes(4, png)));
}

std::optional<double> last_event_file(const std::string& folder) {
  std::optional<double> last;
  for (const std::filesystem::path& file : entries_of(folder)) {
    const std::string name = file.filename();
    if (name.starts_with(name_begin)) last = std::max(last.value_or(0), std::atof(name.c_str() + name_begin.size()));
  }
  return last;
}

EventFile::EventFile(std::string folder, std::int64_t first_step)
    : folder_(std::move(folder)), first_step_(first_step) {}

void EventFile::add(std::int64_t step, const std::vector<std::string>& values) {
  std::string content;
  for (const std::string& v : values) content += v;
  std::string records;
  if (path_.empty())  // what each file begins with: the version, and SessionLog.START
    records = record(event(0, bytes(3, "brain.Event:2"))) + record(event(first_step_, bytes(7, integer(1, 1))));
  append(records + record(event(step, bytes(5, content))));
}

void EventFile::append(std::string_view records) {
  const bool fresh = path_.empty();
  std::string path = path_;
  if (fresh) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw Error(folder_, "cannot be made: " + error.message());
    // TensorBoard reads the files of a run in order of their names, also after the clock has gone back.
    const double time = std::max(now(), last_event_file(folder_).value_or(0) + 1e-6);
    path = (std::filesystem::path(folder_) / fmt::format("{}{:017.6f}.reel.{}", name_begin, time, getpid())).string();
  }
  FileHandle file(path, O_WRONLY | O_CREAT | O_APPEND | (fresh ? O_EXCL : 0), "written");
  const off_t before = lseek(file.get(), 0, SEEK_END);
  if (before < 0) file.fail("written");
  try {
    file.write(records);
  } catch (...) {
    (void)!ftruncate(file.get(), before);  // removes the part that fitted on a full disk
    if (fresh) unlink(path.c_str());
    throw;
  }
  file.close();
  path_ = path;
}

}  // namespace reel
