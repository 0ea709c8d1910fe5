// SPDX-License-Identifier: Apache-2.0
// `muster ui`: the page for the user who is logged in on the controller, without a token. A door on
// 127.0.0.1 to the server's Unix socket, where the kernel says whose requests they are. Every
// program of this host can connect to 127.0.0.1, so the door opens with a ticket that is used once,
// and then with a cookie; its name is a host of its own, so that no other port gets the cookie and
// no other name leads here.
#pragma once

#include "base/io/http.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace muster::api {

class PageProxy {
 public:
  /// `port` 0: any. Errors: Unavailable (no server answers on the socket), Denied (this user may
  /// not connect), Conflict (the port)
  static Async<std::unique_ptr<PageProxy>> start(std::filesystem::path socket, std::uint16_t port);
  ~PageProxy();

  /// Where a browser begins: "http://muster-4f….localhost:PORT/?ticket=…". Used once.
  std::string url() const;
  std::uint16_t port() const;

 private:
  struct State;
  explicit PageProxy(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace muster::api
