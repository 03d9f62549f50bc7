// Speech frame by frame: predicts the log spectrum of the next 32 ms from all frames before it (the pipeline of Wisdom
// et al. 2016). At the end, predicted spectra become sound again, with the true phases, and are compared with the
// recording.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tasks/app/heat_map.h"
#include "tasks/app/run.h"
#include "tasks/data/audio.h"
#include "tasks/data/data_error.h"
#include "tasks/data/speech_metrics.h"
#include "tasks/io/spawn.h"
#include "tasks/training/device.h"

namespace reel {
namespace {

struct SpeechOptions {
  std::string corpus = "folder", folder, sa_filter = "name", split = "core", roles = "wisdom", mean = "frames",
              waveforms = "on", pesq;
};

constexpr std::int64_t rate = 8000, size = 256, hop = 128, bins = size / 2 + 1;
constexpr double floor_power = 1e-5, silence = -50;  // silence: 10 log10(floor_power)

StftOptions frames_of_speech() {
  return {.size = size, .hop = hop, .window = hann_window(size, true, DType::f64), .centre = false};
}

/// Spectra [frames, bins] of a recording padded with zeros: ceil(n / 128) + 3 frames, the first and the last silent.
Tensor spectra(const std::vector<double>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Tensor whole = pad(Tensor::from<double>(x, {n}), 0, size, (hop - n % hop) % hop + size);
  return stft(whole, frames_of_speech());
}

/// Log power in dB.
Tensor features(const Tensor& spectra) { return 10 / std::log(10.0) * log(floor_power + square(abs(spectra))); }

/// The waveform of n samples with these features and phases, rounded to 16 bit.
std::vector<double> sound(const Tensor& decibel, const Tensor& phase, std::int64_t n) {
  const Tensor magnitude = exp(std::log(10.0) / 20 * decibel);
  const Tensor whole = istft(polar(magnitude, phase), frames_of_speech());
  std::vector<double> x = slice(whole, 0, size, size + n).values<double>();
  double loudest = 1;
  for (const double v : x) loudest = std::max(loudest, std::abs(v));
  for (double& v : x) v = std::min(std::round(v / loudest * 32768), 32767.0) / 32768;
  return x;
}

struct Utterance {
  std::string path;
  std::int64_t frames = 0;
  std::vector<float> features;  // [frames, bins]
};

class Speech final : public Task {
 public:
  Speech(const SpeechOptions& o, const Setup& setup)
      : set_(o.corpus == "timit" ? "timit" : "speech"),
        over_steps_(o.mean == "steps"),
        waveforms_(o.waveforms == "on"),
        pesq_(o.pesq) {
    if (!pesq_.empty() && !can_run(pesq_))
      throw SettingError("pesq", fmt::format("a program that can be run is expected, got {}", shell_path(pesq_)));
    const std::string folder = o.folder.empty() ? (std::filesystem::path(setup.data) / set_).string() : o.folder;
    const bool by_path = o.sa_filter == "path";
    SpeechFiles files = o.corpus != "timit" ? speech_in_folder(folder)
                        : o.split == "goru" ? timit_drawn(folder, by_path, 2400, 600, 1000)
                                            : timit(folder, by_path);
    if (o.roles == "exprnn") std::swap(files.valid, files.test);
    parts_ = {std::ssize(files.train), std::ssize(files.valid), std::ssize(files.test)};
    for (const auto* part : {&files.train, &files.valid, &files.test}) {
      std::int64_t longest = 0;
      for (const std::string& path : *part) {
        const Tensor f = features(spectra(read_audio(set_, path, rate)));
        utterances_.push_back({path, f.dim(0), cast(f, DType::f32).values<float>()});
        longest = std::max(longest, f.dim(0));
      }
      longest_.push_back(longest);
    }
    set_baseline();
  }

  std::string name() const override { return "speech"; }
  std::string title() const override { return fmt::format("speech, {} recordings", utterances_.size()); }
  ModelShape shape() const override { return {.inputs = bins, .outputs = bins}; }
  bool forecasts() const override { return true; }
  /// The loss of always predicting the mean frame of the training set.
  double baseline() const override { return baseline_; }
  Parts parts() const override { return parts_; }

  /// Frames [T, B, bins] and the frames that follow them. Each recording is followed by silence, which is its last
  /// target.
  Batch batch(std::uint64_t, const std::vector<std::uint64_t>& streams) const override {
    const auto B = streams.size(), width = static_cast<std::size_t>(bins);
    std::size_t T = 0;
    for (const std::uint64_t s : streams) T = std::max(T, static_cast<std::size_t>(utterances_.at(s).frames));
    std::vector<float> x(T * B * width, silence), y(T * B * width, silence);
    std::vector<float> weight(T * B, 0);
    std::vector<std::int32_t> which;
    for (std::size_t b = 0; b < B; ++b) {
      const Utterance& u = utterances_[streams[b]];
      for (std::size_t t = 0; t < static_cast<std::size_t>(u.frames); ++t) {
        for (std::size_t k = 0; k < width; ++k) {
          x[(t * B + b) * width + k] = u.features[t * width + k];
          if (t > 0) y[((t - 1) * B + b) * width + k] = u.features[t * width + k];
        }
        weight[t * B + b] = 1;
      }
      which.push_back(static_cast<std::int32_t>(streams[b]));
    }
    const auto rows = static_cast<std::int64_t>(B), steps = static_cast<std::int64_t>(T);
    return {Tensor::from<float>(x, {steps, rows, bins}),
            Tensor::from<float>(y, {steps, rows, bins}),
            Tensor::from<float>(weight, {steps, rows}),
            {Tensor::from<std::int32_t>(which, {rows})}};
  }

  /// The mean squared error in dB^2, over all frames except padding.
  Tensor loss(const Tensor& outputs, const Batch& batch) const override {
    const Tensor error = mean(square(outputs - cast(batch.y, outputs.dtype())), {-1});
    const Tensor weight = cast(batch.weight, outputs.dtype());
    return sum(error * weight) / sum(weight);
  }

  /// Divides by all steps, including the padding up to the longest recording of the part, as Wisdom et al. do in
  /// training; they pad validation and test to the longest sentence of all of TIMIT's folder test.
  double scale(const Batch& batch) const override { return over_steps_ ? frames(batch) / steps(batch) : 1; }
  bool trains_on_mean() const override { return !over_steps_; }

  std::vector<Score> scores(const Tensor& outputs, const Batch& batch) const override {
    std::vector<Score> all{{"mse_over_steps", loss(outputs, batch).item() * frames(batch), steps(batch)}};
    if (!waveforms_) return all;
    Score snr{.name = "segsnr_db", .none = "no recording of the test set has 10 ms that are not silent"},
        intelligibility{.name = "stoi", .none = "no recording of the test set has 0.4 s that are not silent"},
        quality{.name = "pesq", .none = "the program of --pesq gave none"};
    const std::vector<std::int32_t> which = batch.more[0].values<std::int32_t>();
    for (std::size_t b = 0; b < which.size(); ++b) {
      const Utterance& u = utterances_[static_cast<std::size_t>(which[b])];
      const std::vector<double> recording = read_audio(set_, u.path, rate);
      const auto n = static_cast<std::int64_t>(recording.size());
      const Tensor spectrum = spectra(recording), truth = features(spectrum), phase = angle(spectrum);
      const Tensor said =
          cast(reshape(slice(outputs, 1, static_cast<std::int64_t>(b), static_cast<std::int64_t>(b) + 1),
                       {outputs.dim(0), bins}),
               DType::f64);
      const Tensor predicted = concat({slice(truth, 0, 0, 1), slice(said, 0, 0, u.frames - 1)}, 0);
      const std::vector<double> reference = sound(truth, phase, n), heard = sound(predicted, phase, n);
      const auto add = [](Score& score, double value) {
        if (std::isnan(value)) return;  // too short, or silent
        score.total += value;
        ++score.count;
      };
      add(snr, segmental_snr(reference, heard, rate));
      add(intelligibility, stoi(reference, heard, rate));
      if (pesq_.empty()) continue;
      try {
        add(quality, pesq(pesq_, reference, heard, rate));
      } catch (const Error& e) {  // a failure here must not cost a long run its other results
        if (!std::exchange(pesq_failed_, true))
          warn("speech", fmt::format("{}: {}; recordings without a score do not count", u.path, e.what()));
      }
    }
    all.push_back(snr);
    all.push_back(intelligibility);
    if (!pesq_.empty()) all.push_back(quality);
    return all;
  }

 private:
  static double frames(const Batch& batch) { return sum(cast(batch.weight, DType::f64)).item(); }
  double steps(const Batch& batch) const {
    const std::int64_t first = batch.more[0].values<std::int32_t>()[0];
    const std::size_t part = first < parts_.train ? 0 : first < parts_.train + parts_.valid ? 1 : 2;
    return static_cast<double>(batch.more[0].dim(0) * longest_[part]);
  }

  void set_baseline() {
    const auto width = static_cast<std::size_t>(bins);
    const auto valid = static_cast<std::size_t>(parts_.train);
    std::vector<double> mean(width, 0);
    double count = 0;
    for (std::size_t u = 0; u < valid; ++u) {
      for (std::size_t i = 0; i < utterances_[u].features.size(); ++i) mean[i % width] += utterances_[u].features[i];
      count += static_cast<double>(utterances_[u].frames);
    }
    double error = 0, seen = 0;
    for (std::size_t u = valid; u < valid + static_cast<std::size_t>(parts_.valid); ++u) {
      for (std::size_t i = 0; i < utterances_[u].features.size(); ++i)
        error += std::pow(utterances_[u].features[i] - mean[i % width] / count, 2);
      seen += static_cast<double>(utterances_[u].features.size());
    }
    baseline_ = error / seen;
  }

  std::string set_;
  bool over_steps_, waveforms_;
  std::string pesq_;                  // the PESQ program; empty: none
  mutable bool pesq_failed_ = false;  // the first failure is told
  std::vector<Utterance> utterances_;
  std::vector<std::int64_t> longest_;  // frames of the longest recording of each part
  Parts parts_;
  double baseline_ = 0;
};

/// Draws a recording as it is, and as predicted frame by frame from the frames before.
void draw_spectrogram(const Ended& e) {
  const Batch batch = e.task.batch(e.seed, {e.streams.front()});
  const Tensor predicted = e.model(on(batch.x, e.model.device()));
  const auto map_of = [](const Tensor& frames, const std::string& title) {  // [T, 1, bins]
    HeatMap map{title, "seconds", "kHz", bins, static_cast<std::size_t>(frames.dim(0)), {}};
    map.values = cast(transpose(reshape(frames, {frames.dim(0), bins})), DType::f64).values<double>();
    map.x_step = static_cast<double>(hop) / rate;
    map.y_step = rate / 1000.0 / size;
    map.upwards = true;
    map.value_label = "power (dB)";
    return map;
  };
  std::vector<HeatMap> maps{map_of(batch.y, "the recording"), map_of(predicted, "predicted from the frames before")};
  const auto [low, high] = std::minmax_element(maps[0].values.begin(), maps[0].values.end());
  maps[0].low = maps[1].low = *low;
  maps[0].high = maps[1].high = *high;
  const std::string svg = e.folder.file("spectrogram.svg");
  print_picture(svg, draw_heat_maps(svg, maps, e.style));
}

}  // namespace
}  // namespace reel

int main(int argc, char** argv) {
  using namespace reel;
  SpeechOptions o;
  const auto add = [&](Options& options) {
    options.choice("corpus", o.corpus, {"folder", "timit"},
                   "recordings in folders train, valid and test, or in any folder, with a fifth held out; or TIMIT",
                   "Task");
    options.add("folder", o.folder, "folder of the recordings; empty: speech or timit in --data", "Task");
    options.choice("sa-filter", o.sa_filter, {"name", "path"},
                   "timit: how to find the sentences that all speakers read (SA); path, as in published code, also "
                   "matches speakers with \"sa\" in their names",
                   "Task");
    options.choice("split", o.split, {"core", "goru"},
                   "timit: core: train on all of its folder train, with the development and core speakers of folder "
                   "test; goru: 2,400 and 600 sentences drawn from train, and 1,000 from test (GORU)",
                   "Task");
    options.choice(
        "roles", o.roles, {"wisdom", "exprnn"},
        "wisdom: validate on the development speakers, test on the core set; exprnn (also SRNN): the reverse", "Task");
    options.choice("mean", o.mean, {"frames", "steps"},
                   "training loss: mean error over actual frames (expRNN, SRNN), or over all steps up to the longest "
                   "recording of the part (Wisdom, for training)",
                   "Task");
    options.add("pesq", o.pesq, "PESQ program, called as PROGRAM +8000 TRUE.wav PREDICTED.wav; empty: no PESQ", "Task");
    options.typed_only("pesq");
    options.choice("waveforms", o.waveforms, {"on", "off"}, "at the end, also compare predicted and true waveforms",
                   "Task");
  };
  return run_task(
      argc, argv,
      {.name = "speech",
       .description = "Speech: predict the log spectrum of the next frame of a recording.",
       .batch = 28,
       .steps = 13000,
       .source = Source::files,
       .options = add,
       .task = [&](const Setup& setup) -> std::unique_ptr<Task> {
         try {
           return std::make_unique<Speech>(o, setup);
         } catch (const DataError& e) {
           if (o.folder.empty()) throw;
           throw FileError(e.problem + ". Hint: --folder DIR has recordings with one channel, WAV or SPHERE");
         }
       },
       .pictures = {{"spectrogram", "a recording, and what was predicted of it", draw_spectrogram}},
       .with_resume = {"folder", "pesq", "waveforms"},
       .idle = [&]() -> std::vector<Idle> {
         const std::string timit = "it is for --corpus timit";
         return {{"sa-filter", o.corpus != "timit", timit},
                 {"split", o.corpus != "timit", timit},
                 {"data", !o.folder.empty(), "--folder is given"},
                 {"pesq", !o.pesq.empty() && o.waveforms == "off", "--waveforms is off"}};
       }});
}
