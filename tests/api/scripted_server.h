// SPDX-License-Identifier: Apache-2.0
// Whatever listens on a Unix socket and is no muster, or one that dies: it reads a request's head
// and sends the bytes that a test wrote down.
#pragma once

#include "base/io/files.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace muster::api {

class ScriptedServer {
 public:
  /// `answer`: request's head → all that is sent before the connection ends.
  ScriptedServer(std::filesystem::path path, std::function<std::string(const std::string&)> answer)
      : path_(std::move(path)), answer_(std::move(answer)) {
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 16), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listening_.get(), SHUT_RDWR);  // ends accept
    thread_.join();
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  /// Of a server that says that it is of `version`, and `answer` to everything else.
  static std::function<std::string(const std::string&)> ofVersion(
      const std::string& version, std::function<std::string(const std::string&)> answer) {
    return [identity = json(200, R"({"version":")" + version +
                                     R"(","host":"h","state":"/s","inventory":"/i"})"),
            answer = std::move(answer)](const std::string& head) {
      return head.starts_with("GET /api/v1/server ") ? identity : answer(head);
    };
  }
  static std::string json(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " Word\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void serve() {
    while (true) {
      const io::Fd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      std::string head;
      char byte = 0;
      while (head.find("\r\n\r\n") == std::string::npos && ::read(client.get(), &byte, 1) == 1)
        head += byte;
      const auto bytes = answer_(head);
      for (std::size_t sent = 0; sent < bytes.size();) {
        const auto n = ::send(client.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
    }
  }

  std::filesystem::path path_;
  std::function<std::string(const std::string&)> answer_;
  io::Fd listening_;
  std::thread thread_;
};

}  // namespace muster::api
