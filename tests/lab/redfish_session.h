// SPDX-License-Identifier: Apache-2.0
// A few Redfish calls from a test, over real HTTPS and inside a lab's namespace.
#pragma once

#include "base/io/http.h"
#include "lab/netns.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <string>

namespace muster::lab {

class RedfishSession {
 public:
  RedfishSession(std::string netns, std::string origin)
      : netns_(std::move(netns)), origin_(std::move(origin)) {}

  int login(const std::string& username, const std::string& password) {
    auto answer = send("POST", "/redfish/v1/SessionService/Sessions",
                       nlohmann::json{{"UserName", username}, {"Password", password}}.dump());
    if (answer.status == 201) token_ = answer.header("X-Auth-Token");
    return answer.status;
  }
  nlohmann::json get(const std::string& path) {
    return nlohmann::json::parse(send("GET", path, "").body, nullptr, false);
  }
  int post(const std::string& path, const nlohmann::json& body) {
    return send("POST", path, body.dump()).status;
  }
  int patch(const std::string& path, const nlohmann::json& body) {
    return send("PATCH", path, body.dump()).status;
  }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  /// A connection of its own each time; status 0 when there was no answer.
  io::HttpResponse send(const std::string& method, const std::string& path,
                        const std::string& body) {
    io::HttpResponse response;
    auto done = insideNamespace(netns_, [&]() -> Result<void> {
      asio::io_context context;
      auto client = io::makeHttpClient({.accept_first = true});
      TRY(url, io::Url::parse(origin_ + path));
      io::HttpRequest request;
      request.method = method;
      request.url = url;
      request.headers = {{"Content-Type", "application/json"}};
      request.body = body;
      if (!token_.empty()) request.headers["X-Auth-Token"] = token_;
      asio::co_spawn(context, client->send(std::move(request)),
                     [&](std::exception_ptr, Result<io::HttpResponse> answer) {
                       if (answer)
                         response = std::move(*answer);
                       else
                         response.body = answer.error().str();
                       context.stop();  // a kept-alive connection would hold it open
                     });
      context.run();
      fingerprint_ = client->peerFingerprint();
      client.reset();
      return {};
    });
    if (!done) response.body = done.error().str();
    return response;
  }

  std::string netns_, origin_, token_, fingerprint_;
};

}  // namespace muster::lab
