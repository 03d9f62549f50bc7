// --tensorboard DIR: the run as event files that TensorBoard shows.
#pragma once
#include <map>

#include "tasks/app/observer.h"
#include "tasks/io/event_file.h"

namespace reel {

/// Writes numbers of metrics.csv, histograms of parameters and gradients, results of the test, and pictures.
class TensorBoard : public Observer {
 public:
  /// Into DIR/NAME of the run's folder, or DIR/NAME-2, ... if another run has that; a resumed run goes on in a further
  /// file of its own.
  TensorBoard(const std::string& dir, const RunFolder& folder);

  bool wants_gradients() const override { return true; }
  void begun(const Moment& at) override;
  void validated(const Moment& at, const RunFolder::Row& row, const Tensors& gradients) override;
  void ended(const Moment& at) override;
  void drawn(const RunFolder& folder) override;

 private:
  std::string dir_, run_, folder_;  // run_: the absolute path of the run's folder
  std::optional<EventFile> file_;
  std::int64_t step_ = 0, lost_ = 0;            // the last step seen; validations that could not be written
  std::int64_t tested_step_ = -1;               // whose results of the test an earlier session has written
  std::map<std::string, std::uint32_t> drawn_;  // checksums of the pictures that an earlier session has left
};

}  // namespace reel
