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

/// "GUID 0x200000 port 5: [SymbolErrorCounter == 120] [PortXmitData == 45216 (176.625KB)]"
class QueryErrors {
 public:
  explicit QueryErrors(ReadingsByGuid& into) : into_(into) {}

  Result<void> line(std::string_view line, int number) {
    complete_ = complete_ || line.find(kSummary) != std::string_view::npos;
    if (!line.starts_with(kQueryErrors)) return {};
    line.remove_prefix(kQueryErrors.size());
    const auto guid = take(line, 16);
    if (line.starts_with(" port ALL:")) return {};  // a sum
    const auto port = takeAfter(line, " port ");
    if (!guid || !port || *port > kMaxPort)
      return corrupt(number, "expected: GUID 0x… port NUMBER: [NAME == NUMBER] …");
    auto& reading = into_[{fmt::format("0x{:016x}", *guid), static_cast<int>(*port)}];
    for (auto open = line.find('['); open != std::string_view::npos; open = line.find('[')) {
      line.remove_prefix(open + 1);
      const auto* row = rowNamed(line.substr(0, line.find(' ')));
      const auto value = takeAfter(line, "== ");
      if (!value) return corrupt(number, "expected: [NAME == NUMBER]");
      if (row) reading[row->counter] = *value;
    }
    return {};
  }
  bool complete() const { return complete_; }

 private:
  ReadingsByGuid& into_;
  bool complete_ = false;
};

Result<ReadingsByGuid> parseOne(std::string_view text, std::string_view what) {
  ReadingsByGuid out;
  QueryErrors parser(out);
  TRY_OK(
      eachLine(text, [&](std::string_view line, int number) { return parser.line(line, number); }));
  if (!parser.complete())
    return fail(ErrorCode::Corrupt, fmt::format("{} ended before its summary", what));
  return out;
}

}  // namespace

Result<ReadingsByLid> parsePerfquery(std::string_view text) {
  Perfquery parser;
  TRY_OK(
      eachLine(text, [&](std::string_view line, int number) { return parser.line(line, number); }));
  return parser.end();
}

Result<ReadingsByGuid> parseQueryErrors(std::string_view errors, std::string_view data) {
  TRY(wrong, parseOne(errors, "ibqueryerrors"));
  TRY(out, parseOne(data, "ibqueryerrors --counters"));
  for (auto& [port, reading] : out)
    for (const auto& row : counterRows())
      if (row.meaning != Meaning::Load) reading[row.counter] = 0;
  for (const auto& [port, reading] : wrong)
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
