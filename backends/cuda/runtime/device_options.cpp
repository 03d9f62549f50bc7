#include "backends/cuda/runtime/device_options.h"

#include "engine/core/error.h"
#include "engine/core/parse.h"

namespace reel::cuda {

std::string DeviceOptions::name() const {
  std::string out = "cuda";
  if (index != 0) out += fmt::format(":{}", index);
  if (sync) out += ",sync";
  if (by_step) out += ",steps";
  if (at_once) out += ",loops";
  if (fma) out += ",fma";
  if (precision != Precision::strict) out += precision == Precision::tf32 ? ",tf32" : ",bf16";
  return out;
}

DeviceOptions parse_device(const std::string& rest) {
  DeviceOptions out;
  const auto wrong = [&](const std::string& part) {
    throw Error(
        "device",
        fmt::format("\"cuda{}\" is not understood at \"{}\". Hint: cuda, cuda:1 for the second GPU, "
                    "and then ,sync to wait for each kernel, ,steps to run time loops step by step, "
                    ",loops to run them as one kernel wherever they fit, ,fma to keep their products from tensor "
                    "cores, ,tf32 or ,bf16 for faster products",
                    rest, part));
  };
  std::size_t at = 0;
  while (at < rest.size()) {
    const std::size_t end = std::min(rest.find_first_of(":,", at + 1), rest.size());
    const std::string part = rest.substr(at, end - at), word = part.substr(1);
    if (part[0] == ':') {
      const auto index = parse<std::int64_t>(word);
      if (at != 0 || !index || *index < 0 || *index > 1023) wrong(part);
      out.index = static_cast<int>(*index);
    } else if (word == "sync") {
      out.sync = true;
    } else if (word == "steps") {
      out.by_step = true;
    } else if (word == "loops") {
      out.at_once = true;
    } else if (word == "fma") {
      out.fma = true;
    } else if (word == "tf32") {
      out.precision = Precision::tf32;
    } else if (word == "bf16") {
      out.precision = Precision::bf16;
    } else {
      wrong(part);
    }
    at = end;
  }
  if (out.by_step && out.at_once)
    throw Error("device",
                fmt::format("\"cuda{}\": ,steps and ,loops exclude each other. Hint: leave out one of them", rest));
  return out;
}

}  // namespace reel::cuda
