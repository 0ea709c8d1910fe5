// SPDX-License-Identifier: Apache-2.0
// A site in a folder with a store that the real store code filled, a real ApiServer on its real
// socket, and curl as its client. Every answer is kept, and held against the server's own OpenAPI
// by a JSON Schema validator at the end of each test.
#pragma once

#include "api/server.h"
#include "api/tokens.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/io/process.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/store/measurements.h"
#include "tests/app/site_folder.h"
#include "tests/paths.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace muster::api {

struct Said {
  int status = 0;
  std::map<std::string, std::string, io::CaseLess> headers;
  std::string body;
  nlohmann::json json;  ///< discarded when it is none

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  const nlohmann::json& items() const { return json.at("items"); }
};

struct Ask {
  std::string method = "GET";
  std::string target;  ///< "/api/v1/site"
  std::vector<std::string> headers = {};
  std::string body = {};
  std::string token = {};
  bool over_https = false;
  bool record = true;  ///< to be held against OpenAPI
};

/// What `curl -i` printed: interim answers, then the answer.
inline Said parseAnswer(std::string text) {
  Said out;
  while (true) {
    const auto end = text.find("\r\n\r\n");
    if (end == std::string::npos) return out;
    std::istringstream head(text.substr(0, end));
    std::string line;
    std::getline(head, line);
    std::from_chars(line.data() + 9, line.data() + 12, out.status);
    out.headers.clear();
    while (std::getline(head, line)) {
      if (line.ends_with('\r')) line.pop_back();
      const auto colon = line.find(": ");
      if (colon != std::string::npos) out.headers[line.substr(0, colon)] = line.substr(colon + 2);
    }
    text.erase(0, end + 4);
    if (out.status / 100 != 1) break;
  }
  out.body = std::move(text);
  if (out.header("Content-Type").find("json") != std::string::npos)
    out.json = jsonOrNone(out.body, kServerJson);
  return out;
}

class ApiSite : public ::testing::Test {
 protected:
  static constexpr std::string_view kSite = R"(cluster: {name: hall-2}
networks:
  provisioning: {cidr: 10.20.0.0/16, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}
credentials:
  bmc: {username: admin, password: {file: bmc-password}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
pools:
  batch: {slurm: {partition: gpu}}
  debug: {slurm: {partition: debug}}
profiles:
  gpu-node: {expect: {gpus: 8}, image: bookworm, pool: batch}
  login: {image: bookworm, pool: debug}
nodes:
  - {names: gpu001, profile: gpu-node, mac: "52:54:00:20:00:01", address: 10.20.1.1, bmc: "https://10.20.250.1", rack: r1, unit: 10}
  - {names: gpu002, profile: gpu-node, mac: "52:54:00:20:00:02", address: 10.20.1.2, bmc: "https://10.20.250.2", rack: r1, unit: 12}
  - {names: gpu003, profile: gpu-node, mac: "52:54:00:20:00:03", address: 10.20.1.3, bmc: "https://10.20.250.3", rack: r2, unit: 10}
  - {names: login1, profile: login, mac: "52:54:00:20:00:04", address: 10.20.1.4, bmc: "https://10.20.250.4", rack: r2, unit: 12}
)";

  ApiSite() { site_.write("cluster.yaml", kSite); }

  void start(std::string listen = {}) {
    auto started = ApiServer::start(site_.options(), apiOptions(std::move(listen)));
    ASSERT_TRUE(started) << started.error().str();
    server_ = std::move(*started);
  }
  ApiOptions apiOptions(std::string listen = {}) const {
    return {site_ / "api.sock", std::move(listen), site_ / "access.conf"};
  }

  /// What an observation, an engine and a monitor would have written.
  void fill() {
    const auto store = site_.store();
    const auto now = SystemClock().now();
    const auto fact = [&](const char* node, const char* facet, const char* value) {
      return lifecycle::Fact{lifecycle::Subject(NodeName(node)),
                             FacetName(facet),
                             value,
                             now,
                             "test",
                             "{\"seen\": [1]}"};
    };
    ASSERT_TRUE(store->putFacts({fact("gpu001", "enrolled", "yes"), fact("gpu001", "pool", "in"),
                                 fact("gpu002", "enrolled", "yes"),
                                 fact("gpu002", "pool.hold", "dimm swap [anna]")}));
    ASSERT_TRUE(
        store->addFinding({{lifecycle::Subject(NodeName("gpu002")), FacetName("health.gpu")},
                           Severity::Error,
                           "GPU 3 fell off the bus",
                           R"({"xid": 79})",
                           "replace it",
                           now,
                           "monitor"}));
    ASSERT_TRUE(store->addEvent({0, now, lifecycle::EventKind::Note,
                                 lifecycle::Subject(NodeName("gpu001")), "", "looked at by anna"}));
    ASSERT_TRUE(store->grantWipe(NodeName("gpu003"), "new image", now));
    auto measurements = lifecycle::openMeasurements(site_.options().storeUrl());
    ASSERT_TRUE(measurements);
    ASSERT_TRUE((*measurements)
                    ->add({{now,
                            NodeName("gpu001"),
                            "gate.burn-in",
                            "gpu-node, H100",
                            "r1",
                            {{"gpu.hbm/hbm_gb_s@3", 3012.5}}}}));
  }

  io::Command curlFor(const Ask& ask) const {
    std::vector<std::string> words{"-sS",          "-i", "--max-time", "20",
                                   "--path-as-is", "-X", ask.method};
    if (ask.method == "HEAD") words = {"-sS", "-I", "--max-time", "20"};
    for (const auto& header : ask.headers) words.insert(words.end(), {"-H", header});
    if (!ask.token.empty()) words.insert(words.end(), {"-H", "Authorization: Bearer " + ask.token});
    if (!ask.body.empty()) words.insert(words.end(), {"--data-binary", "@-"});
    if (ask.over_https)
      words.insert(words.end(),
                   {"--cacert", (site_.options().state / "ca/ca.crt").string(),
                    fmt::format("https://localhost:{}{}", server_->port(), ask.target)});
    else
      words.insert(words.end(), {"--unix-socket", (site_ / "api.sock").string(),
                                 "http://localhost" + ask.target});
    io::Command command{"curl", std::move(words)};
    command.stdin_text = ask.body;
    return command;
  }
  Said ask(const Ask& what) {
    const auto ended = io::runBlocking(curlFor(what));
    if (!ended || ended->code != 0) {
      ADD_FAILURE() << what.target << ": " << (ended ? ended->err : ended.error().str());
      return {};
    }
    auto said = parseAnswer(ended->out);
    if (what.record) record(what, said);
    return said;
  }
  Said get(const std::string& resource) { return ask({.target = "/api/v1" + resource}); }
  Said post(const std::string& resource, const nlohmann::json& body) {
    return ask({.method = "POST",
                .target = "/api/v1" + resource,
                .headers = {"Content-Type: application/json"},
                .body = jsonText(body)});
  }

  /// A token of the person `name`, as soon as the server knows it.
  std::string tokenOf(const std::string& name, Role role, const Scope& scope = {}) {
    const auto made = Tokens(*site_.store())
                          .create({.name = name, .role = role, .scope = scope, .owner = name},
                                  {"test", "test"}, SystemClock().now());
    EXPECT_TRUE(made) << made.error().str();
    const auto secret = made ? made->secret : "";
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ask({.target = "/api/v1/me", .token = secret, .record = false}).status != 200 &&
           std::chrono::steady_clock::now() < limit) {
    }
    return secret;
  }

  void TearDown() override {
    if (answers_.empty() || !server_) return;
    const auto description = ask({.target = "/openapi.json", .record = false});
    site_.write("openapi.json", description.body);
    site_.write("answers.jsonl", answers_);
    const auto checked =
        io::runBlocking({"python3",
                         {(test::sourceFolder() / "tests/api/check_answers.py").string(),
                          (site_ / "openapi.json").string(), (site_ / "answers.jsonl").string()}});
    ASSERT_TRUE(checked) << checked.error().str();
    EXPECT_EQ(checked->code, 0) << checked->out << checked->err;
  }

  app::SiteFolder site_;
  std::unique_ptr<ApiServer> server_;

  void record(const Ask& what, const Said& said) {
    answers_ += jsonText(nlohmann::json{{"method", what.method},
                                        {"target", what.target},
                                        {"status", said.status},
                                        {"type", said.header("Content-Type")},
                                        {"body", said.json}}) +
                "\n";
  }

 private:
  std::string answers_;
};

}  // namespace muster::api
