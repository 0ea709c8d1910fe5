// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl_tests_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

namespace muster::collective {
namespace {

constexpr double kUnitTolerance =
    0.25;  ///< of algbw against size and time: they are printed with two or three digits
constexpr double kPrintsAsZero = 0.02;  ///< GB/s: "0.00" or "0.01", and no rate can be told
constexpr double kMostBusShare = 2.05;  ///< of algbw: 2(n-1)/n for all-reduce, less for all others
constexpr std::size_t kQuoted = 200;    ///< bytes of a line in an error
constexpr double kLargestMessage = 1e18;  ///< bytes
constexpr std::size_t kMaxRows = 10'000;

std::unexpected<Error> corrupt(std::string text) {
  return fail(ErrorCode::Corrupt, std::move(text));
}

using Words = std::vector<std::string>;

Words wordsOf(std::string_view line) {
  std::istringstream from{std::string(line)};
  Words words;
  for (std::string word; from >> word;) words.push_back(std::move(word));
  return words;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Of a launcher: whose line it is, and the line itself.
struct Labelled {
  std::string_view label, line;
};

/// `[1,0]<stdout>:` (mpirun --tag-output, --timestamp-output), `0: ` (srun --label), `host: `
/// (pdsh), `[pod/name] ` (kubectl logs --prefix): cut off only where a line of the table or a
/// comment is behind it, as "host:pid:tid [0] NCCL INFO" is neither.
Labelled unlabelled(std::string_view line) {
  constexpr std::string_view kStdout = "<stdout>";
  if (const auto at = line.find(kStdout); at != std::string_view::npos) {
    auto rest = line.substr(at + kStdout.size());
    if (rest.starts_with(':')) rest.remove_prefix(1);
    return {line.substr(0, at), rest};
  }
  const auto space = line.find(
      ' ', line.find_first_not_of(' ') == std::string_view::npos ? 0 : line.find_first_not_of(' '));
  if (space == std::string_view::npos || space == 0) return {{}, line};
  const char last = line[space - 1];
  if (last != ':' && !(last == ']' && line.front() == '[')) return {{}, line};
  const auto rest = line.substr(space + 1);
  const auto first = rest.find_first_not_of(" \t");
  if (first == std::string_view::npos || (rest[first] != '#' && !isDigit(rest[first])))
    return {{}, line};
  return {line.substr(0, space), rest};
}

/// Where in a row a placement has what. -1: the column is not there.
struct Columns {
  int time = -1, algbw = -1, busbw = -1, wrong = -1;
};

/// What the heading says: how many words come first, and then what.
struct Table {
  std::string label;
  std::size_t leading = 0, measured = 0;  ///< columns before the first time, and from there
  std::size_t trailing = 0;               ///< words behind them: date and time of -S
  std::vector<Columns> placements;
};

bool isHeading(const Words& words) {
  const auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return has("size") && has("algbw") && has("busbw") && (has("time") || has("cputime"));
}

Result<Table> tableOf(Words words, std::string_view label) {
  if (words.front() == "#") words.erase(words.begin());
  Table table;
  table.label = label;
  int at = 0;
  for (const auto& word : words) {
    if (word == "cputime")
      return corrupt(
          "the times are of the CPU, which only starts the work (-C 1): they say nothing of the "
          "rate; run it without -C");
    if (word == "timestamp") {
      table.trailing = 2;  // "2026-07-09 16:03:21"
      continue;
    }
    if (word == "time") table.placements.push_back({.time = at});
    if (table.placements.empty()) {
      ++table.leading;
      continue;
    }
    auto& columns = table.placements.back();
    if (word == "algbw") columns.algbw = at;
    if (word == "busbw") columns.busbw = at;
    if (word == "#wrong" || word == "error") columns.wrong = at;
    ++at;
  }
  table.measured = static_cast<std::size_t>(at);
  if (table.placements.size() > 2) return corrupt("the table has more than two placements");
  for (const auto& columns : table.placements)
    if (columns.algbw < 0 || columns.busbw < 0)
      return corrupt("the table's heading does not name algbw and busbw for each placement");
  return table;
}

Result<Measured> measuredOf(const Words& words, std::size_t first, const Columns& columns,
                            bool by_error) {
  const auto word = [&](int column) -> const std::string& {
    return words[first + static_cast<std::size_t>(column)];
  };
  const auto time = number(word(columns.time)), algbw = number(word(columns.algbw)),
             busbw = number(word(columns.busbw));
  if (!time || !algbw || !busbw || *time < 0 || *algbw < 0 || *busbw < 0)
    return corrupt(fmt::format("the row of {} bytes holds no finite numbers: {} {} {}", words[0],
                               word(columns.time), word(columns.algbw), word(columns.busbw)));
  Measured seen{*time, *algbw, *busbw, std::nullopt};
  // Releases before 2.11 print the largest deviation, "0e+00" or "2e-07", where later ones count
  // wrong values: how much of it is rounding they say in the footer alone.
  if (columns.wrong >= 0)
    if (const auto count = number(word(columns.wrong)); count && *count >= 0)
      seen.wrong = by_error ? 0 : static_cast<long>(std::ceil(std::min(*count, 1e15)));
  return seen;
}

bool isRoot(std::string_view word) {
  const auto value = number(word);
  return value && *value >= -1 && *value == std::floor(*value);
}

/// Some releases leave `redop` empty where the operation has none: then the root is in its place,
/// or, where the heading has no root, the time.
Result<TestRow> rowOf(const Words& words, const Table& table, bool by_error) {
  for (std::size_t blank = 0; blank <= 1 && table.leading >= 3 + blank; ++blank) {
    const auto leading = table.leading - blank;
    if (words.size() != leading + table.measured + table.trailing) continue;
    if (blank == 1 && leading != 3 && (leading != 4 || !isRoot(words[3]))) continue;
    const auto bytes = number(words[0]);
    if (!bytes || *bytes < 0 || *bytes > kLargestMessage)
      return corrupt("a row does not begin with a size: " + words[0].substr(0, kQuoted));
    TestRow row{static_cast<std::uint64_t>(*bytes), {}, {}};
    for (std::size_t i = 0; i < table.placements.size(); ++i) {
      TRY(seen, measuredOf(words, leading, table.placements[i], by_error));
      TRY_OK(requirePlausible(row.bytes, seen));
      (i == 0 ? row.out_of_place : row.in_place) = seen;
    }
    return row;
  }
  std::string line;
  for (const auto& word : words) line += word + " ";
  return corrupt("a row of another shape than the table's heading: " + line.substr(0, kQuoted));
}

/// "Rank  0 Group  0 Pid   1000 on   host device  0 [0000:1a:00] NVIDIA H100".
std::optional<std::string> deviceOf(Words words) {
  if (!words.empty() && words.front() == "#") words.erase(words.begin());
  if (words.size() < 8 || words[0] != "Rank" || (words[2] != "Pid" && words[2] != "Group"))
    return std::nullopt;
  const auto on = std::find(words.begin(), words.end(), "on"),
             device = std::find(words.begin(), words.end(), "device");
  if (on == words.end() || device == words.end() || on + 1 == words.end() ||
      words.end() - device < 3)
    return std::nullopt;
  auto bus = *(device + 2);
  // An old release prints "[0x1a]", an older one "[0x00]" for whatever it did not find: there the
  // device's number tells them apart.
  if (bus.find(':') == std::string::npos) bus = *(device + 1) + " " + bus;
  return *(on + 1) + " " + bus;
}

/// In the program's own words why there is no result.
std::optional<std::string> failureOf(std::string_view line) {
  for (const std::string_view words :
       {"Test NCCL failure", "Test CUDA failure", "Test HIP failure", "Test failure",
        "Invalid number of GPUs", "NCCL failure", "Could not find real path", "Cuda failure"})
    if (line.find(words) != std::string_view::npos) return std::string(line.substr(0, kQuoted));
  return std::nullopt;
}

/// "# Out of bounds values : 0 OK": what is behind the colon.
std::optional<Words> footer(std::string_view line, std::string_view name) {
  const auto at = line.find(name);
  const auto colon = at == std::string_view::npos ? at : line.find(':', at);
  if (colon == std::string_view::npos) return std::nullopt;
  return wordsOf(line.substr(colon + 1));
}

/// Reads line by line what came of one run.
class Reader {
 public:
  explicit Reader(std::string_view program) { test_.program = program; }
  Result<void> take(std::string_view whole) {
    if (whole.find("<stderr>") != std::string_view::npos) return {};
    const auto [label, line] = unlabelled(whole);
    const auto words = wordsOf(line);
    if (words.empty()) return {};
    if (const auto failure = failureOf(line); failure && failure_.empty()) failure_ = *failure;
    if (const auto device = deviceOf(words)) test_.devices.push_back(*device);
    takeProgram(words);
    if (isHeading(words)) return takeHeading(words, label);
    if (!table_) return {};
    if (line.find("(us)") != std::string_view::npos &&
        line.find("(GB/s)") == std::string_view::npos)
      return corrupt("the table is not in GB/s");
    TRY_OK(takeFooter(line));
    // One that has its label cut off wrongly, or another's line: what is no row says something
    // else.
    return isDigit(words[0][0]) && label == table_->label ? takeRow(words) : Result<void>();
  }

  Result<NcclTest> end() {
    const bool complete = bounds_ && average_ && !test_.rows.empty();
    if (!complete && !failure_.empty()) return corrupt("it failed: " + failure_);
    if (!table_ || test_.rows.empty()) return corrupt("there is no table of results");
    if (!complete) return corrupt("the footer is missing: the program did not come to its end");
    if (!(test_.average_busbw > 0)) return corrupt("the average bandwidth is no number above zero");
    test_.checked = !is_unchecked_ && allChecked(test_.rows, test_.program);
    return std::move(test_);
  }

 private:
  void takeProgram(const Words& words) {
    // "… agg iters: 1 validation: 0 graph: 0": with -c 0 nothing is counted as wrong
    const auto validation = std::ranges::find(words, "validation:");
    if (words.front() == "#" && validation != words.end() && validation + 1 != words.end())
      is_unchecked_ = is_unchecked_ || *(validation + 1) == "0";
    // "# Collective test starting: all_reduce_perf"
    const auto at = std::find(words.begin(), words.end(), "starting:");
    if (at != words.end() && at + 1 != words.end() && at != words.begin() && *(at - 1) == "test")
      test_.program = *(at + 1);
  }
  Result<void> takeHeading(const Words& words, std::string_view label) {
    if (table_)
      return corrupt(
          "there are two tables: ranks that know nothing of each other (built without MPI?), or "
          "two runs in one output");
    TRY(table, tableOf(words, label));
    by_error_ = std::find(words.begin(), words.end(), "error") != words.end();
    table_ = std::move(table);
    return {};
  }
  Result<void> takeFooter(std::string_view line) {
    if (const auto rest = footer(line, "Out of bounds values")) {
      const auto value = rest->size() >= 2 ? number((*rest)[0]) : std::nullopt;
      if (!value || ((*rest)[1] != "OK" && (*rest)[1] != "FAILED"))
        return corrupt("cannot read: " + std::string(line.substr(0, kQuoted)));
      test_.out_of_bounds = std::max(static_cast<long>(*value), (*rest)[1] == "OK" ? 0L : 1L);
      bounds_ = true;
    }
    if (const auto rest = footer(line, "Avg bus bandwidth")) {
      const auto value = rest->empty() ? std::nullopt : number(rest->front());
      if (!value || *value < 0)
        return corrupt("the average bandwidth is no number above zero: " +
                       std::string(line.substr(0, kQuoted)));
      test_.average_busbw = *value, average_ = true;
    }
    return {};
  }
  Result<void> takeRow(const Words& words) {
    if (words[0].find_first_not_of("0123456789") != std::string::npos) return {};
    if (words.size() < 3 || !number(words[1])) return {};  // a line of somebody else
    if (test_.rows.size() >= kMaxRows) return corrupt("the table has too many rows");
    TRY(row, rowOf(words, *table_, by_error_));
    test_.rows.push_back(std::move(row));
    return {};
  }

  NcclTest test_;
  std::optional<Table> table_;
  bool bounds_ = false, average_ = false;
  bool is_unchecked_ = false;
  bool by_error_ = false;  ///< the last column is a deviation, not a count
  std::string failure_;
};

}  // namespace

Result<void> requirePlausible(std::uint64_t bytes, const Measured& seen) {
  if (bytes == 0) return {};
  if (!(seen.microseconds > 0)) return corrupt(fmt::format("{} bytes: a time of zero", bytes));
  const double implied = static_cast<double>(bytes) * 1e-3 / seen.microseconds;
  if (std::abs(implied - seen.algbw_gbytes_per_s) > kUnitTolerance * implied + kPrintsAsZero)
    return corrupt(
        fmt::format("{} bytes in {} us are {:.3g} GB/s, but {} are printed: another unit?", bytes,
                    seen.microseconds, implied, seen.algbw_gbytes_per_s));
  if (seen.busbw_gbytes_per_s <= 0 && seen.algbw_gbytes_per_s > kPrintsAsZero)
    return corrupt(fmt::format(
        "{} bytes: {} GB/s, but a bus bandwidth of zero: one rank alone has no bus; was it built "
        "without MPI, or run with -g 1?",
        bytes, seen.algbw_gbytes_per_s));
  if (seen.busbw_gbytes_per_s > kMostBusShare * seen.algbw_gbytes_per_s + kPrintsAsZero)
    return corrupt(fmt::format("{} bytes: a bus bandwidth of {} GB/s cannot come of {} GB/s", bytes,
                               seen.busbw_gbytes_per_s, seen.algbw_gbytes_per_s));
  return {};
}

bool allChecked(const std::vector<TestRow>& rows, std::string_view program) {
  const auto checked = [&rows](std::optional<Measured> TestRow::* placement) {
    return std::all_of(rows.begin(), rows.end(), [placement](const auto& row) {
      return row.bytes == 0 || !(row.*placement) || (row.*placement)->wrong;
    });
  };
  const auto none = [&rows](std::optional<Measured> TestRow::* placement) {
    return std::none_of(rows.begin(), rows.end(), [placement](const auto& row) {
      return (row.*placement) && (row.*placement)->wrong;
    });
  };
  const bool cannot = program.empty() || program.starts_with("alltoall") ||
                      program.starts_with("sendrecv") || program.starts_with("hypercube");
  return !none(&TestRow::out_of_place) && checked(&TestRow::out_of_place) &&
         (checked(&TestRow::in_place) || (cannot && none(&TestRow::in_place)));
}

Result<NcclTest> parseNcclTestsText(std::string_view output, std::string_view program) {
  Reader reader(program);
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) TRY_OK(reader.take(line));
  return reader.end();
}

}  // namespace muster::collective
