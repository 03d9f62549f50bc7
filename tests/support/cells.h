// Which cells a table of the tests must have: those that come with Reel. A cell of your own, in cells/own/ or linked
// from elsewhere, runs through all general tests, but Reel's tables need no row for it.
#pragma once
#include "cells/cell.h"

namespace reel::test {

/// True for a cell that the table must have. For another one it prints a note.
inline bool needs_row(const CellType& type, const char* table) {
  if (!type.built_in())
    fmt::print("note: {} ({}) does not come with Reel: not compared with {}\n", type.name, type.file, table);
  return type.built_in();
}

}  // namespace reel::test
