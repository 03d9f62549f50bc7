// report.html in the folder of a run: written again at validations, so that a browser shows how the run goes.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "tasks/app/observer.h"
#include "tasks/app/preset.h"

namespace reel::page {

class RunPage : public Observer {
 public:
  /// `title` is that of the page; `preset`, if not empty, is the one that the run came from.
  RunPage(std::string title, const std::string& preset, const std::string& task);

  void begun(const Moment& at) override { write(at); }
  /// Not more than once in two seconds, nor so often that it takes a hundredth of the run.
  void validated(const Moment& at, const RunFolder::Row& row, const Tensors& gradients) override;
  void ended(const Moment& at) override { write(at); }
  void drawn(const RunFolder& folder) override;

 private:
  void write(const Moment& at);
  void put(const RunFolder& folder);

  std::string title_;
  nlohmann::ordered_json preset_;  // null: none
  Measure measure_;                // the preset's
  double epoch_updates_ = 0;
  nlohmann::ordered_json data_;  // as last written
  double next_ = 0;              // when validated() may write again, in seconds of a steady clock
};

}  // namespace reel::page
