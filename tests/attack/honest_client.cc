// SPDX-License-Identifier: Apache-2.0
#include "tests/attack/honest_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "wire/messages.h"

namespace muster::attack {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{15};
constexpr std::chrono::seconds kLimit{20}, kLonger{40};  ///< of a request; of who waits for it

io::HttpRequest requestTo(const std::string& url, std::string method = "GET",
                          std::string body = {}) {
  io::HttpRequest request;
  request.method = std::move(method);
  request.url = *io::Url::parse(url);
  request.body = std::move(body);
  request.timeout = kLimit;
  return request;
}

/// A poll of an agent that has spoken to an earlier life of the controller: answered at once.
std::string firstPoll(std::uint64_t sequence) {
  wire::PollRequest poll;
  poll.boot_id = "boot";
  poll.agent_version = "0";
  poll.sequence = sequence;
  poll.session = "of an earlier life";
  return wire::toJson(poll);
}

}  // namespace

HonestClient::HonestClient(AttackSite& site) {
  const auto key = io::makeKeyAndRequest(nodeOf(1));
  io::TlsTrust trust;
  trust.ca_pem = site.ca().certificatePem();
  auto client = io::makeHttpClient(trust);
  const auto enrolled = test::runAsync(client->send(
      requestTo(site.tlsUrl("/agent/v1/enrol"), "POST",
                wire::toJson(wire::EnrollRequest{site.arm(1), key->csr_pem, macOf(1)}))));
  const auto answer =
      enrolled && enrolled->status == 200
          ? wire::parseEnrollResponse(enrolled->body)
          : Result<wire::EnrollResponse>(
                fail(ErrorCode::Internal, enrolled ? enrolled->body : enrolled.error().str()));
  if (!answer) {
    std::cerr << "the honest node cannot enroll: " << answer.error().str() << "\n";
    std::abort();
  }
  identity_ = {key->key_pem, answer->certificate_pem};
  trust.identity = identity_;
  thread_ =
      std::thread([this, plain = site.plainUrl("/boot/ipxe"), poll = site.tlsUrl("/agent/v1/poll"),
                   trust] { work(plain, poll, trust); });
}

void HonestClient::work(std::string plain_url, std::string poll_url, io::TlsTrust trust) {
  asio::io_context io;
  auto agent = io::makeHttpClient(std::move(trust));
  for (std::uint64_t turn = 1; !stopping_; ++turn) {
    std::this_thread::sleep_for(kPause);  // a rate, not a wait for something
    if (paused_) continue;
    const bool polls = turn % 2 == 0;
    auto booting = io::makeHttpClient();  // a machine that boots has no connection yet
    const auto begun = Steady::now();
    const auto answer =
        test::runAsync(io,
                       polls ? agent->send(requestTo(poll_url, "POST", firstPoll(turn)))
                             : booting->send(requestTo(plain_url)),
                       kLonger);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begun);
    {
      const std::scoped_lock lock(mutex_);
      took_.push_back(took);
      if (!answer || answer->status != 200) {
        ++failures_;
        last_failure_ = fmt::format(
            "{}: {}", polls ? "poll" : "boot",
            answer ? fmt::format("{} {}", answer->status, answer->body) : answer.error().str());
      }
    }
  }
}

void HonestClient::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

HonestClient::Figures HonestClient::figures() const {
  const std::scoped_lock lock(mutex_);
  auto sorted = took_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&sorted](double share) {
    return sorted.empty()
               ? std::chrono::milliseconds(0)
               : sorted[std::min(
                     sorted.size() - 1,
                     static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
  };
  return {sorted.size(), failures_, at(0.5), at(0.99), at(1), last_failure_};
}

}  // namespace muster::attack
