// SPDX-License-Identifier: Apache-2.0
// Setting what a virtual BMC does wrong: over its own HTTPS, inside the lab's namespace.
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "lab/vbmc/messages.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace muster::lab {
namespace {

using nlohmann::json;

Result<json> call(const std::string& netns, const BmcLogin& bmc, const std::string& method,
                  const std::string& body) {
  std::optional<Result<io::HttpResponse>> answer;
  TRY_OK(insideNamespace(netns, [&]() -> Result<void> {
    asio::io_context context;
    auto client = io::makeHttpClient({.accept_first = true});
    TRY(url, io::Url::parse(bmc.url + vbmc::kFaults));
    io::HttpRequest request;
    request.method = method;
    request.url = url;
    request.headers = {
        {"Content-Type", "application/json"},
        {"Authorization", "Basic " + io::toBase64(bmc.username + ":" + bmc.password.reveal())}};
    request.body = body;
    asio::co_spawn(context, client->send(std::move(request)),
                   [&](std::exception_ptr, Result<io::HttpResponse> response) {
                     answer = std::move(response);
                     context.stop();  // a kept-alive connection would hold it open
                   });
    context.run();
    client.reset();
    return {};
  }));
  if (!answer || !*answer)
    return fail(answer ? (*answer).error() : Error(ErrorCode::Internal, "the request did not end"));
  const auto& response = **answer;
  auto parsed = jsonOrNone(response.body, kBmcJson);
  if (response.status == 200 && parsed.is_object()) return parsed;
  const auto words = parsed.is_object() && parsed.contains("error")
                         ? parsed["error"].value("message", "")
                         : std::string();
  return fail(
      response.status == 400 ? ErrorCode::InvalidInput : ErrorCode::Unavailable,
      fmt::format("the virtual BMC at {} answered {}: {}", bmc.url, response.status, words));
}

}  // namespace

Result<std::string> bmcFaults(const LabHandle& lab, const BmcLogin& bmc, const std::string& add,
                              bool clear) {
  json set = {{"rules", json::array()}, {"update_faults", json::array()}};
  if (!clear) {
    TRY(now, call(lab.netns, bmc, "GET", ""));
    set = std::move(now);
  }
  if (const auto more = jsonOrNone(add, kBmcJson); more.is_object())
    for (const char* list : {"rules", "update_faults"})
      for (const auto& entry : more.value(list, json::array())) set[list].push_back(entry);
  TRY(after, call(lab.netns, bmc, "POST", jsonText(set)));
  return jsonText(after, 2);
}

}  // namespace muster::lab
