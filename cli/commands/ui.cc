// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/ui.h"

#include "api/page_proxy.h"
#include "api/server.h"
#include "app/site/actor.h"
#include "base/async/start.h"
#include "cli/exit_code.h"

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

namespace muster::cli {

int ui(const app::Options& options, const UiArgs& args) {
  const auto socket = args.socket.empty() ? api::defaultSocket(options) : args.socket;
  asio::io_context io;
  std::optional<Result<std::unique_ptr<api::PageProxy>>> proxy;
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const auto&, int) { io.stop(); });
  async::start(
      io, async::answerInto(proxy, api::PageProxy::start(socket, args.port)),
      [&](const std::exception_ptr&) {
        if (!proxy || !*proxy) return io.stop();
        std::cout << fmt::format(
                         "Open {0}\nIt works once, in one browser. For a browser elsewhere: ssh -L "
                         "{1}:127.0.0.1:{1} {2}\nCtrl-C ends it.\n",
                         (**proxy)->url(), (**proxy)->port(), app::hostName())
                  << std::flush;
      });
  io.run();
  if (!proxy) return kOk;
  if (!*proxy)
    return report(Error((*proxy).error())
                      .within("`muster ui` shows the page of a `muster server` that runs"));
  return kOk;
}

}  // namespace muster::cli
