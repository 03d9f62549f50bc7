// Parameters and settings as Python gives them.
#pragma once
#include <map>

#include "cells/cell.h"
#include "python/src/python.h"

namespace reel::python {

using Values = std::map<std::string, Tensor>;

/// A cell with its parameters, as reel.cell() makes it.
struct PyCell {
  std::string name;
  std::unique_ptr<Cell> cell;
  DType dtype;
  std::uint64_t seed;
  std::map<std::string, std::string> settings;  // those that were given
};

/// cell_type(), but the message about a cell that is not there, and has no name like it, says how cells are added.
const CellType& known_cell(const std::string& name);

/// The settings of a cell from keyword arguments, as text: on and off for bool. A name may have the cell's before it:
/// "srnn.width". Throws SettingError for one that the cell does not have.
std::map<std::string, std::string> settings_of(const CellType& type, const nb::dict& given);

/// Throws Error unless lengths are i32 [B], each 0 to T, where they have values.
void check_lengths(const std::string& subject, const Tensor& lengths, std::int64_t steps, std::int64_t batch);

/// The trained parameters by name, or those that are not trained.
nb::dict by_name(const std::vector<Parameter>& parameters, bool trained);

/// Those that are trained of `owner`, a Cell or a Model; owner_of() finds it then.
nb::dict handed_out(nb::handle owner, const std::vector<Parameter>& parameters);
/// The live Cell or Model whose parameters() gave this tensor; None for another.
nb::object owner_of(const Tensor& x);

/// Runs `f` with these values in place of parameters among `own`, by name: f is traced, and its consts are replaced.
/// Throws Error for a name or a spec that is not there.
Tensors with_values(const std::string& subject, const std::vector<Parameter>& own, const Values& values,
                    const Tensors& in, const Function& f, const Loc& where);

}  // namespace reel::python
