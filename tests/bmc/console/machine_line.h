// SPDX-License-Identifier: Apache-2.0
// A machine's serial port of a pseudo terminal, whose machine is the test.
#pragma once

#include "base/async/task.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace muster::test {

/// The machine behind a BMC: the test talks for it, the BMC has the terminal device.
class MachineLine {
 public:
  MachineLine() {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ::grantpt(master_);
    ::unlockpt(master_);
    device_ = ::ptsname(master_);
    slave_ =
        ::open(device_.c_str(),
               O_RDWR | O_NOCTTY | O_CLOEXEC);  // held: a terminal that nobody has open forgets
    termios raw{};
    ::tcgetattr(slave_, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(slave_, TCSANOW, &raw);
  }
  ~MachineLine() {
    ::close(master_);
    ::close(slave_);
  }
  MachineLine(const MachineLine&) = delete;
  MachineLine& operator=(const MachineLine&) = delete;
  const std::string& device() const { return device_; }

  void says(std::string_view text) {
    ASSERT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// What was typed to the machine, as it comes.
  Async<std::string> hears(std::size_t count) {
    asio::posix::stream_descriptor line(co_await asio::this_coro::executor, ::dup(master_));
    std::string heard;
    while (heard.size() < count) {
      std::string piece(64, '\0');
      const auto got = co_await line.async_read_some(asio::buffer(piece), asio::use_awaitable);
      heard.append(piece, 0, got);
    }
    co_return heard;
  }

 private:
  int master_ = -1, slave_ = -1;
  std::string device_;
};

}  // namespace muster::test
