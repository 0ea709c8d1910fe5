// SPDX-License-Identifier: Apache-2.0
// | memory                    | Pass                        |   DCGM 4: one line, then one a GPU
// |                           | GPU0: Pass                  |
// | GPU Memory                | Pass - GPUs: 1, 2, 3        |   before: the GPUs of each status
// |                           | Fail - GPU: 0               |
// | Warning                   | GPU 0 Thermal violations... |   wrapped where the column ends
#include "validate/collective/dcgm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace muster::collective {
namespace {

constexpr std::size_t kMaxText = 4096;  ///< bytes of one warning

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

struct Row {
  std::string_view name, value;
};

/// A rule ("+----+----+") and a heading ("|-----  Hardware  ---+----|") are none.
std::optional<Row> rowOf(std::string_view line) {
  line = trimmed(line);
  if (line.size() < 5 || line.front() != '|' || line.back() != '|' || line.starts_with("|--"))
    return std::nullopt;
  const auto bar = line.find('|', 1);
  if (bar == line.size() - 1) return std::nullopt;
  return Row{trimmed(line.substr(1, bar - 1)),
             trimmed(line.substr(bar + 1, line.size() - bar - 2))};
}

std::optional<DcgmStatus> statusAt(std::string_view& value) {
  struct Word {
    std::string_view text;
    DcgmStatus status;
  };
  static constexpr Word kWords[] = {
      {"Pass", DcgmStatus::Pass},       {"Warn", DcgmStatus::Warn},
      {"Fail", DcgmStatus::Fail},       {"Skip", DcgmStatus::Skip},
      {"Not Run", DcgmStatus::Missing}, {"Not run", DcgmStatus::Missing}};
  for (const auto& word : kWords)
    if (value.starts_with(word.text)) {
      value = trimmed(value.substr(word.text.size()));
      return word.status;
    }
  return std::nullopt;
}

std::optional<int> intAt(std::string_view& text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

/// "- GPUs: 1, 2, 3", "- GPU: 0", "- All", "".
struct Whose {
  bool all = false;
  std::vector<int> gpus;
};
std::optional<Whose> whose(std::string_view rest) {
  if (rest.empty()) return Whose{};
  if (!rest.starts_with('-')) return std::nullopt;
  rest = trimmed(rest.substr(1));
  if (rest == "All") return Whose{true, {}};
  if (!rest.starts_with("GPU")) return std::nullopt;
  rest = trimmed(rest.substr(rest.starts_with("GPUs") ? 4 : 3));
  if (rest.starts_with(':')) rest = trimmed(rest.substr(1));
  Whose out;
  while (!rest.empty()) {
    const auto gpu = intAt(rest);
    if (!gpu) return std::nullopt;
    out.gpus.push_back(*gpu);
    rest = trimmed(rest);
    if (rest.starts_with(',')) rest = trimmed(rest.substr(1));
  }
  return out.gpus.empty() ? std::nullopt : std::optional(out);
}

class Table {
 public:
  Result<void> take(const Row& row) {
    if (row.name == "Diagnostic" && row.value == "Result") {
      began_ = true;
      return {};
    }
    if (!began_) return {};
    if (row.name.empty() && in_text_) return more(row.value);
    if (row.name == "Warning" || row.name == "Error" || row.name == "Info") {
      in_text_ = true, is_warning_ = row.name != "Info";
      if (is_warning_)
        report_.findings.push_back({test_, "", "", DcgmStatus::Warn, std::string(row.value)});
      return {};
    }
    in_text_ = false;
    if (takeMetadata(row)) return {};
    if (!row.name.empty()) test_ = row.name;
    return takeResult(row.value);
  }

  Result<DcgmReport> end() {
    if (!began_ || report_.results.empty())
      return fail(ErrorCode::Corrupt, "the output has no table of a diagnostic");
    // What all GPUs did is known once all of them are.
    if (report_.gpus.empty() && report_.devices)
      for (std::size_t i = 0; i < report_.devices; ++i) report_.gpus.insert(static_cast<int>(i));
    const auto results = std::move(report_.results);
    report_.results.clear();
    for (const auto& result : results) {
      if (!of_all_.contains(result.test) || result.gpu) {
        report_.results.push_back(result);
        continue;
      }
      for (const int gpu : report_.gpus)
        report_.results.push_back({result.test, gpu, result.status});
    }
    return std::move(report_);
  }

 private:
  Result<void> more(std::string_view value) {
    if (!is_warning_ || report_.findings.empty()) return {};
    auto& text = report_.findings.back().text;
    if (text.size() + value.size() < kMaxText) text += value;
    return {};
  }
  bool takeMetadata(const Row& row) {
    if (row.name.ends_with("Version") || row.name == "Driver Version Detected") {
      if (row.name == "DCGM Version") report_.version = row.value;
      if (row.name == "Driver Version Detected") report_.driver = row.value;
      in_ids_ = false;
      return true;
    }
    if (row.name.ends_with("Device IDs Detected") || row.name.ends_with("Device Serials")) {
      in_ids_ = true, counts_ids_ = row.name.starts_with("GPU Device IDs");
      countIds(row.value);
      return true;
    }
    if (in_ids_ && row.name.empty()) {
      countIds(row.value);
      return true;
    }
    in_ids_ = false;
    return false;
  }
  /// "2330, 2330, 2330,": wrapped at any place, so commas are counted, not words.
  void countIds(std::string_view value) {
    if (!counts_ids_) return;
    if (report_.devices == 0) report_.devices = 1;
    report_.devices += static_cast<std::size_t>(std::count(value.begin(), value.end(), ','));
  }
  Result<void> takeResult(std::string_view value) {
    std::optional<int> gpu;
    std::string entity;
    if (const auto colon = value.find(": "); value.starts_with("GPU") && colon != value.npos) {
      auto number = trimmed(value.substr(3, colon - 3));
      gpu = intAt(number);
      if (gpu) entity = fmt::format("GPU {}", *gpu), value = trimmed(value.substr(colon + 2));
    } else if (const auto at = value.find(": "); at != value.npos && test_ != "" &&
                                                 value.find_first_of("0123456789") < at &&
                                                 value.find(' ') > at) {
      entity = std::string(value.substr(0, at)), value = trimmed(value.substr(at + 2));  // "CPU0"
    }
    const auto status = statusAt(value);
    const auto of = status ? whose(value) : std::nullopt;
    if (!status || !of || test_.empty())
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} has a result that cannot be read: {}",
                              test_.empty() ? "the table" : test_, value.substr(0, 100)));
    const auto add = [&](std::optional<int> which, std::string name) {
      if (which) report_.gpus.insert(*which);
      DcgmFinding finding{test_, std::move(name), "", *status, std::string(said(*status))};
      addDcgmResult(report_, {dcgmTestName(test_), which, *status}, std::move(finding));
    };
    if (of->all) of_all_.insert(dcgmTestName(test_));
    if (of->gpus.empty()) add(gpu, entity);
    for (const int each : of->gpus) add(each, fmt::format("GPU {}", each));
    return {};
  }

  DcgmReport report_;
  bool began_ = false, in_text_ = false, is_warning_ = false, in_ids_ = false, counts_ids_ = false;
  std::string test_;
  std::set<std::string> of_all_;
};

}  // namespace

Result<DcgmReport> parseDcgmTable(std::string_view output) {
  Table table;
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);)
    if (const auto row = rowOf(line)) TRY_OK(table.take(*row));
  return table.end();
}

}  // namespace muster::collective
