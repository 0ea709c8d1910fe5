#include "agent/writer/fetch_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kIndexTimeout{60};
constexpr std::chrono::milliseconds kFirstBackoff{500}, kMaxBackoff{10000};

}  // namespace

Async<PackIndex> fetchIndex(const WriteImageParams& params, const WriterDeps& deps, std::chrono::steady_clock::time_point end) {
  auto url = io::Url::parse(params.index_url);
  if (!url) co_return fail(std::move(url).error());
  auto http = deps.make_http();
  auto pause = kFirstBackoff;
  for (;;) {
    io::HttpRequest request;
    request.url = *url;
    request.timeout = kIndexTimeout;
    request.max_body_bytes = kMaxIndexBytes;
    auto sending = http->send(std::move(request));
    auto response = co_await std::move(sending);
    if (response && response->status == 200) co_return openIndex(response->body, params.digest, params.signing_public_pem);
    const std::string fault = response ? fmt::format("{} answers {}", params.index_url, response->status) : response.error().str();
    if (response && response->status < 500) co_return fail(ErrorCode::NotFound, fault + ": the controller does not have this image");
    if (!response && response.error().code() == ErrorCode::Denied) co_return fail(std::move(response).error());
    if (deps.clock.steady() + pause >= end) co_return fail(ErrorCode::Timeout, "the index of the image could not be fetched; last: " + fault);
    deps.progress(0, fmt::format("{}; trying again in {:.1f} s", fault, pause.count() / 1000.0));
    auto wait = deps.clock.sleep(pause);
    co_await std::move(wait);
    pause = std::min(pause * 2, kMaxBackoff);
  }
}

}  // namespace muster::agent
