// SPDX-License-Identifier: Apache-2.0
#include "app/store_watch.h"

#include "base/log.h"
#include "lifecycle/store/store_loss.h"

#include <cstdlib>
#include <iostream>

namespace muster::app {
namespace {

constexpr std::chrono::seconds kLookPeriod{2};

}  // namespace

StoreWatch::StoreWatch(boost::asio::io_context& context, const lifecycle::Store& store)
    : timer_(context), store_(store) {
  look();
}

void StoreWatch::look() {
  if (const auto loss = lifecycle::storeLoss(store_)) {
    logText(LogLevel::Error, "store", loss->str());
    std::cerr << "\nmuster: " << loss->str() << "\n" << std::flush;
    std::_Exit(kLostStore);  // closing the store would tidy up files that are another's by now
  }
  timer_.expires_after(kLookPeriod);
  timer_.async_wait([this](boost::system::error_code stopped) {
    if (!stopped) look();
  });
}

}  // namespace muster::app
