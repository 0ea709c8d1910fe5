// SPDX-License-Identifier: Apache-2.0
// A fetch unit in threads of the test, for who asks as the test's own user; and a web server of a
// folder on loopback.
#pragma once

#include "base/io/process.h"
#include "provision/images/fetch/fetch_unit.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <list>
#include <thread>

namespace muster::test {

class FetchUnitHere {
 public:
  FetchUnitHere(const std::filesystem::path& socket, provision::FetchUnit unit)
      : unit_(std::move(unit)),
        listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    unit_.asker = ::geteuid();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::listen(listening_.get(), 16), 0);
    EXPECT_EQ(::pipe2(end_, O_CLOEXEC), 0);
    accepting_ = std::jthread([this] { acceptAll(); });
  }
  /// Waits for those that are served.
  ~FetchUnitHere() {
    ::close(end_[1]);
    accepting_.join();
    serving_.clear();
    ::close(end_[0]);
  }

 private:
  void acceptAll() {
    while (true) {
      pollfd wait[2] = {{listening_.get(), POLLIN, 0}, {end_[0], POLLIN, 0}};
      if (::poll(wait, 2, -1) < 0 || wait[1].revents != 0) return;
      const int line = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (line < 0) continue;
      serving_.emplace_back([this, line] {
        const io::Fd fd(line);
        (void)provision::serveFetchRequest(line, unit_);
      });
    }
  }

  provision::FetchUnit unit_;
  io::Fd listening_;
  int end_[2] = {-1, -1};
  std::list<std::jthread> serving_;
  std::jthread accepting_;
};

class ArchiveServer {
 public:
  explicit ArchiveServer(const std::filesystem::path& folder) {
    const auto log = folder / "port";
    auto started = processes_->start(
        {.program = "python3",
         .args = {(sourceFolder() / "tests/provision/images/fetch/archive_server.py").string(),
                  folder.string()}},
        log);
    EXPECT_TRUE(started) << started.error().str();
    if (!started) return;
    child_ = *std::move(started);
    std::string line;
    while (line.empty() && child_->running()) {  // until it listens
      std::ifstream file(log);
      if (!std::getline(file, line) || file.eof()) line.clear();
      std::this_thread::yield();
    }
    EXPECT_FALSE(line.empty()) << "the web server has ended";
    url_ = "http://127.0.0.1:" + line;
  }
  ~ArchiveServer() {
    if (child_) child_->terminate(std::chrono::milliseconds(0));
  }
  const std::string& url() const { return url_; }

 private:
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> child_;
  std::string url_;
};

}  // namespace muster::test
