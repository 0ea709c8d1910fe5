// SPDX-License-Identifier: Apache-2.0
// Rows for a CSV of nodes, added as a person would type them: what is there stays byte for byte.
// Pure.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::discovery {

/// Column → value. Every row has a name.
using CsvFields = std::map<std::string, std::string>;

/// The text with the rows at its end, in the header's order of columns, with its delimiter and line
/// ends. A value without a column is left out unless the inventory needs it. `header_added`: the
/// text was empty and got a header. `also_needed`: columns that these rows must not lose, beside
/// those that the inventory needs. Errors: InvalidInput (no CSV, a needed column is missing, a name
/// is there already; says which)
Result<std::string> withRows(std::string_view text, const std::string& file,
                             const std::vector<CsvFields>& rows,
                             const std::vector<std::string>& also_needed = {});

/// Rows of a list of machines to adopt: a header with any of name, serial, bmc_mac, mac, rack,
/// unit, address, switch, port.
struct ListedRow {
  int line = 0;
  CsvFields fields;
};
/// Errors: InvalidInput with every problem and its line
Result<std::vector<ListedRow>> parseList(std::string_view text, const std::string& file);

}  // namespace muster::discovery
