// One name for a value through all stages of a loop: passes number values anew, and move the ops that make them. So it
// can be said of each op where it has gone.
#pragma once
#include <map>
#include <set>

#include "tasks/explain/watch.h"

namespace reel::explain {

/// Where an op is in a stage, seen from the stage before it.
enum class Mark : char {
  same = ' ',
  moved = '>',    // has left the body: it runs once, in this program
  added = '+',    // was not there
  dropped = '-',  // was there; it is no op of this stage
};

/// An op of a program, in words.
struct OpRow {
  Mark mark = Mark::same;
  std::string name;                 // "%7"; of the first result, if there are several
  const char* op = "";              // "matmul"
  std::vector<std::string> args{};  // names of values
  Spec spec;                        // of the first result
  Program::Cost cost;
  bool view = false;    // it computes nothing
  bool again = false;   // in a gradient: the forward loop computes it, too
  bool kept = false;    // its result is kept for the gradient
  std::string where{};  // the line of the step that it comes from: "cells/lstm.cpp:65"
  int node = -1;        // in the program; -1: dropped
};

struct ProgramRows {
  std::vector<std::string> inputs, consts, outputs;
  std::vector<OpRow> rows;
  std::vector<std::string> values;  // by id
};

struct StageRows {
  std::string pass, rule;
  bool changed = true;
  int carries = 0;  // the first inputs and outputs of the body: states, then sums over time
  ProgramRows prologue, body, epilogue;
};

/// The names of a loop's arguments, where they are known. Those that are not get numbers.
struct ArgumentNames {
  std::vector<std::string> carries, xs;
  std::map<std::uint64_t, std::string> consts;  // by id of the tensor
};

class Namer {
 public:
  /// The stages of a loop. A gradient's loop comes after its forward loop, whose saved values it knows.
  std::vector<StageRows> stages(const WatchedLoop& loop, const ArgumentNames& names);

 private:
  /// What a value is, whichever program it is in: a number, the same for the same expression of the same arguments.
  /// It is that of the value at one time step, so the stacked value and the gathered rows of a table have it, too.
  struct Value {
    int key = -1;
    std::string name = "";
  };
  /// An op on given arguments. There may be several, such as the slices of a tensor.
  struct Instance {
    const Op* op;
    Attrs attrs;
    Value value;
    Loc where;
    bool forward;  // made by a forward loop
    int stage;     // the last stage that has it
  };
  struct Leaves {
    std::vector<Value> carries, xs, consts;
  };

  int new_key() { return next_key_++; }
  /// A value of its own, with this name or, if another one has it, one like it.
  Value fresh(const std::string& name);
  Leaves leaves(const WatchedLoop& loop, const ArgumentNames& names);
  /// The value at an address, if a forward loop left it there.
  std::optional<Value> saved_at(const Argument& argument) const;
  void remember(const WatchedLoop& loop, const std::vector<Value>& body, const std::vector<Value>& inputs);
  /// Names the values of a program, given those of its inputs and given consts. The inputs from `first_sum` to
  /// `last_sum` - 1 are sums over time.
  std::vector<Value> walk(const Traced& traced, std::vector<Value> values, int first_sum, int last_sum,
                          ProgramRows& rows, bool gradient);
  Instance& instance(const Program::Node& node, const std::vector<Value>& values, bool gradient);

  struct Saved {
    const std::byte* address;
    Value value;
  };
  int next_key_ = 0, next_name_ = 1, stage_ = 0;
  std::map<std::pair<const Op*, std::vector<int>>, std::vector<Instance>> instances_;
  std::map<std::uint64_t, Value> consts_;  // by id of the tensor
  std::vector<Saved> saved_;
  std::set<std::string> names_;  // of values that no op makes
};

}  // namespace reel::explain
