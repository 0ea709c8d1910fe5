// SPDX-License-Identifier: Apache-2.0
#include "wire/links/counter_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::links {

namespace {

constexpr std::size_t kMaxTextBytes = 512u << 20;  ///< 16,384 HCAs on 49,152 cables are 30 MB
constexpr std::string_view kPerfquery = "# Port ", kExtended = "# Port extended counters",
                           kQueryErrors = "GUID ", kSummary = "nodes checked";
constexpr int kMaxPort = 254;

const CounterRow* rowNamed(std::string_view mad) {
  const auto rows = counterRows();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [mad](const auto& each) { return each.mad == mad; });
  return row == rows.end() ? nullptr : &*row;
}

/// Takes a number off the front.
std::optional<std::uint64_t> take(std::string_view& text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return value;
}

std::optional<std::uint64_t> takeAfter(std::string_view& text, std::string_view label,
                                       int base = 10) {
  const auto at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  return take(text, base);
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  return from == std::string_view::npos
             ? std::string_view{}
             : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::unexpected<Error> corrupt(int line, std::string text) {
  return fail(ErrorCode::Corrupt, fmt::format("line {}: {}", line, std::move(text)));
}

/// Each line, without leading blanks, with its number. The function answers an error to stop.
Result<void> eachLine(std::string_view text,
                      const std::function<Result<void>(std::string_view, int)>& tell) {
  if (text.size() > kMaxTextBytes)
    return fail(ErrorCode::Corrupt, fmt::format("{} bytes of counters are over the bound of {}",
                                                text.size(), kMaxTextBytes));
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.empty()) TRY_OK(tell(line, number));
  }
  return {};
}

class Perfquery {
 public:
  Result<void> line(std::string_view line, int number) {
    if (line.starts_with(kPerfquery)) return head(line, number);
    const auto colon = line.find(':');
    const auto* row = colon == std::string_view::npos ? nullptr : rowNamed(line.substr(0, colon));
    if (!row) return {};  // PortSelect, and counters that no verdict needs
    if (!current_)
      return corrupt(number, "a counter before the line '# Port counters: Lid … port …'");
    const auto digits = line.find_first_not_of('.', colon + 1);
    auto rest = digits == std::string_view::npos ? std::string_view{} : line.substr(digits);
    const auto value = take(rest);
    if (!value) return corrupt(number, fmt::format("{} has no number", row->mad));
    auto& into = (*current_)[row->counter];
    if (is_extended_ || !into) into = *value;
    return {};
  }
  Result<ReadingsByLid> end() {
    if (ports_.empty())
      return fail(ErrorCode::Corrupt,
                  "this is not perfquery's output: no line '# Port counters: Lid … port …'");
    for (const auto& [port, reading] : ports_)
      if (reading.empty())
        return fail(ErrorCode::Corrupt,
                    fmt::format("perfquery ended before the counters of LID {} port {}", port.first,
                                port.second));
    return std::move(ports_);
  }

 private:
  Result<void> head(std::string_view line, int number) {
    is_extended_ = line.starts_with(kExtended);
    const auto lid = takeAfter(line, "Lid "), port = takeAfter(line, " port ");
    if (!lid || !port) return corrupt(number, "expected: # Port counters: Lid NUMBER port NUMBER");
    const std::pair key(static_cast<int>(*lid), static_cast<int>(*port));
    if (!seen_.emplace(key, is_extended_).second)
      return corrupt(number, fmt::format("LID {} port {} occurs twice; two readings are two files",
                                         key.first, key.second));
    current_ = &ports_[key];
    return {};
  }

  ReadingsByLid ports_;
  std::set<std::pair<std::pair<int, int>, bool>> seen_;
  PortReading* current_ = nullptr;
  bool is_extended_ = false;
};

/// What one run of ibqueryerrors printed, up to its summary.
struct QueryRun {
  ReadingsByGuid ports;
  bool lists_errors = false, lists_data = false;  ///< by its headings
  std::uint64_t devices = 0, lines = 0;           ///< headings and ports of the list of errors
  std::uint64_t nodes_checked = 0;
  std::optional<std::uint64_t> bad_nodes, bad_ports;  ///< as the summary says
  std::uint64_t failures = 0;                         ///< ports that did not answer
  std::string thresholds, suppressed;                 ///< what it was told not to list
  int line = 0;                                       ///< of the summary
};

/// "GUID 0x200000 port 5: [SymbolErrorCounter == 120] [PortXmitData == 45216 (176.625KB)]"
class QueryErrors {
 public:
  Result<void> line(std::string_view line, int number) {
    if (line.starts_with(kComment)) return comment(trimmed(line.substr(kComment.size())), number);
    if (is_ended_) current_ = {}, is_ended_ = false;
    if (line.starts_with("Errors for ")) {
      if (current_.lists_data)
        return corrupt(
            number, "errors behind data counters that have no summary: the data counters are cut");
      current_.lists_errors = true, ++current_.devices;
      return {};
    }
    if (line.starts_with("Data Counters for ")) {
      if (current_.lists_errors)
        return corrupt(number,
                       "data counters behind errors that have no summary: the errors are cut");
      current_.lists_data = true;
      return {};
    }
    return line.starts_with(kQueryErrors) ? port(line.substr(kQueryErrors.size()), number)
                                          : Result<void>();
  }
  /// Runs that ended with their summary. Errors: Corrupt (the last one did not)
  Result<std::vector<QueryRun>> end() {
    if (!is_ended_ && (current_.lists_errors || current_.lists_data || !current_.ports.empty()))
      return fail(ErrorCode::Corrupt, "ibqueryerrors ended before its summary");
    return std::move(runs_);
  }

 private:
  /// "Summary: 5 nodes checked, 1 bad nodes found" and the lines behind it, which belong to it.
  Result<void> comment(std::string_view text, int number) {
    if (text.find(kSummary) != std::string_view::npos) {
      if (is_ended_) current_ = {};  // a run that found nothing
      const auto nodes = takeAfter(text, "Summary: ");
      if (!nodes) return corrupt(number, "expected: ## Summary: NUMBER nodes checked, …");
      current_.nodes_checked = *nodes, current_.line = number;
      current_.bad_nodes = takeAfter(text, "checked, ");
      is_ended_ = true;
      runs_.push_back(current_);
      return {};
    }
    if (!is_ended_) return {};
    auto& run = runs_.back();
    if (text.find("ports have errors") != std::string_view::npos)
      run.bad_ports = takeAfter(text, "checked, ");
    else if (text.find("PMA query failures") != std::string_view::npos)
      run.failures = take(text).value_or(1);
    else if (text.starts_with(kThresholds))
      run.thresholds = trimmed(text.substr(kThresholds.size()));
    else if (text.starts_with(kSuppressed))
      run.suppressed = trimmed(text.substr(kSuppressed.size()));
    return {};
  }

  Result<void> port(std::string_view line, int number) {
    const auto guid = take(line, 16);
    if (line.starts_with(" port ALL:")) return {};  // a sum
    const auto port = takeAfter(line, " port ");
    if (!guid || !port || *port > kMaxPort)
      return corrupt(number, "expected: GUID 0x… port NUMBER: [NAME == NUMBER] …");
    ++current_.lines;
    auto& reading = current_.ports[{fmt::format("0x{:016x}", *guid), static_cast<int>(*port)}];
    for (auto open = line.find('['); open != std::string_view::npos; open = line.find('[')) {
      line.remove_prefix(open + 1);
      const auto* row = rowNamed(line.substr(0, line.find(' ')));
      const auto value = takeAfter(line, "== ");
      if (!value) return corrupt(number, "expected: [NAME == NUMBER]");
      if (row) reading[row->counter] = *value;
    }
    return {};
  }

  static constexpr std::string_view kComment = "##",
                                    kThresholds = "Thresholds:", kSuppressed = "Suppressed:";
  QueryRun current_;
  bool is_ended_ = false;  // by its summary; its other lines may follow
  std::vector<QueryRun> runs_;
};

/// The one run of a text that lists data, or that lists errors.
Result<QueryRun> runOf(std::string_view text, bool of_data) {
  QueryErrors parser;
  TRY_OK(
      eachLine(text, [&](std::string_view line, int number) { return parser.line(line, number); }));
  TRY(runs, parser.end());
  std::erase_if(runs, [of_data](const auto& run) { return run.lists_data != of_data; });
  const std::string_view command =
      of_data ? "ibqueryerrors --counters" : "ibqueryerrors --threshold-file /dev/null";
  if (runs.empty())
    return fail(ErrorCode::Corrupt,
                fmt::format("the output of `{}` with its summary is not there: {} counters are not "
                            "known; run both commands for each reading",
                            command, of_data ? "data" : "error"));
  if (runs.size() > 1)
    return corrupt(
        runs[1].line,
        fmt::format("the output of `{}` is there twice; two readings are two files", command));
  return std::move(runs.front());
}

/// That nothing of a list of errors is left out or lost: what it does not list counts as 0.
Result<void> listsAllErrors(const QueryRun& errors, const QueryRun& data) {
  if (!errors.thresholds.empty())
    return corrupt(errors.line,
                   fmt::format("errors up to the thresholds {} are not listed; use ibqueryerrors "
                               "with --threshold-file /dev/null",
                               errors.thresholds));
  if (!errors.suppressed.empty())
    return corrupt(errors.line, fmt::format("the errors {} are not listed; use ibqueryerrors "
                                            "without --suppress and --suppress-common",
                                            errors.suppressed));
  for (const auto* run : {&errors, &data})
    if (run->failures)
      return corrupt(run->line,
                     fmt::format("{} ports did not answer; read them again", run->failures));
  if (errors.bad_nodes.value_or(errors.devices) != errors.devices ||
      errors.bad_ports.value_or(errors.lines) != errors.lines)
    return corrupt(
        errors.line,
        fmt::format("the summary counts {} devices and {} ports with errors, the list "
                    "has {} and {}: a part of it is lost",
                    errors.bad_nodes.value_or(errors.devices),
                    errors.bad_ports.value_or(errors.lines), errors.devices, errors.lines));
  if (errors.nodes_checked != data.nodes_checked)
    return corrupt(data.line, fmt::format("the data counters are of {} nodes, the error counters "
                                          "of {}: run both commands on the whole fabric",
                                          data.nodes_checked, errors.nodes_checked));
  return {};
}

}  // namespace

Result<ReadingsByLid> parsePerfquery(std::string_view text) {
  // A number that is cut is a number.
  if (!text.empty() && !text.ends_with('\n'))
    return fail(ErrorCode::Corrupt,
                "the last line has no end, so its number may be cut; hand over the whole output of "
                "perfquery");
  Perfquery parser;
  TRY_OK(
      eachLine(text, [&](std::string_view line, int number) { return parser.line(line, number); }));
  return parser.end();
}

Result<ReadingsByGuid> parseQueryErrors(std::string_view errors, std::string_view data) {
  TRY(wrong, runOf(errors, false));
  TRY(right, runOf(data, true));
  TRY_OK(listsAllErrors(wrong, right));
  auto out = std::move(right.ports);
  for (auto& [port, reading] : out)
    for (const auto& row : counterRows())
      if (row.meaning != Meaning::Load) reading[row.counter] = 0;
  for (const auto& [port, reading] : wrong.ports)
    for (const auto& row : counterRows())
      if (const auto& value = reading[row.counter]; value && row.meaning != Meaning::Load)
        out[port][row.counter] = *value;
  return out;
}

PortReading readSysfs(const std::function<std::optional<std::uint64_t>(std::string_view)>& value) {
  PortReading out;
  for (const auto& row : counterRows()) out[row.counter] = value(row.sysfs);
  return out;
}

}  // namespace muster::links
