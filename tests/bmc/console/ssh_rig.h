// SPDX-License-Identifier: Apache-2.0
// A BMC's SSH server on loopback: Debian's dropbear, which OpenBMC and others run as well. Its
// account exists only in a mount namespace of its own.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/bmc/console/machine_line.h"
#include "tests/free_port.h"
#include "tests/run_async.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace muster::test {

class SshRig {
 public:
  /// `cli`: what its command line must hear before it is the console; empty: the session is the
  /// console.
  explicit SshRig(std::string_view cli = {}, std::string more_args = {})
      : more_args_(std::move(more_args)) {
    write(
        "enter",
        fmt::format("#!/bin/sh\n{}stty raw -echo\ncat {} &\nexec cat > {}\n",
                    cli.empty()
                        ? std::string()
                        : fmt::format("printf 'Welcome to the BMC.\\nServer Name: "
                                      "[ok]\\n\\033[1;32m-> \\033[0m'\nread -r said\n[ \"$said\" = "
                                      "'{}' ] || {{ echo \"no such command: $said\"; exit 1; }}\n",
                                      cli),
                    machine_.device(), machine_.device()),
        0700);
    write("passwd", fmt::format("admin:x:0:0::{}:/bin/sh\n", folder_.path().string()), 0644);
    write(
        "shadow",
        fmt::format("admin:{}:20000:0:99999:7:::\n", text({"openssl", {"passwd", "-6", "secret"}})),
        0600);
    newHostKey();
    start();
  }
  ~SshRig() { stop(); }

  void start() {
    const auto inside = fmt::format(
        "mount --make-rprivate / && mount --bind {0}/passwd /etc/passwd && mount --bind {0}/shadow "
        "/etc/shadow && "
        "exec dropbear -F -E -m -j -k -r {0}/key -P {0}/pid -p 127.0.0.1:{1} -c {0}/enter {2}",
        folder_.path().string(), port_, more_args_);
    auto started = processes_->start({"unshare", {"-m", "sh", "-c", inside}}, log());
    if (!started) return;
    server_ = std::move(*started);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (running() && !isListening(port_) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void stop() {
    if (server_) server_->terminate(std::chrono::seconds(2));
    server_.reset();
  }
  void newHostKey() {
    std::filesystem::remove(folder_ / "key");
    (void)text({"dropbearkey", {"-t", "ed25519", "-f", (folder_ / "key").string()}});
  }
  bool running() { return server_ && server_->running(); }
  int port() const { return port_; }
  std::filesystem::path log() const { return folder_ / "log"; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  MachineLine& machine() { return machine_; }
  std::size_t count(std::string_view what) const {
    const auto said = io::readFile(log()).value_or("");
    std::size_t found = 0;
    for (auto at = said.find(what); at != std::string::npos; at = said.find(what, at + 1)) ++found;
    return found;
  }

 private:
  void write(const char* name, const std::string& content, unsigned mode) {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / name, content, mode));
  }
  static std::string text(const io::Command& command) {
    auto said = io::runChecked(command).value_or("");
    while (!said.empty() && said.back() == '\n') said.pop_back();
    return said;
  }

  TempFolder folder_;
  MachineLine machine_;
  std::string more_args_;
  int port_ = freeLoopbackPort(SOCK_STREAM);
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> server_;
};

}  // namespace muster::test
