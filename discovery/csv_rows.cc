// SPDX-License-Identifier: Apache-2.0
#include "discovery/csv_rows.h"

#include "base/printable.h"
#include "inventory/parse/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::discovery {
namespace {

constexpr std::array<std::string_view, 4> kNeeded = {"name", "mac", "address", "bmc"};
constexpr std::array<std::string_view, 9> kListed = {"name", "serial",  "bmc_mac", "mac", "rack",
                                                     "unit", "address", "switch",  "port"};
constexpr std::string_view kHeader = "name,rack,unit,mac,address,bmc,serial";

std::string problemsOf(const Diagnostics& diagnostics) {
  std::string out;
  for (const auto& one : diagnostics.all()) out += (out.empty() ? "" : "\n") + one.str();
  return out;
}

std::string quoted(const std::string& value, char delimiter) {
  const bool plain = value.find_first_of(std::string("\"\r\n") + delimiter) == std::string::npos &&
                     !value.starts_with('#') && !value.starts_with(' ') && !value.ends_with(' ');
  if (plain) return value;
  std::string out = "\"";
  for (const char c : value)
    out += c == '"'                 ? std::string("\"\"")
           : c == '\n' || c == '\r' ? std::string(" ")
                                    : std::string(1, c);
  return out + "\"";
}

/// As inventory/parse/csv.cc chooses it.
char delimiterOf(std::string_view text) {
  const auto first = text.substr(0, text.find('\n'));
  return first.find(',') == std::string_view::npos && first.find(';') != std::string_view::npos
             ? ';'
             : ',';
}

}  // namespace

Result<std::string> withRows(std::string_view text, const std::string& file,
                             const std::vector<CsvFields>& rows,
                             const std::vector<std::string>& also_needed) {
  std::string out(text);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    out = kHeader;
    for (const auto& column : also_needed) out += "," + column;
    out += "\n";
  }
  Diagnostics diagnostics;
  const auto table = inventory::parseCsv(out, file, diagnostics);
  if (diagnostics.hasErrors() || table.header.empty())
    return fail(ErrorCode::InvalidInput,
                table.header.empty() ? file + " has no header line" : problemsOf(diagnostics));
  std::vector<std::string> columns;
  for (const auto& cell : table.header) columns.push_back(cell.text);
  for (const auto needed : kNeeded)
    if (std::find(columns.begin(), columns.end(), needed) == columns.end())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} has no column \"{}\"; add it to its first row", file, needed));
  for (const auto& needed : also_needed)
    if (std::find(columns.begin(), columns.end(), needed) == columns.end())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} has no column \"{}\", and these rows need it; add it to its "
                              "first row, and an empty field to the rows that are there",
                              file, needed));
  const auto name_column =
      static_cast<std::size_t>(std::find(columns.begin(), columns.end(), "name") - columns.begin());
  std::set<std::string> names;
  for (const auto& row : table.rows) names.insert(row.cells[name_column].text);

  const char delimiter = delimiterOf(out);
  const std::string line_end = out.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  if (!out.ends_with('\n')) out += line_end;
  for (const auto& row : rows) {
    const auto name = row.find("name");
    if (name == row.end() || name->second.empty())
      return fail(ErrorCode::InvalidInput, "a row without a name");
    if (!names.insert(name->second).second)
      return fail(ErrorCode::Conflict, fmt::format("{} has a row for {} already; it is not touched",
                                                   file, name->second));
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto value = row.find(columns[i]);
      if (value != row.end() && isFormula(value->second))
        return fail(ErrorCode::InvalidInput,
                    fmt::format("{} of {} would be a formula to a spreadsheet: {}; write this row "
                                "by hand if it is right",
                                columns[i], name->second, printable(value->second)));
      line += (i == 0 ? "" : std::string(1, delimiter)) +
              (value == row.end() ? "" : quoted(value->second, delimiter));
    }
    out += line + line_end;
  }
  return out;
}

Result<std::vector<ListedRow>> parseList(std::string_view text, const std::string& file) {
  Diagnostics diagnostics;
  const auto table = inventory::parseCsv(text, file, diagnostics);
  std::set<std::string> seen;
  // Nothing of a file is shown that is another's (--adopt /etc/shadow).
  if (!table.header.empty() && std::ranges::none_of(table.header, [](const auto& cell) {
        return std::ranges::find(kListed, cell.text) != kListed.end();
      }))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{}: this is no list of machines: its first row names none of the "
                            "columns {}",
                            file, fmt::join(kListed, ", ")));
  for (const auto& cell : table.header) {
    const SourceRef at{file, cell.line, cell.column};
    if (std::find(kListed.begin(), kListed.end(), cell.text) == kListed.end())
      diagnostics.error(at, fmt::format("unknown column \"{}\"", cell.text),
                        fmt::format("columns: {}", fmt::join(kListed, ", ")));
    if (!seen.insert(cell.text).second)
      diagnostics.error(at, fmt::format("the column \"{}\" occurs twice", cell.text), "remove one");
  }
  if (!table.header.empty() && !seen.contains("serial") && !seen.contains("bmc_mac") &&
      !seen.contains("mac"))
    diagnostics.error({file, table.header.front().line, 1}, "nothing tells the machines",
                      "add a column serial, bmc_mac or mac");
  if (table.header.empty())
    diagnostics.error({file, 1, 1}, "the list is empty",
                      "its first row names the columns, for example: serial");
  std::vector<ListedRow> out;
  for (const auto& row : table.rows) {
    ListedRow listed{row.line, {}};
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      if (!row.cells[i].text.empty()) listed.fields[table.header[i].text] = row.cells[i].text;
    const bool told = listed.fields.contains("serial") || listed.fields.contains("bmc_mac") ||
                      listed.fields.contains("mac");
    if (!told)
      diagnostics.error({file, row.line, 1}, "the row has neither serial, bmc_mac nor mac",
                        "write one of them");
    out.push_back(std::move(listed));
  }
  if (diagnostics.hasErrors()) return fail(ErrorCode::InvalidInput, problemsOf(diagnostics));
  return out;
}

}  // namespace muster::discovery
