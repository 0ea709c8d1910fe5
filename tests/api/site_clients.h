// SPDX-License-Identifier: Apache-2.0
// One site asked in both ways: by this process, and over HTTP. Every answer of the server that the
// second one gets is held against the server's description.
#pragma once

#include "api/remote_site.h"
#include "app/site/embedded_site.h"
#include "app/site/site_client.h"
#include "base/io/unix_client.h"
#include "tests/api/api_site.h"

namespace muster::api {

enum class How { Embedded, Http };

/// Notes what it is answered.
class RecordingClient final : public io::HttpClient {
 public:
  using Heard = std::function<void(const io::HttpRequest&, const io::HttpResponse&)>;
  RecordingClient(std::filesystem::path socket, Heard heard)
      : client_(io::makeUnixHttpClient({std::move(socket), {}})), heard_(std::move(heard)) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override {
    auto kept = request;
    auto answer = co_await client_->send(std::move(request));
    if (answer) heard_(kept, *answer);
    co_return answer;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return fail(ErrorCode::Internal, "nothing is downloaded here");
  }
  std::string peerFingerprint() const override { return {}; }

 private:
  std::unique_ptr<io::HttpClient> client_;
  Heard heard_;
};

class SiteClientSite : public ApiSite {
 protected:
  std::unique_ptr<app::SiteClient> client(How how) {
    if (how == How::Embedded) return std::make_unique<app::EmbeddedSite>(site_.options());
    RemoteSiteOptions options;
    options.socket = site_ / "api.sock";
    options.client = std::make_unique<RecordingClient>(
        options.socket, [this](const io::HttpRequest& request, const io::HttpResponse& response) {
          if (after_answer_) after_answer_(request.url.target);
          Said said;
          said.status = response.status;
          said.headers = response.headers;
          said.body = response.body;
          if (said.header("Content-Type").find("json") != std::string::npos)
            said.json = jsonOrNone(said.body, kServerJson);
          record({.method = request.method, .target = request.url.target}, said);
        });
    auto site = RemoteSite::connect(std::move(options));
    EXPECT_TRUE(site) << site.error().str();
    return site ? std::move(*site) : nullptr;
  }
  std::function<void(const std::string& target)> after_answer_;
};

class SiteClientContract : public SiteClientSite, public ::testing::WithParamInterface<How> {
 protected:
  void SetUp() override {
    fill();
    start();
    asked_ = client(GetParam());
    ASSERT_NE(asked_, nullptr);
  }
  app::SiteClient& site() { return *asked_; }
  ErrorCode codeOf(const auto& result) {
    EXPECT_FALSE(result);
    return result ? ErrorCode::Internal : result.error().code();
  }

 private:
  std::unique_ptr<app::SiteClient> asked_;
};

inline std::string nameOf(const ::testing::TestParamInfo<How>& info) {
  return info.param == How::Embedded ? "Embedded" : "Http";
}

}  // namespace muster::api
