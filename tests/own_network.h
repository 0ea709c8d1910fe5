// SPDX-License-Identifier: Apache-2.0
// A network namespace of a test's own, with a wire in it of which nobody holds the other end.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace muster::test {

/// This thread's, and that of the processes it starts, until leave() or the end.
class OwnNetwork {
 public:
  OwnNetwork() = default;
  OwnNetwork(const OwnNetwork&) = delete;
  ~OwnNetwork() { leave(); }

  /// Empty: this thread is in it. Otherwise why it cannot be made here: a reason to skip.
  std::string enter() {
    if (::geteuid() != 0) return "needs root for network namespaces";
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) == 0) return {};
    const std::string why = std::strerror(errno);
    home_ = io::Fd();
    return "network namespaces cannot be made here: " + why;
  }
  /// Interfaces `wire` and `far`, joined and up, and loopback. `address` of `wire`; empty: none.
  static Result<void> addWire(const std::string& far, const std::string& address) {
    auto lines = "ip link set lo up && ip link add wire type veth peer name " + far +
                 " && ip link set wire up && ip link set " + far + " up";
    if (!address.empty()) lines += " && ip addr add " + address + " dev wire";
    TRY(done, io::runChecked({.program = "sh", .args = {"-c", lines}}));
    (void)done;
    return {};
  }
  void leave() {
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    home_ = io::Fd();
  }

 private:
  io::Fd home_;
};

}  // namespace muster::test
