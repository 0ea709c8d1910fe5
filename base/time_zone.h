// SPDX-License-Identifier: Apache-2.0
// TimeZone: what a clock on the wall shows at an instant, and the other way round. Reads the
// system's time zone files; one zone is a value, so two zones can be used side by side (which the
// C library's TZ cannot). docs/adr/0319
#pragma once

#include "base/clock.h"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class TimeZone {
 public:
  /// `name`: of the IANA database, "Europe/Berlin". Errors: InvalidInput (no such name; the machine
  /// has no time zones)
  static Result<TimeZone> load(const std::string& name);
  /// The content of a time zone file, version 2 or later. Errors: Corrupt (says what)
  /// Source: RFC 8536 (TZif)
  static Result<TimeZone> parse(std::string_view file);

  /// Local time minus UTC at an instant.
  std::chrono::seconds offsetAt(std::chrono::sys_seconds at) const;
  std::chrono::local_seconds toLocal(std::chrono::sys_seconds at) const;
  /// A time that the clocks skip counts with the offset before the change; of one that occurs twice
  /// it is the first.
  /// Source: RFC 5545, 3.3.5
  std::chrono::sys_seconds toUtc(std::chrono::local_seconds local) const;

 private:
  struct Change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset;  ///< from then on
  };
  /// A day and time of each year on which clocks change.
  struct YearlyDate {
    enum class Kind { JulianDay, DayOfYear, WeekdayOfMonth } kind = Kind::WeekdayOfMonth;
    int day = 0, week = 0, month = 0;  ///< week 5: the last
    std::chrono::seconds time{0};      ///< local, after the day's midnight; may be before it
    std::chrono::local_seconds of(int year) const;
  };
  /// What holds after the last change of the table.
  struct Rule {
    std::chrono::seconds standard{0};
    struct Summer {
      std::chrono::seconds offset{0};
      YearlyDate begins, ends;
    };
    std::optional<Summer> summer;
  };
  static std::optional<Rule> parseRule(std::string_view text);
  static std::optional<std::chrono::seconds> parseOffset(std::string_view& text, int max_hours);
  static bool skipName(std::string_view& text);
  static std::optional<YearlyDate> parseDate(std::string_view& text);

  /// In order: those of the table and of the rule that lie in [from, to].
  std::vector<Change> changesBetween(std::chrono::sys_seconds from,
                                     std::chrono::sys_seconds to) const;
  void addOfRule(int year, std::vector<Change>& out) const;

  std::chrono::seconds first_offset_{0};  ///< before the first change
  std::vector<Change> changes_;           ///< in order
  Rule rule_;
};

}  // namespace muster
