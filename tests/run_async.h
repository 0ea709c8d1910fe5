// SPDX-License-Identifier: Apache-2.0
// Runs one coroutine to its end on an io_context of its own; for tests of real I/O.
#pragma once

#include "base/async/start.h"
#include "base/async/task.h"

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace muster::test {

/// Runs `work` until it ends, throws (Internal) or `limit` has passed (Timeout).
Result<void> runToEnd(asio::io_context& io, Task<void> work, std::chrono::seconds limit);

/// `limit` stops a test that hangs; the answer is then Timeout.
template <class T>
Result<T> runAsync(asio::io_context& io, Async<T> work,
                   std::chrono::seconds limit = std::chrono::seconds(20)) {
  std::optional<Result<T>> answer;
  if (auto ended = runToEnd(io, async::answerInto(answer, std::move(work)), limit); !ended)
    return fail(ended.error());
  return std::move(*answer);
}

template <class T>
Result<T> runAsync(Async<T> work, std::chrono::seconds limit = std::chrono::seconds(20)) {
  asio::io_context io;
  return runAsync(io, std::move(work), limit);
}

/// A folder that disappears with the test.
class TempFolder {
 public:
  explicit TempFolder(
      const std::filesystem::path& beneath = std::filesystem::temp_directory_path()) {
    auto pattern = (beneath / "muster-test-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::test
