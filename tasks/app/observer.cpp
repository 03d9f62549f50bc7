#include "tasks/app/observer.h"

#include "tasks/io/output.h"

namespace reel {

std::vector<std::string> tell(const std::vector<Observer*>& observers, const std::function<void(Observer&)>& call) {
  std::vector<std::string> problems;
  for (Observer* observer : observers) {
    try {
      call(*observer);
    } catch (const std::bad_alloc&) {
      problems.emplace_back("out of memory");
    } catch (const std::exception& e) {
      problems.push_back(one_line(e.what()));
    }
  }
  return problems;
}

}  // namespace reel
