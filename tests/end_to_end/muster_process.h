// SPDX-License-Identifier: Apache-2.0
// muster itself as a child process: its JSON events line by line, and SIGKILL at a chosen one.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace muster::test {

struct Finished {
  int code = 0;  ///< 128 + signal when it was killed
  std::string out;
};

/// Runs the built `muster` with these arguments to its end; stderr goes with stdout.
Finished runMuster(const std::vector<std::string>& args);

/// `muster … apply --json`, watched.
class WatchedApply {
 public:
  explicit WatchedApply(std::vector<std::string> args = {});
  ~WatchedApply();

  /// Reads events until one fits; false when muster ended before.
  bool until(const std::function<bool(const nlohmann::json&)>& fits);
  /// SIGKILL, and reap. The whole process, in the middle of whatever it does.
  void kill();
  /// Reads to the end; the exit code.
  int wait();
  const std::vector<nlohmann::json>& events() const { return events_; }

 private:
  bool nextLine(std::string& line);
  pid_t pid_ = -1;
  int out_ = -1;
  std::string buffer_;
  std::vector<nlohmann::json> events_;
};

}  // namespace muster::test
