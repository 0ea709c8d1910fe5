// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/csv.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

constexpr std::size_t kMaxColumns = 256;

/// Splits the text into records. Columns are bytes from 1; a quoted field may span lines, but no
/// cell of ours may.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), file_(file), diagnostics_(diagnostics) {}

  bool atEnd() const { return at_ >= text_.size(); }

  /// The next record, or nothing when it was empty, a comment or broken.
  bool record(CsvRow& row) {
    row = CsvRow{line_, {}};
    if (rest().starts_with('#')) {
      skipLine();
      return false;
    }
    bool good = true;
    while (true) {
      good = cell(row) && good;
      if (row.cells.size() > kMaxColumns) {
        diagnostics_.error({file_, line_, column_},
                           fmt::format("more than {} columns", kMaxColumns),
                           "this is no list of nodes; name the right file");
        skipLine();
        return false;
      }
      if (atEnd() || peek() != delimiter_) break;
      advance();
    }
    endLine();
    return good && !(row.cells.size() == 1 && row.cells[0].text.empty());
  }

  void chooseDelimiter() {
    std::string_view first = text_.substr(0, text_.find('\n'));
    delimiter_ =
        first.find(',') == std::string_view::npos && first.find(';') != std::string_view::npos
            ? ';'
            : ',';
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  char peek() const { return text_[at_]; }
  bool lineEnd() const { return atEnd() || peek() == '\n' || peek() == '\r'; }
  void advance() {
    ++at_;
    ++column_;
  }
  void skipLine() {
    while (!lineEnd()) advance();
    endLine();
  }
  void endLine() {
    if (!atEnd() && peek() == '\r') ++at_;
    if (!atEnd() && peek() == '\n') ++at_;
    ++line_;
    column_ = 1;
  }

  bool cell(CsvRow& row) {
    while (!lineEnd() && (peek() == ' ' || peek() == '\t')) advance();
    Value value;
    value.kind = Value::Kind::Scalar;
    value.style = Value::Style::Cell;
    value.line = line_;
    value.column = column_;
    bool good = !lineEnd() && peek() == '"' ? quoted(value) : plain(value);
    row.cells.push_back(std::move(value));
    return good;
  }

  bool plain(Value& value) {
    while (!lineEnd() && peek() != delimiter_) {
      value.text += peek();
      advance();
    }
    value.text.erase(value.text.find_last_not_of(" \t") + 1);
    return true;
  }

  bool quoted(Value& value) {
    advance();
    while (true) {
      if (lineEnd()) {
        diagnostics_.error({file_, value.line, value.column},
                           "a quoted field is not closed on its line",
                           "add the closing quote; no field spans lines");
        return false;
      }
      if (peek() == '"') {
        advance();
        if (atEnd() || peek() != '"') break;
      }
      value.text += peek();
      advance();
    }
    while (!lineEnd() && (peek() == ' ' || peek() == '\t')) advance();
    if (lineEnd() || peek() == delimiter_) return true;
    diagnostics_.error({file_, line_, column_}, "text after the closing quote of a field",
                       "double a quote that belongs to the text (\"\")");
    while (!lineEnd() && peek() != delimiter_) advance();
    return false;
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  char delimiter_ = ',';
};

}  // namespace

CsvTable parseCsv(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  CsvTable table;
  if (!checkEncoding(text, file, diagnostics)) return table;
  Scanner scanner(text, file, diagnostics);
  scanner.chooseDelimiter();
  CsvRow row;
  while (!scanner.atEnd()) {
    if (!scanner.record(row)) continue;
    if (table.header.empty()) {
      table.header = std::move(row.cells);
      continue;
    }
    if (row.cells.size() != table.header.size()) {
      const Value& last = row.cells.back();
      diagnostics.error(
          {file, row.line,
           row.cells.size() > table.header.size() ? row.cells[table.header.size()].column
                                                  : last.column},
          fmt::format("the row has {} field{}, the header has {}", row.cells.size(),
                      row.cells.size() == 1 ? "" : "s", table.header.size()),
          "add or remove commas; put text that holds a comma in quotes");
      continue;
    }
    if (table.rows.size() == kMaxCsvRows) {
      diagnostics.error({file, row.line, 1}, fmt::format("more than {} rows", kMaxCsvRows),
                        "split the file");
      break;
    }
    table.rows.push_back(std::move(row));
  }
  if (table.header.empty())
    diagnostics.error({file, 1, 1}, "the file has no header row",
                      "start it with: name,rack,unit,mac,address,bmc,serial");
  return table;
}

}  // namespace muster::inventory
