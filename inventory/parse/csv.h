// SPDX-License-Identifier: Apache-2.0
// CSV as spreadsheets write it (RFC 4180): quoted fields, doubled quotes, CRLF, a byte order mark,
// commas or semicolons. Every cell knows its place. Lines that are empty or start with '#' are
// skipped.
#pragma once

#include "inventory/parse/document.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

inline constexpr std::size_t kMaxCsvRows = 1'000'000;

struct CsvRow {
  int line = 0;
  std::vector<Value> cells;  ///< scalars in Style::Cell, spaces around unquoted text removed
};

struct CsvTable {
  std::vector<Value> header;
  std::vector<CsvRow> rows;  ///< only rows with as many cells as the header
};

/// Mistakes go to `diagnostics`; the good rows are still returned.
CsvTable parseCsv(std::string_view text, const std::string& file, Diagnostics& diagnostics);

}  // namespace muster::inventory
