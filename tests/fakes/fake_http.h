// SPDX-License-Identifier: Apache-2.0
// FakeHttp: a network in memory. Clients made by factory() hand each request to `handle`; the
// "server" shows one certificate, and a client that pins another one is refused before anything is
// handled.
#pragma once

#include "base/io/http.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::test {

class FakeHttp {
 public:
  using Handler = std::function<Async<io::HttpResponse>(io::HttpRequest)>;

  Handler handle;
  std::string fingerprint = std::string(64, 'a');
  std::vector<io::HttpRequest> requests;  ///< those that got through the TLS handshake
  int clients_made = 0;
  std::deque<Error> fail_next;  ///< the next requests end like this; they are recorded, not handled

  /// Requests with this method and path (without query).
  int count(const std::string& method, const std::string& path) const {
    int n = 0;
    for (const auto& r : requests) n += r.method == method && io::pathOf(r.url.target) == path;
    return n;
  }

  std::unique_ptr<io::HttpClient> client(io::TlsTrust trust);
  std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)> factory() {
    return [this](io::TlsTrust trust) { return client(std::move(trust)); };
  }

  static io::HttpResponse json(int status, const std::string& body, io::Headers headers = {}) {
    headers.try_emplace("Content-Type", "application/json");
    return io::HttpResponse{status, std::move(headers), body};
  }
};

class FakeHttpClient final : public io::HttpClient {
 public:
  FakeHttpClient(FakeHttp& net, io::TlsTrust trust) : net_(net), trust_(std::move(trust)) {}

  Async<io::HttpResponse> send(io::HttpRequest request) override {
    if (request.url.scheme == "https") seen_ = net_.fingerprint;
    if (trust_.accept_first && trust_.pinned_fingerprint.empty())
      trust_.pinned_fingerprint = net_.fingerprint;
    if (trust_.pinned_fingerprint != net_.fingerprint) {
      co_return fail(ErrorCode::Denied, "the certificate is not the pinned one");
    }
    net_.requests.push_back(request);
    if (!net_.fail_next.empty()) {
      Error error = net_.fail_next.front();
      net_.fail_next.pop_front();
      co_return fail(std::move(error));
    }
    co_return co_await net_.handle(std::move(request));
  }
  Async<io::HttpResponse> fetch(io::HttpRequest request,
                                std::function<Result<void>(std::string_view)> sink) override {
    CO_TRY(response, co_await send(std::move(request)));
    CO_TRY_OK(sink(response.body));
    response.body.clear();
    co_return std::move(response);
  }
  std::string peerFingerprint() const override { return seen_; }

 private:
  FakeHttp& net_;
  io::TlsTrust trust_;
  std::string seen_;
};

inline std::unique_ptr<io::HttpClient> FakeHttp::client(io::TlsTrust trust) {
  ++clients_made;
  return std::make_unique<FakeHttpClient>(*this, std::move(trust));
}

}  // namespace muster::test
