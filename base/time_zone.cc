// SPDX-License-Identifier: Apache-2.0
#include "base/time_zone.h"

#include "base/io/regular_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace muster {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr const char* kZones = "/usr/share/zoneinfo";
constexpr std::size_t kMaxNameBytes = 64, kMaxFileBytes = 256u << 10;
constexpr std::size_t kHeaderBytes = 44, kTypeBytes = 6;
constexpr std::int64_t kMaxChanges = 100'000;
constexpr int kMaxOffsetHours = 24, kMaxRuleHours = 167;
/// No offset of a zone is further from UTC.
constexpr seconds kMaxOffset = std::chrono::hours(kMaxOffsetHours + 2);
constexpr int kSecondsOfMinute = 60, kSecondsOfHour = 3600;
constexpr int kLastWeek = 5, kMonths = 12, kDaysOfWeek = 7, kDaysOfYear = 365;
constexpr int kLastFebruaryDay = 59;  ///< as a Julian day, which knows no leap day

std::int64_t bigEndian(std::string_view bytes) {
  std::uint64_t value = static_cast<unsigned char>(bytes.front()) & 0x80u ? ~std::uint64_t{0} : 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

struct Counts {
  std::int64_t utc_marks, standard_marks, leaps, changes, types, name_bytes;
  std::size_t bytes(std::size_t time_bytes) const {
    return static_cast<std::size_t>(changes * static_cast<std::int64_t>(time_bytes + 1) +
                                    types * static_cast<std::int64_t>(kTypeBytes) + name_bytes +
                                    leaps * static_cast<std::int64_t>(time_bytes + 4) +
                                    standard_marks + utc_marks);
  }
};

std::optional<Counts> countsOf(std::string_view header) {
  if (header.size() < kHeaderBytes || !header.starts_with("TZif")) return std::nullopt;
  const auto count = [&](std::size_t at) { return bigEndian(header.substr(20 + 4 * at, 4)); };
  const Counts out{count(0), count(1), count(2), count(3), count(4), count(5)};
  for (const auto each :
       {out.utc_marks, out.standard_marks, out.leaps, out.changes, out.types, out.name_bytes})
    if (each < 0 || each > kMaxChanges) return std::nullopt;
  return out;
}

int yearOf(sys_seconds at) {
  return static_cast<int>(std::chrono::year_month_day(std::chrono::floor<days>(at)).year());
}

std::optional<int> number(std::string_view& text, int max) {
  int value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && value <= max)
    value = value * 10 + (text[digits++] - '0');
  if (digits == 0 || value > max) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char what) {
  if (!text.starts_with(what)) return false;
  text.remove_prefix(1);
  return true;
}

bool isCapital(char c) { return c >= 'A' && c <= 'Z'; }

/// Every part of a name of the database begins with a capital. So these are none: "localtime" and
/// "posixrules" (what the machine is set to), "right/…" (which counts leap seconds), and paths.
bool isZoneName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  char before = '/';
  for (const char c : name) {
    const bool is_other = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
                          c == '-' || c == '+' || c == '/';
    if (!isCapital(c) && (before == '/' || !is_other)) return false;
    before = c;
  }
  return before != '/';
}

Error corrupt(std::string_view what) {
  return Error(ErrorCode::Corrupt, fmt::format("the time zone file {}", what));
}

}  // namespace

// ---- the rule at the end of the file: POSIX's TZ, with RFC 8536's hours beyond a day

bool TimeZone::skipName(std::string_view& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.starts_with('<')) {
    const auto end = text.find('>');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
    return true;
  }
  const auto end = std::find_if_not(text.begin(), text.end(), is_letter);
  const auto letters = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(letters);
  return letters >= 3;
}

std::optional<seconds> TimeZone::parseOffset(std::string_view& text, int max_hours) {
  const bool negative = take(text, '-');
  if (!negative) take(text, '+');
  const auto hours = number(text, max_hours);
  if (!hours) return std::nullopt;
  seconds out = std::chrono::hours(*hours);
  for (const int unit : {kSecondsOfMinute, 1}) {
    if (!take(text, ':')) break;
    const auto part = number(text, kSecondsOfMinute - 1);
    if (!part) return std::nullopt;
    out += seconds(*part * unit);
  }
  return negative ? -out : out;
}

std::optional<TimeZone::YearlyDate> TimeZone::parseDate(std::string_view& text) {
  YearlyDate out;
  out.time = seconds(2 * kSecondsOfHour);
  if (take(text, 'M')) {
    const auto month = number(text, kMonths);
    const auto week = month && take(text, '.') ? number(text, kLastWeek) : std::nullopt;
    const auto day = week && take(text, '.') ? number(text, kDaysOfWeek - 1) : std::nullopt;
    if (!day || *month == 0 || *week == 0) return std::nullopt;
    out.month = *month;
    out.week = *week;
    out.day = *day;
  } else {
    const bool julian = take(text, 'J');
    out.kind = julian ? YearlyDate::Kind::JulianDay : YearlyDate::Kind::DayOfYear;
    const auto day = number(text, kDaysOfYear);
    if (!day || (julian && *day == 0)) return std::nullopt;
    out.day = *day;
  }
  if (take(text, '/')) {
    const auto time = parseOffset(text, kMaxRuleHours);
    if (!time) return std::nullopt;
    out.time = *time;
  }
  return out;
}

std::optional<TimeZone::Rule> TimeZone::parseRule(std::string_view text) {
  Rule out;
  if (!skipName(text)) return std::nullopt;
  const auto west = parseOffset(text, kMaxOffsetHours);
  if (!west) return std::nullopt;
  out.standard = -*west;
  if (text.empty()) return out;
  Rule::Summer summer;
  if (!skipName(text)) return std::nullopt;
  summer.offset = out.standard + seconds(kSecondsOfHour);
  if (!text.starts_with(',')) {
    const auto summer_west = parseOffset(text, kMaxOffsetHours);
    if (!summer_west) return std::nullopt;
    summer.offset = -*summer_west;
  }
  for (auto* date : {&summer.begins, &summer.ends}) {
    const auto read = take(text, ',') ? parseDate(text) : std::nullopt;
    if (!read) return std::nullopt;
    *date = *read;
  }
  if (!text.empty()) return std::nullopt;
  out.summer = summer;
  return out;
}

local_seconds TimeZone::YearlyDate::of(int year) const {
  using namespace std::chrono;
  const std::chrono::year in(year);
  const auto first = local_days(in / January / 1);
  if (kind == Kind::DayOfYear) return first + days(day) + time;
  if (kind == Kind::JulianDay)
    return first + days(day - 1 + (in.is_leap() && day > kLastFebruaryDay ? 1 : 0)) + time;
  const auto of_month = in / std::chrono::month(static_cast<unsigned>(month));
  const weekday on(static_cast<unsigned>(day));
  if (week == kLastWeek) return local_days(of_month / on[last]) + time;
  return local_days(of_month / on[static_cast<unsigned>(week)]) + time;
}

// ---- the file

Result<TimeZone> TimeZone::load(const std::string& name) {
  const bool is_name = isZoneName(name);
  std::optional<std::string> file;
  if (is_name)
    if (auto read = io::readRegularFile(std::filesystem::path(kZones) / name, kMaxFileBytes))
      file = std::move(*read);
  if (!file) {
    std::error_code ignored;
    if (is_name && !std::filesystem::exists(std::filesystem::path(kZones) / "UTC", ignored))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("this machine has no time zones in {}: install tzdata", kZones));
    return fail(ErrorCode::InvalidInput,
                "no such time zone; write one of the IANA database, like Europe/Berlin or UTC");
  }
  auto zone = parse(*file);
  if (!zone)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is no time zone: {}", name, zone.error().text()));
  return zone;
}

Result<TimeZone> TimeZone::parse(std::string_view file) {
  constexpr std::size_t kOldTimeBytes = 4, kTimeBytes = 8;
  const auto old = countsOf(file);
  if (!old) return fail(corrupt("does not begin as one"));
  if (file[4] < '2') return fail(corrupt("is of version 1"));
  const auto skipped = kHeaderBytes + old->bytes(kOldTimeBytes);
  if (file.size() < skipped) return fail(corrupt("ends early"));
  file.remove_prefix(skipped);
  const auto counts = countsOf(file);
  if (!counts || counts->types == 0) return fail(corrupt("has no second part"));
  const auto data = kHeaderBytes + counts->bytes(kTimeBytes);
  if (file.size() < data) return fail(corrupt("ends early"));
  const auto changes = static_cast<std::size_t>(counts->changes);
  const auto times = file.substr(kHeaderBytes, changes * kTimeBytes);
  const auto kinds = file.substr(kHeaderBytes + changes * kTimeBytes, changes);
  const auto types = file.substr(kHeaderBytes + changes * (kTimeBytes + 1));
  const auto offset_of = [&](std::size_t type) -> std::optional<seconds> {
    if (static_cast<std::int64_t>(type) >= counts->types) return std::nullopt;
    const seconds offset(bigEndian(types.substr(type * kTypeBytes, 4)));
    if (offset > kMaxOffset || offset < -kMaxOffset) return std::nullopt;
    return offset;
  };
  TimeZone out;
  const auto first = offset_of(0);
  if (!first) return fail(corrupt("has an offset beyond a day"));
  out.first_offset_ = *first;
  for (std::size_t i = 0; i < changes; ++i) {
    const sys_seconds at(seconds(bigEndian(times.substr(i * kTimeBytes, kTimeBytes))));
    const auto offset = offset_of(static_cast<unsigned char>(kinds[i]));
    if (!offset) return fail(corrupt("has an offset that is none"));
    if (!out.changes_.empty() && at <= out.changes_.back().at)
      return fail(corrupt("has changes that are not in order"));
    out.changes_.push_back({at, *offset});
  }
  auto rule = file.substr(data);
  if (!take(rule, '\n') || !rule.ends_with('\n')) return fail(corrupt("has no rule at its end"));
  rule.remove_suffix(1);
  out.rule_.standard = out.changes_.empty() ? out.first_offset_ : out.changes_.back().offset;
  if (rule.empty()) return out;  // what held last holds on
  const auto read = parseRule(rule);
  if (!read) return fail(corrupt("has a rule at its end that is none"));
  out.rule_ = *read;
  return out;
}

// ---- asking

void TimeZone::addOfRule(int year, std::vector<Change>& out) const {
  if (!rule_.summer) return;
  const auto& summer = *rule_.summer;
  // A date of the rule is said in the time that holds before it.
  const Change begins{sys_seconds(summer.begins.of(year).time_since_epoch() - rule_.standard),
                      summer.offset};
  const Change ends{sys_seconds(summer.ends.of(year).time_since_epoch() - summer.offset),
                    rule_.standard};
  for (const auto& change : {begins, ends})
    if (changes_.empty() || change.at > changes_.back().at) out.push_back(change);
}

std::vector<TimeZone::Change> TimeZone::changesBetween(sys_seconds from, sys_seconds to) const {
  std::vector<Change> out;
  const auto begin =
      std::lower_bound(changes_.begin(), changes_.end(), from,
                       [](const Change& change, sys_seconds time) { return change.at < time; });
  for (auto change = begin; change != changes_.end() && change->at <= to; ++change)
    out.push_back(*change);
  std::vector<Change> later;
  if (changes_.empty() || to > changes_.back().at)
    for (int year = yearOf(from) - 1; year <= yearOf(to) + 1; ++year) addOfRule(year, later);
  // Stable: where summer ends when the next one begins, it begins last.
  std::stable_sort(later.begin(), later.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  for (const auto& change : later)
    if (change.at >= from && change.at <= to) out.push_back(change);
  return out;
}

seconds TimeZone::offsetAt(sys_seconds at) const {
  if (changes_.empty() || at >= changes_.back().at) {
    if (!rule_.summer) return rule_.standard;
    const auto recent = changesBetween(at - days(2 * kDaysOfYear), at);
    if (!recent.empty()) return recent.back().offset;
    return rule_.standard;
  }
  const auto next =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](sys_seconds time, const Change& change) { return time < change.at; });
  return next == changes_.begin() ? first_offset_ : std::prev(next)->offset;
}

local_seconds TimeZone::toLocal(sys_seconds at) const {
  return local_seconds(at.time_since_epoch() + offsetAt(at));
}

sys_seconds TimeZone::toUtc(local_seconds local) const {
  const sys_seconds as_if_utc(local.time_since_epoch());
  const auto from = as_if_utc - 2 * kMaxOffset, to = as_if_utc + 2 * kMaxOffset;
  auto offset = offsetAt(from);
  for (const auto& change : changesBetween(from + seconds(1), to)) {
    // In local time the offset before holds until here, and a gap counts with it, too.
    const auto ends = change.at + offset, begins = change.at + change.offset;
    if (as_if_utc < std::max(ends, begins)) break;
    offset = change.offset;
  }
  return as_if_utc - offset;
}

}  // namespace muster
