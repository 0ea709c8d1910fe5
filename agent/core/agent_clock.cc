// SPDX-License-Identifier: Apache-2.0
#include "agent/core/agent_clock.h"

#include "wire/slowness.h"

#include <algorithm>
#include <charconv>

namespace muster::agent {
namespace {

class HeedingClient final : public io::HttpClient {
 public:
  HeedingClient(std::unique_ptr<io::HttpClient> client, AgentClock& clock)
      : client_(std::move(client)), clock_(clock) {}

  Async<io::HttpResponse> send(io::HttpRequest request) override {
    auto answer = co_await client_->send(std::move(request));
    if (answer && answer->status == 200) clock_.heed(toldIn(*answer));
    co_return answer;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest request,
                                std::function<Result<void>(std::string_view)> sink) override {
    return client_->fetch(std::move(request), std::move(sink));
  }
  std::string peerFingerprint() const override { return client_->peerFingerprint(); }

 private:
  static double toldIn(const io::HttpResponse& answer) {
    double told = 1;
    if (const auto header = answer.headers.find(wire::kSlownessHeader);
        header != answer.headers.end())
      std::from_chars(header->second.data(), header->second.data() + header->second.size(), told);
    return told;
  }

  std::unique_ptr<io::HttpClient> client_;
  AgentClock& clock_;
};

}  // namespace

void AgentClock::heed(double slowness) {
  slowness_ = slowness > 1 ? std::min(slowness, wire::kMaxReportedSlowness) : 1;
}

std::unique_ptr<io::HttpClient> heedSlowness(std::unique_ptr<io::HttpClient> client,
                                             AgentClock& clock) {
  return std::make_unique<HeedingClient>(std::move(client), clock);
}

}  // namespace muster::agent
