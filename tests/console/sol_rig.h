// A BMC of OpenIPMI's simulator on loopback, with a serial line whose other end the test holds.
#pragma once

#include "base/io/dialogue.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <fstream>

namespace muster::test {

class SolRig {
 public:
  /// `chassis`: a script that the simulator asks for power and boot device; empty: it has no chassis.
  explicit SolRig(std::string_view chassis = {}) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ::grantpt(master_);
    ::unlockpt(master_);
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios raw{};
    ::tcgetattr(slave, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(slave, TCSANOW, &raw);
    slave_ = slave;  // held: a terminal that nobody has open forgets
    port_ = freeUdpPort();
    std::ofstream(folder_ / "lan.conf") << "name \"bmc\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 " << port_
                                        << "\n    priv_limit admin\n    allowed_auths_admin none md2 md5 straight\n    guid a123456789abcdefa123456789abcdef\n  endlan\n"
                                        << (chassis.empty() ? std::string() : "  chassis_control \"" + (folder_ / "chassis").string() + "\"\n") << "  user 2 true \"admin\" \"secret\" admin 10 none md2 md5 straight\n  sol \"" << ::ptsname(master_) << "\" 115200\n";
    if (!chassis.empty()) {
      std::ofstream(folder_ / "chassis") << chassis;
      ::chmod((folder_ / "chassis").c_str(), 0700);
    }
    std::ofstream(folder_ / "emu.conf") << "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nsel_enable 0x20 1000 0x0a\nmc_enable 0x20\n"
                                        << "sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x01 0x30 0x01 0x59 0 0\n"         // a temperature goes beyond its critical limit
                                        << "sel_add 0x20 0x02 0 0 0 0 0x20 0 0x04 0x14 0x31 0x6f 0x00 0xff 0xff\n";  // somebody presses the button
    auto started = processes_->start({"ipmi_sim", {"-c", (folder_ / "lan.conf").string(), "-f", (folder_ / "emu.conf").string(), "-s", folder_.path().string(), "-n"}},
                                     folder_ / "sim.log");
    if (started) sim_ = std::move(*started);
  }
  ~SolRig() {
    if (sim_) sim_->terminate(std::chrono::seconds(2));
    ::close(master_);
    ::close(slave_);
  }
  const std::filesystem::path& folder() const { return folder_.path(); }
  bool running() { return sim_ && sim_->running(); }
  int port() const { return port_; }

  void machineSays(std::string_view text) { ASSERT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size())); }
  /// What was typed to the machine, as it comes.
  Async<std::string> machineHears(std::size_t count) {
    asio::posix::stream_descriptor line(co_await asio::this_coro::executor, ::dup(master_));
    std::string heard;
    while (heard.size() < count) {
      std::string piece(64, '\0');
      auto read = line.async_read_some(asio::buffer(piece), asio::use_awaitable);
      const auto got = co_await std::move(read);
      heard.append(piece, 0, got);
    }
    co_return heard;
  }

 private:
  static int freeUdpPort() {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(socket, reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
    ::close(socket);
    return ntohs(address.sin_port);
  }

  TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> sim_;
  int master_ = -1, slave_ = -1, port_ = 0;
};

}  // namespace muster::test
