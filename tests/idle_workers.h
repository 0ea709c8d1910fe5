// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/async/task.h"

#include <boost/asio/post.hpp>

#include <future>

namespace muster::test {

/// The single worker takes jobs in order: when this one is done, so are all before it.
inline void waitUntilIdle(Workers& workers) {
  std::promise<void> idle;
  asio::post(workers.pool(), [&idle] { idle.set_value(); });
  idle.get_future().wait();
}

}  // namespace muster::test
