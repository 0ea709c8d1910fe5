// SPDX-License-Identifier: Apache-2.0
// What a phase throws stops here: a broken phase fails its own work, never everybody's run.
#pragma once

#include "base/async/task.h"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <fmt/format.h>

namespace muster::lifecycle {

/// Awaits `work`. An exception becomes Internal; a cancellation goes on its way.
template <class T>
Async<T> catchExceptions(std::string what, Async<T> work) {
  std::string thrown;
  try {
    auto result = co_await std::move(work);
    co_return result;
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;
    thrown = error.what();
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  co_return fail(ErrorCode::Internal,
                 fmt::format("{} threw '{}'; this is a defect in muster", what, thrown));
}

}  // namespace muster::lifecycle
