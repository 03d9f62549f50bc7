#include "tasks/data/audio.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

#include "tasks/data/data_error.h"

namespace reel {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;

/// True if the file holds less sound than its header says: libsndfile reads what there is, and only its log says so.
bool cut_off(SNDFILE* file) {
  std::string log(1 << 14, '\0');
  const int n = sf_command(file, SFC_GET_LOG_INFO, log.data(), static_cast<int>(log.size()));
  log.resize(static_cast<std::size_t>(std::max(n, 0)));
  const std::size_t data = log.find("data : ");
  return data != std::string::npos &&
         log.substr(data, log.find('\n', data) - data).find("should be") != std::string::npos;
}

/// Keeps only the chunks of a WAV file that sound needs, each once. libsndfile parses all the others, spends minutes on
/// some that claim to be larger than the file, and never ends on some second "fmt ". Throws DataError if a chunk other
/// than "data" is cut off, or one is missing.
std::string wav_of_sound(const std::string& set, const std::string& path, std::string_view bytes) {
  constexpr std::size_t head = 12, chunk_head = 8;  // "RIFF", size, "WAVE"; name, size
  const bool big_endian = bytes.starts_with("RIFX");
  std::string_view format, fact, data;
  for (std::string_view rest = bytes.substr(std::min(head, bytes.size())); rest.size() >= chunk_head;) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i)
      size |= static_cast<std::size_t>(static_cast<unsigned char>(rest[4 + i])) << 8 * (big_endian ? 3 - i : i);
    const std::string_view name = rest.substr(0, 4);
    const std::string_view chunk = rest.substr(0, chunk_head + size + size % 2);  // an odd one has a byte behind it
    if (chunk.size() < chunk_head + size && name != "data")
      throw DataError(set, path, fmt::format("is cut off or damaged: a part of it says that it has {} bytes", size));
    for (const auto& [kind, kept] : {std::pair("fmt ", &format), std::pair("fact", &fact), std::pair("data", &data)})
      if (name == kind && kept->empty() && data.empty()) *kept = chunk;  // a cut-off data chunk is found later
    rest.remove_prefix(chunk.size());
  }
  if (format.empty() || data.empty())
    throw DataError(set, path, fmt::format("has no sound: there is no \"{}\" in it", format.empty() ? "fmt " : "data"));
  return fmt::format("{}{}{}{}", bytes.substr(0, head), format, fact, data);
}

/// Lets libsndfile read bytes in memory as a file.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  SNDFILE* open(SF_INFO& info) {
    SF_VIRTUAL_IO calls{size, seek, read, write, tell};
    return sf_open_virtual(&calls, SFM_READ, &info, this);
  }

 private:
  static Bytes& self(void* data) { return *static_cast<Bytes*>(data); }
  static sf_count_t size(void* data) { return std::ssize(self(data).bytes_); }
  static sf_count_t seek(sf_count_t offset, int whence, void* data) {
    Bytes& b = self(data);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? b.at_ : std::ssize(b.bytes_);
    b.at_ = std::clamp<sf_count_t>(from + offset, 0, std::ssize(b.bytes_));
    return b.at_;
  }
  static sf_count_t read(void* to, sf_count_t count, void* data) {
    Bytes& b = self(data);
    const auto n =
        std::min<std::size_t>(static_cast<std::size_t>(count), b.bytes_.size() - static_cast<std::size_t>(b.at_));
    std::memcpy(to, b.bytes_.data() + b.at_, n);
    b.at_ += static_cast<sf_count_t>(n);
    return static_cast<sf_count_t>(n);
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* data) { return self(data).at_; }

  std::string_view bytes_;
  sf_count_t at_ = 0;
};

/// Throws DataError with the index of the first invalid sample.
void check_samples(const std::string& set, const std::string& path, const std::vector<double>& x) {
  const auto bad = std::find_if(x.begin(), x.end(), [](double v) { return !(std::abs(v) <= 0x1p31); });
  if (bad == x.end()) return;
  throw DataError(
      set, path,
      fmt::format("sample {} is {}", bad - x.begin(), std::isnan(*bad) ? "NaN" : fmt::format("{:.3g}", *bad)));
}

}  // namespace

std::vector<double> read_audio(const std::string& set, const std::string& path, std::int64_t rate) {
  return parse_audio(set, path, read_data(set, path, path, most_bytes), rate);
}

std::vector<double> parse_audio(const std::string& set, const std::string& path, std::string_view bytes,
                                std::int64_t rate) {
  // libsndfile reads dozens of formats; accept only those that data sets use
  const bool known = bytes.starts_with("RIFF") || bytes.starts_with("RIFX") || bytes.starts_with("NIST_1A");
  if (!known) throw DataError(set, path, "is no sound file, WAV or NIST SPHERE");
  SF_INFO info{};
  const std::string clean = bytes.starts_with("RIF") ? wav_of_sound(set, path, bytes) : std::string(bytes);
  Bytes source(clean);
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(source.open(info), sf_close);
  if (!file) throw DataError(set, path, fmt::format("is no sound file ({})", sf_strerror(nullptr)));
  if (info.channels != 1) throw DataError(set, path, fmt::format("has {} channels, 1 expected", info.channels));
  constexpr sf_count_t most_in_byte = 8;  // samples; no speech codec packs more
  if (info.frames < 1 || info.frames > std::ssize(bytes) * most_in_byte)
    throw DataError(set, path, fmt::format("has {} samples in {} bytes", info.frames, bytes.size()));
  if (cut_off(file.get())) throw DataError(set, path, "is cut off: it has less sound than its header says");
  const std::int64_t common = std::gcd(rate, std::max<std::int64_t>(info.samplerate, 1));
  const std::int64_t up = rate / common, down = info.samplerate / common;
  if (info.samplerate < rate || up > 1000 || down > 1000)
    throw DataError(set, path,
                    fmt::format("has {} samples a second: {} expected, or more in a ratio of small numbers to that",
                                info.samplerate, rate));
  std::vector<double> x(static_cast<std::size_t>(info.frames));
  const sf_count_t read = sf_read_double(file.get(), x.data(), info.frames);
  if (read != info.frames) throw DataError(set, path, fmt::format("ends after {} of {} samples", read, info.frames));
  check_samples(set, path, x);
  return up == down ? x : resample(x, up, down);
}

std::vector<double> resample(const std::vector<double>& x, std::int64_t up, std::int64_t down) {
  const std::int64_t rate = std::max(up, down), half = 10 * rate;
  constexpr double beta = 5;
  std::vector<double> h(static_cast<std::size_t>(2 * half + 1));
  for (std::int64_t k = 0; k <= half; ++k) {  // the filter is symmetric
    const double t = std::numbers::pi * static_cast<double>(k) / static_cast<double>(rate);
    const double place = static_cast<double>(k) / static_cast<double>(half);
    h[static_cast<std::size_t>(half + k)] = h[static_cast<std::size_t>(half - k)] =
        (k == 0 ? 1 : std::sin(t) / t) * std::cyl_bessel_i(0, beta * std::sqrt(1 - place * place));
  }
  const double scale = static_cast<double>(up) / std::accumulate(h.begin(), h.end(), 0.0);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<double> y;
  for (std::int64_t k = 0; k < (n * up + down - 1) / down; ++k) {
    // the samples i for which tap middle + half - i up lies within the filter
    const std::int64_t middle = k * down;
    const std::int64_t first = std::max<std::int64_t>(0, (middle - half + up - 1) / up);
    const std::int64_t last = std::min(n - 1, (middle + half) / up);
    double sum = 0;
    for (std::int64_t i = first; i <= last; ++i)
      sum += x[static_cast<std::size_t>(i)] * h[static_cast<std::size_t>(middle + half - i * up)];
    y.push_back(scale * sum);
  }
  return y;
}

}  // namespace reel
