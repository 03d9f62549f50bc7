// What looks on while a run trains: its page in the browser, files for TensorBoard. It never disturbs the run.
#pragma once
#include <functional>

#include "tasks/app/run_folder.h"
#include "tasks/training/model.h"

namespace reel {

/// A run at one moment.
struct Moment {
  const RunRecord& record;
  const RunFolder& folder;
  const Model& model;
  std::int64_t steps;   // of the whole run
  double seconds_left;  // NaN: not known
  bool running;
};

/// Its methods may throw: the run goes on and says why, and what went wrong at its end makes the program fail.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Whether validated() wants the gradients of the update before it.
  virtual bool wants_gradients() const { return false; }
  /// Before the first update, or the first one after --resume.
  virtual void begun(const Moment& at) = 0;
  /// After each validation. `gradients` are those of the model's trained parameters, not clipped; none if unwanted.
  virtual void validated(const Moment& at, const RunFolder::Row& row, const Tensors& gradients) = 0;
  /// When the run has finished, was interrupted or diverged, and its other files are written.
  virtual void ended(const Moment& at) = 0;
  /// When pictures were drawn after that.
  virtual void drawn(const RunFolder& folder) = 0;
};

/// Calls each of them; what they throw is returned, a line each.
std::vector<std::string> tell(const std::vector<Observer*>& observers, const std::function<void(Observer&)>& call);

}  // namespace reel
