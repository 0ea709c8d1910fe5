// SPDX-License-Identifier: Apache-2.0
// Runs one coroutine to its end on an io_context of its own; for tests of real I/O.
#pragma once

#include "base/async/task.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace muster::test {

/// `limit` stops a test that hangs; the answer is then Timeout.
template <class T>
Result<T> runAsync(asio::io_context& io, Async<T> work,
                   std::chrono::seconds limit = std::chrono::seconds(20)) {
  std::optional<Result<T>> answer;
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr thrown, Result<T> result) {
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& e) {
        answer = fail(ErrorCode::Internal, std::string("the coroutine threw: ") + e.what());
      }
    } else {
      answer = std::move(result);
    }
    io.stop();
  });
  io.restart();
  io.run_for(limit);
  if (!answer) return fail(ErrorCode::Timeout, "the test's coroutine did not finish");
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
  TempFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").string();
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
