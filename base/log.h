// SPDX-License-Identifier: Apache-2.0
// Process log (spdlog behind a small face). Secrets never go in: a Secret does not format.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace muster {

enum class LogLevel { Debug, Info, Warning, Error };

/// Sends the log to a file, or to stderr when the path is empty. A file that has grown large is
/// moved aside; few are kept.
void startLog(const std::filesystem::path& file, LogLevel level);
void logText(LogLevel level, std::string_view area, std::string_view text);

template <class... Args>
void logInfo(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  logText(LogLevel::Info, area, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void logWarning(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  logText(LogLevel::Warning, area, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void logDebug(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  logText(LogLevel::Debug, area, fmt::format(format, std::forward<Args>(args)...));
}

/// A value that must not appear in logs, plans, events or process arguments. Wiped on destruction.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();
  const std::string& reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string value_;
};

}  // namespace muster
