// SPDX-License-Identifier: Apache-2.0
#include "provision/images/gone_watch.h"

#include "base/log.h"

#include <poll.h>

#include <cstdlib>
#include <utility>

namespace muster::provision {
namespace {
constexpr int kLookMilliseconds = 500;  // how late the watch itself ends
}

GoneWatch::GoneWatch(int connection, std::string said)
    : thread_([connection, said = std::move(said)](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          pollfd wait{connection, POLLRDHUP, 0};
          if (::poll(&wait, 1, kLookMilliseconds) > 0 && !stop.stop_requested()) {
            logWarning("image", "{}", said);
            std::_Exit(EXIT_FAILURE);
          }
        }
      }) {}

}  // namespace muster::provision
