// Rows of a table as sequences, windows of sequences, and their division into training, validation and test parts.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/data/table.h"

namespace reel {

struct Sequences {
  std::vector<std::int64_t> order;  // the row of the table for each row of the sequences
  std::vector<Rows> parts;          // the rows of each sequence, positions in `order`
  bool checked = true;              // the times never fall within a sequence; false: they are neither numbers nor dates
};

/// The shape of a date as in ISO 8601, its digits as 0: "0000-00-00 00:00"; empty if the text is none. Dates of one
/// shape have the order of their texts. One with an offset from UTC is none here.
std::string date_shape(std::string_view text);

/// The sequences of a table: rows with the same value of the column `group`, in the order in which they come; those of
/// its arrays; or all rows as one. Throws FileError if the group of a row is missing, or if times in the column `time`,
/// numbers or dates of one shape, are missing or fall within a sequence. Empty names: no such column.
Sequences sequences_of(const Table& table, const std::string& group, const std::string& time);

struct WindowOptions {
  std::int64_t window = 0;   // rows; 0: whole sequences
  std::int64_t stride = 1;   // rows from the start of a window to that of the next
  std::int64_t horizon = 0;  // rows from an input to its target, which must be in the same sequence
  bool rest = false;         // rows at the end that fill no window are a shorter one
  bool full = false;         // a sequence that is too short for a window has none, instead of a shorter one
};

/// The windows of a sequence; none if it is too short for the horizon.
std::vector<Rows> windows_of(const Rows& sequence, const WindowOptions& options);

/// Training, validation and test part.
using Split = std::array<std::vector<Rows>, 3>;

struct SplitOptions {
  double valid = 0.15, test = 0.15;  // shares of the whole
  std::uint64_t seed = 1;
};

/// Whole entries in random order: sequences, or windows. The sizes are rounded; a part with a share above 0 has at
/// least one entry, if there are enough.
Split split_at_random(std::vector<Rows> entries, const SplitOptions& options);

/// The last rows of each sequence are for the test, those before them for validation.
Split split_by_time(const std::vector<Rows>& sequences, const SplitOptions& options);

}  // namespace reel
