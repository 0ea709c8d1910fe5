// SPDX-License-Identifier: Apache-2.0
#include "tests/run_async.h"

namespace muster::test {

Result<void> runToEnd(asio::io_context& io, Task<void> work, std::chrono::seconds limit) {
  std::optional<Result<void>> end;
  async::start(io, std::move(work), [&](std::exception_ptr thrown) {
    end.emplace();
    if (thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& e) {
        end = fail(ErrorCode::Internal, std::string("the coroutine threw: ") + e.what());
      }
    }
    io.stop();
  });
  io.restart();
  io.run_for(limit);
  if (!end) return fail(ErrorCode::Timeout, "the test's coroutine did not finish");
  return std::move(*end);
}

}  // namespace muster::test
