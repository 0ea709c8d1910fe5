// SPDX-License-Identifier: Apache-2.0
// EmulatedBmc: a BMC over real HTTPS on loopback, with a loop of its own: the program under test is
// another process. It keeps what it was asked, and a test may change its answers, down to bytes
// that are no text.
#pragma once

#include "base/io/crypto.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/fakes/fake_machine.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <functional>
#include <future>
#include <thread>

namespace muster::test {

class EmulatedBmc {
 public:
  static constexpr const char* kPassword = "old-password";

  explicit EmulatedBmc(std::string_view vendor_profile = "muster") {
    lab::vbmc::ServiceOptions options;
    options.vendor_profile = *lab::vbmc::findVendorProfile(vendor_profile);
    options.identity = {.node = "gpu001",
                        .serial = "SN-1",
                        .uuid = "11111111-2222-4333-8444-555555555555",
                        .macs = {"52:54:00:20:00:01"}};
    options.identity.model = options.vendor_profile->model;
    options.identity.manufacturer = options.vendor_profile->manufacturer;
    options.account = lab::vbmc::Account::make("admin", kPassword);
    options.timings.reset_duration = std::chrono::milliseconds(300);
    options.went_away = [this] { server_->stop(); };
    options.came_back = [this] { listen(); };
    options.new_identity = [this](const io::TlsIdentity& identity) {
      listener_.identity = identity;
      asio::post(io_, [this] {
        server_->stop();
        listen();
      });
    };
    service_ = *lab::vbmc::RedfishService::make(clock_, workers_, machine_, std::move(options));
    listener_.identity = *io::selfSigned("bmc", {"127.0.0.1"});
    listen();
    asio::co_spawn(io_, service_->run(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  EmulatedBmc(const EmulatedBmc&) = delete;
  ~EmulatedBmc() {
    asio::post(io_, [this] {
      service_->stop();
      server_->stop();
      io_.stop();
    });
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  std::string fingerprint() const {
    return io::describeCertificate(listener_.identity->certificate_pem)->sha256_fingerprint;
  }

  /// On the emulator's own thread.
  template <class T>
  T ask(std::function<T()> what) {
    std::promise<T> answer;
    asio::post(io_, [&] { answer.set_value(what()); });
    return answer.get_future().get();
  }
  bool on() {
    return ask<bool>([this] { return machine_.on; });
  }
  /// Without power it answers nobody.
  void goDark() {
    ask<bool>([this] { return server_->stop(), true; });
  }
  void answer() {
    ask<bool>([this] { return listen(), true; });
  }
  void expect(lab::vbmc::FaultRule rule) {
    ask<bool>([this, rule] { return service_->faults().add(rule), true; });
  }
  lab::vbmc::BmcState state() {
    return ask<lab::vbmc::BmcState>([this] { return service_->state(); });
  }
  /// Every answer goes through this: the request's path, and the answer that it may change.
  using Rewrite = std::function<void(const std::string& path, io::ServerResponse& answer)>;
  void rewrite(Rewrite rewrite) {
    ask<bool>([this, rewrite] { return rewrite_ = rewrite, true; });
  }
  /// All that was asked so far, with headers and bodies.
  std::vector<io::ServerRequest> requests() {
    return ask<std::vector<io::ServerRequest>>([this] { return requests_; });
  }
  /// Of those, how many held something secret: a login, or a header that proves one.
  std::size_t secretsReceived() {
    const auto all = requests();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const io::ServerRequest& one) {
          return one.method == "POST" || one.headers.contains("Authorization") ||
                 one.headers.contains("X-Auth-Token") ||
                 one.body.find(kPassword) != std::string::npos;
        }));
  }

 private:
  void listen() {
    server_ = *io::startHttpServer(io_.get_executor(), listener_);
    port_ = listener_.port = server_->port();
    auto routes = service_->routes();
    for (auto& route : routes)
      route.handle = [this, inner = route.handle](io::ServerRequest request) {
        return heard(inner, std::move(request));
      };
    server_->addRoutes(std::move(routes));
  }
  Task<io::ServerResponse> heard(io::Handler inner, io::ServerRequest request) {
    const auto path = request.path();
    requests_.push_back(request);
    auto answer = co_await inner(std::move(request));
    if (rewrite_) rewrite_(path, answer);
    co_return answer;
  }

  SystemClock clock_;
  Workers workers_{1};
  lab::vbmc::FakeMachine machine_;
  io::ServerOptions listener_;
  std::uint16_t port_ = 0;
  std::vector<io::ServerRequest> requests_;
  Rewrite rewrite_;
  std::unique_ptr<lab::vbmc::RedfishService> service_;
  asio::io_context io_;
  std::unique_ptr<io::HttpServer> server_;
  std::thread thread_;
};

}  // namespace muster::test
