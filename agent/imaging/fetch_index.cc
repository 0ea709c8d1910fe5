// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/fetch_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kIndexTimeout{60};
constexpr std::chrono::seconds kIndexTimeoutBesideOthers{
    15};  ///< when a mirror can be asked instead
constexpr std::chrono::milliseconds kFirstBackoff{500}, kMaxBackoff{10000};

/// The controller's, then what lies beside the packs of mirrors. What is fetched is believed by its
/// signature, whoever gives it.
Result<std::vector<io::Url>> indexUrls(const wire::WriteImageParams& params) {
  constexpr std::string_view kPack = "/pack";
  TRY(first, io::Url::parse(params.index_url));
  std::vector<io::Url> urls{std::move(first)};
  for (const auto& mirror : params.mirror_urls) {
    if (!mirror.ends_with(kPack)) continue;
    if (auto url = io::Url::parse(mirror.substr(0, mirror.size() - kPack.size()) + "/index.json"))
      urls.push_back(std::move(*url));
  }
  return urls;
}

}  // namespace

Async<wire::PackIndex> fetchIndex(const wire::WriteImageParams& params, const WriterDeps& deps,
                                  std::chrono::steady_clock::time_point end) {
  CO_TRY(urls, indexUrls(params));
  auto http = deps.make_http();
  auto pause = kFirstBackoff;
  std::string faults;  // of this round
  for (std::size_t turn = 0;; turn = (turn + 1) % urls.size()) {
    const bool of_controller = turn == 0;
    if (of_controller) faults.clear();
    io::HttpRequest request;
    request.url = urls[turn];
    request.timeout = urls.size() > 1 ? kIndexTimeoutBesideOthers : kIndexTimeout;
    request.max_body_bytes = wire::kMaxIndexBytes;
    auto response = co_await http->send(std::move(request));
    std::string fault = response ? fmt::format("{} answers {}", urls[turn].str(), response->status)
                                 : response.error().str();
    if (response && response->status == 200) {
      auto index = wire::openIndex(response->body, params.digest, params.signing_public_pem);
      if (index || of_controller) co_return index;
      fault = fmt::format("{}: {}", urls[turn].str(), index.error().str());
    }
    if (of_controller && response && response->status < 500)
      co_return fail(ErrorCode::NotFound, fault + ": the controller does not have this image");
    if (of_controller && !response && response.error().code() == ErrorCode::Denied)
      co_return fail(std::move(response).error());
    faults += (faults.empty() ? "" : "; ") + fault;
    if (turn + 1 < urls.size()) continue;
    if (deps.clock.steady() + pause >= end)
      co_return fail(ErrorCode::Timeout,
                     "the index of the image could not be fetched; last: " + faults);
    deps.progress(0, fmt::format("{}; trying again in {:.1f} s", faults, pause.count() / 1000.0));
    co_await deps.clock.sleep(pause);
    pause = std::min(pause * 2, kMaxBackoff);
  }
}

}  // namespace muster::agent
