// SPDX-License-Identifier: Apache-2.0
#include "app/site/store_watch.h"

#include "base/log.h"
#include "lifecycle/store/store_loss.h"

#include <cstdlib>
#include <iostream>

namespace muster::app {
StoreWatch::StoreWatch(boost::asio::io_context& context, const lifecycle::Store& store,
                       const StateLock& lock)
    : timer_(context), store_(store), lock_(lock) {
  look();
}

void StoreWatch::look() {
  if (const auto loss = lifecycle::storeLoss(store_)) end(loss->str());
  if (const auto lost = lock_.lost())
    end(fmt::format(
        "{}, a lock that this muster holds, was deleted or replaced under it: another muster may "
        "begin to work beside it, so it stops. Nobody may delete, move or restore files of the "
        "state folder while a muster runs; see who did, then start muster again",
        lost->string()));
  timer_.expires_after(kLockLookPeriod);
  timer_.async_wait([this](boost::system::error_code stopped) {
    if (!stopped) look();
  });
}

void StoreWatch::end(const std::string& why) {
  logText(LogLevel::Error, "store", why);
  std::cerr << "\nmuster: " << why << "\n" << std::flush;
  std::_Exit(kLostStore);  // closing the store would tidy up files that are another's by now
}

}  // namespace muster::app
