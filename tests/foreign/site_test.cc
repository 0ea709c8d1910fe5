// SPDX-License-Identifier: Apache-2.0
// A controller by the real program, on a loopback address, whose BMC and whose node say what is
// meant to do harm: `plan` and `apply` end by themselves, in words and in JSON.
#include "lifecycle/store/store.h"
#include "tests/cli/emulated_bmc.h"
#include "tests/cli/muster_folder.h"
#include "tests/foreign/foreign_text.h"
#include "wire/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A controller's ports are fixed: each test process has a network of loopback addresses of its
/// own.
std::string addressOf(int host) {
  return fmt::format("127.{}.{}.{}", 130 + ::getpid() / 250 % 100, ::getpid() % 250, host);
}

class ForeignSite : public ::testing::Test {
 protected:
  ForeignSite() {
    folder_.write("bmc-password", std::string(EmulatedBmc::kPassword) + "\n");
    std::filesystem::permissions(folder_ / "bmc-password", std::filesystem::perms::owner_read |
                                                               std::filesystem::perms::owner_write);
    folder_.write("cluster.yaml", fmt::format(R"(cluster: {{name: small}}
networks:
  provisioning: {{cidr: {}/24, dhcp: {{mode: none}}}}
credentials:
  bmc: {{username: admin, password: {{file: bmc-password}}}}
images:
  bookworm: {{build: {{suite: bookworm, packages: [linux-image-amd64]}}}}
drivers:
  fast: {{modules: [fast], verify: {{module.fast: loaded}}}}
profiles:
  gpu-node: {{expect: {{gpus: 8}}, image: bookworm, drivers: [fast]}}
nodes:
  - {{names: gpu001, profile: gpu-node, mac: "52:54:00:20:00:01", address: {}, bmc: "{}", serial: SN-OF-ANOTHER, rack: r1, unit: 10}}
)",
                                              addressOf(0), addressOf(10), bmc_.url()));
  }
  /// What the program says in words and in JSON, both held to the rules.
  void expectPlainAndJson(std::vector<std::string> words) {
    SCOPED_TRACE(words.front());
    const auto shown = folder_.muster(words);
    expectEnded(shown);
    expectPrintableLines(shown.out);
    expectPrintableLines(shown.err);
    words.emplace_back("--json");
    const auto told = folder_.muster(words);
    expectEnded(told);
    EXPECT_EQ(told.code, shown.code) << shown.out << shown.err << told.err;
    EXPECT_NE(told.out, "");
    expectJson(told.out);
    expectPrintableLines(told.out);
    expectPrintableLines(told.err);
  }
  void expectShownWell() {
    for (const auto& words : std::vector<std::vector<std::string>>{{"apply"},
                                                                   {"plan"},
                                                                   {"status"},
                                                                   {"why", "gpu001"},
                                                                   {"findings"},
                                                                   {"events"},
                                                                   {"history"}})
      expectPlainAndJson(words);
    for (const auto& line : linesOf("state/muster.log")) EXPECT_EQ(line, printable(line));
  }
  std::vector<std::string> linesOf(const std::string& file) {
    std::istringstream in(io::readFile(folder_ / file).value_or(""));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      EXPECT_FALSE(line.starts_with(kInjected)) << line;
      lines.push_back(line);
    }
    return lines;
  }
  /// The machine's own description says this in the place of its serial number, and of what else is
  /// text there.
  void systemSays(const std::string& words) {
    bmc_.rewrite([words](const std::string& path, io::ServerResponse& answer) {
      auto* body = std::get_if<std::string>(&answer.body);
      if (!body || answer.status != 200 || path.find("/Systems/") == std::string::npos) return;
      auto said = json::parse(*body);
      for (const char* key :
           {"SerialNumber", "Model", "Manufacturer", "SKU", "UUID", "PartNumber", "AssetTag"})
        said[key] = words;
      answer.body = said.dump(-1, ' ', false, json::error_handler_t::ignore);
    });
  }
  void everythingFailsWith(const std::string& raw_body) {
    bmc_.rewrite([raw_body](const std::string& path, io::ServerResponse& answer) {
      if (path.find("/Systems") == std::string::npos) return;
      answer.status = 400;  // what is refused for good: nobody tries again
      answer.body = raw_body;
    });
  }
  static std::string errorBody(const std::string& words) {
    return json{
        {"error",
         {{"code", "Base.1.8.GeneralError"},
          {"message", words},
          {"@Message.ExtendedInfo",
           {{{"MessageId", "Base.1.8." + words}, {"Message", words}, {"Resolution", words}}}}}}}
        .dump();
  }

  EmulatedBmc bmc_;
  MusterFolder folder_;
};

// ---- BMCs

TEST_F(ForeignSite, whatABmcSaysOfItsMachineIsShownInLinesAndJson) {
  systemSays(harmfulWords());
  expectShownWell();
  EXPECT_THAT(folder_.muster({"findings"}).out, HasSubstr("\\u001b[2J"))
      << "what was said is shown";
}

TEST_F(ForeignSite, longNamesOfABmcAreCutBetweenLetters) {
  for (std::size_t padding = 0; padding < 4; ++padding) {
    systemSays(longWords(padding, 2'000));
    expectPlainAndJson({"apply"});
  }
  expectShownWell();
}

TEST_F(ForeignSite, errorsOfABmcAreCutBetweenLetters) {
  for (std::size_t padding = 0; padding < 4; ++padding) {
    everythingFailsWith(errorBody(longWords(padding, 300)));
    expectPlainAndJson({"apply"});
  }
  expectShownWell();
}

TEST_F(ForeignSite, errorsOfABmcAreShownInLinesAndJson) {
  everythingFailsWith(errorBody(harmfulWords()));
  expectShownWell();
}

TEST_F(ForeignSite, answersOfABmcThatAreNoUtf8AreShown) {
  auto body = errorBody("HERE");
  while (body.find("HERE") != std::string::npos)
    body.replace(body.find("HERE"), 4, "\xff\xc0\xaf\xed\xa0\x80 SN\xe9rie \xe6\xa9");
  everythingFailsWith(body);
  expectShownWell();
  bmc_.rewrite([](const std::string& path, io::ServerResponse& answer) {
    auto* text = std::get_if<std::string>(&answer.body);
    if (!text || path.find("/Systems/") == std::string::npos) return;
    if (const auto at = text->find("SN-1"); at != std::string::npos)
      text->replace(at, 4, "S\xc9RIE\xff");
  });
  expectShownWell();
  EXPECT_THAT(folder_.muster({"findings"}).out, HasSubstr("S\xef\xbf\xbdRIE"))
      << "a serial number in Latin-1 does not make a machine invisible";
}

TEST_F(ForeignSite, answersOfABmcThatAreNestedDeepAreErrorsWithWords) {
  for (const std::size_t levels : {10'000u, 200'000u}) {
    for (const int status : {200, 400}) {
      bmc_.rewrite([levels, status](const std::string& path, io::ServerResponse& answer) {
        if (path.find("/Systems") == std::string::npos) return;
        answer.status = status;
        answer.body = R"({"Members":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
      });
      expectPlainAndJson({"plan"});
      expectPlainAndJson({"apply"});
      const auto why = folder_.muster({"bmc", "power", "gpu001", "on"});
      EXPECT_EQ(why.code, 1);
      EXPECT_THAT(why.err, HasSubstr("127.0.0.1")) << status;
      EXPECT_LT(why.err.size(), 2'000u);
    }
  }
}

// ---- nodes

/// The agent of gpu001's installed system, as far as a controller can tell: it polls as long as it
/// lives, and does its tasks by saying the same result each time. Once it was refused it says
/// nothing harmful any more.
class FakeAgent {
 public:
  FakeAgent(io::TlsTrust trust, json said, std::string result)
      : trust_(std::move(trust)), said_(std::move(said)), result_(std::move(result)) {
    thread_ = std::thread([this] { live(); });
  }
  FakeAgent(const FakeAgent&) = delete;
  ~FakeAgent() {
    over_ = true;
    thread_.join();
  }
  int refused() const { return refused_; }  ///< polls that were answered with an error
  int tasks() const { return tasks_; }

 private:
  static constexpr std::chrono::milliseconds kPatience{2'000}, kRedial{20};

  void live() {
    std::string session;
    json reports = json::array();
    for (std::uint64_t sequence = 1; !over_; ++sequence) {
      json poll = {{"mode", "disk"},           {"boot_id", "boot-1"}, {"agent_version", "1"},
                   {"probes", json::object()}, {"reports", reports},  {"session", session},
                   {"sequence", sequence}};
      if (refused_ == 0) poll.update(said_);
      io::HttpRequest request;
      request.method = "POST";
      request.url = *io::Url::parse(fmt::format("https://{}:8443/agent/v1/poll", addressOf(1)));
      request.body = poll.dump();
      request.timeout = kPatience;
      auto client = io::makeHttpClient(trust_);
      const auto answer = runAsync(client->send(std::move(request)), std::chrono::seconds(30));
      if (!answer) {
        std::this_thread::sleep_for(kRedial);  // no controller runs now
        continue;
      }
      if (answer->status != 200) ++refused_;
      const auto parsed = wire::parsePollResponse(answer->body);
      if (answer->status != 200 || !parsed) continue;
      session = parsed->session;
      for (const auto& id : parsed->forget)
        reports.erase(std::remove_if(reports.begin(), reports.end(),
                                     [&id](const json& report) { return report["id"] == id; }),
                      reports.end());
      for (const auto& task : parsed->start) {
        ++tasks_;
        reports.push_back({{"id", task.id}, {"phase", "done"}, {"text", ""}, {"result", result_}});
      }
    }
  }

  io::TlsTrust trust_;
  const json said_;
  const std::string result_;
  std::atomic<bool> over_ = false;
  std::atomic<int> refused_ = 0, tasks_ = 0;
  std::thread thread_;
};

class ForeignNode : public ForeignSite {
 protected:
  void SetUp() override {
    const auto first = folder_.muster({"plan"});  // makes the site's authority
    ASSERT_EQ(first.code, 0) << first.err;
    auto made = io::CertificateAuthority::loadOrCreate(folder_ / "state/ca", "muster");
    ASSERT_TRUE(made) << made.error().str();
    const auto request = io::makeKeyAndRequest("gpu001");
    trust_.ca_pem = made->certificatePem();
    trust_.identity = io::TlsIdentity{
        request->key_pem, *made->signClient(request->csr_pem, "gpu001", std::chrono::hours(1))};
    auto store = lifecycle::openStore("sqlite:" + (folder_ / "state/muster.db").string());
    ASSERT_TRUE(store) << store.error().str();
    // So that plan waits for the node's agent.
    const lifecycle::Fact running{lifecycle::Subject(NodeName("gpu001")),
                                  FacetName("os"),
                                  "running",
                                  SystemClock().now(),
                                  "agent gpu001",
                                  ""};
    ASSERT_TRUE((*store)->putFacts({running}));
  }
  std::string factOf(const std::string& facet) {
    auto store = lifecycle::openStore("sqlite:" + (folder_ / "state/muster.db").string());
    const auto facts = (*store)->facts();
    return facts->value(lifecycle::Subject(NodeName("gpu001")), FacetName(facet))
        .value_or("(unknown)");
  }
  static std::string nested(std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  }

  io::TlsTrust trust_;
};

TEST_F(ForeignNode, aProbesTextThatIsNestedDeepIsAFactThatPlanShows) {
  constexpr std::size_t kLevels = 8'000;  // as many as a probe's text has room for
  const FakeAgent agent(trust_, {{"probes", {{"module.fast", nested(kLevels)}}}}, "{}");
  const auto planned = folder_.muster({"plan"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(agent.refused(), 0);
  EXPECT_THAT(factOf("driver.fast"), HasSubstr("module.fast=[[["));
  EXPECT_THAT(planned.out, HasSubstr("driver.fast"));
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"plan", "--no-refresh"},
           {"status"},
           {"why", "gpu001"},
           {"findings"},
           {"plan", "--no-refresh", "--out", (folder_ / "plan.json").string()}})
    expectPlainAndJson(words);
}

TEST_F(ForeignNode, aProbesAnswerThatIsNestedDeepIsSaidInTheLogAndPlanGoesOn) {
  for (const std::size_t levels : {10'000u, 100'000u}) {
    const FakeAgent agent(trust_, json::object(), R"({"module.fast":)" + nested(levels) + "}");
    const auto planned = folder_.muster({"plan"});
    EXPECT_EQ(planned.code, 0) << planned.err;
    EXPECT_GT(agent.tasks(), 0) << "it was asked";
    EXPECT_THAT(io::readFile(folder_ / "state/muster.log").value_or(""),
                HasSubstr("nested deeper than 64 levels"));
    EXPECT_EQ(factOf("driver.fast"), "(unknown)");
  }
  expectPlainAndJson({"plan", "--no-refresh"});
}

TEST_F(ForeignNode, aPollThatIsNestedDeepIsRefusedAndPlanGoesOn) {
  for (const auto& said : {json{{"health", nested(10'000)}, {"hardware", nested(10'000)}},
                           json{{"health", R"({"symptoms":)" + nested(10'000) + "}"}},
                           json{{"probes", {{"module.fast", nested(10'000)}}}}}) {
    const FakeAgent agent(trust_, said, "{}");
    const auto planned = folder_.muster({"plan"});
    EXPECT_EQ(planned.code, 0) << planned.err;
    EXPECT_THAT(planned.out, HasSubstr("gpu001"));
    expectPrintableLines(planned.out + planned.err);
    EXPECT_THAT(factOf("driver.fast"), Not(HasSubstr("[[[")));
  }
}

TEST_F(ForeignNode, whatANodeSaysOfItselfIsShownInLinesAndJson) {
  for (const auto& words : {harmfulWords(), longWords(0, 120), longWords(1, 120), longWords(2, 120),
                            longWords(3, 120)}) {
    const json symptom = {
        {"id", "xid.79"},
        {"device", words.substr(0, 4) == "xxx" ? words.substr(0, 4) : "0000:18:00.0"},
        {"count", 1},
        {"text", words}};
    const json health = {{"symptoms", {symptom}}, {"sources", {{"kernel", "ok"}, {"gpu", words}}}};
    const FakeAgent agent(
        trust_,
        {{"health", health.dump()}, {"image_digest", words}, {"probes", {{"module.fast", words}}}},
        "{}");
    expectPlainAndJson({"plan"});
    EXPECT_EQ(agent.refused(), 0);
    for (const auto& command : std::vector<std::vector<std::string>>{
             {"status"}, {"why", "gpu001"}, {"findings"}, {"events"}, {"history"}})
      expectPlainAndJson(command);
  }
  EXPECT_THAT(factOf("health.gpu"), HasSubstr("xid.79"));
}

/// It asks the node to restart, which this one never does; so it is stopped.
TEST_F(ForeignNode, whatANodeSaysWhileItIsWorkedOnIsShownInLinesAndJson) {
  const auto words = harmfulWords();
  const json health = {
      {"symptoms", {{{"id", "xid.79"}, {"device", words}, {"count", 1}, {"text", words}}}},
      {"sources", {{"kernel", words}, {"gpu", "ok"}}}};
  const FakeAgent agent(
      trust_,
      {{"health", health.dump()}, {"image_digest", words}, {"probes", {{"module.fast", words}}}},
      json{{"module.fast", words}}.dump());
  for (const bool as_json : {false, true}) {
    auto apply = folder_.command({"apply"});
    if (as_json) apply.args.emplace_back("--json");
    apply.args.insert(apply.args.begin(),
                      {"--preserve-status", "--signal=TERM", "--kill-after=5", "8", apply.program});
    apply.program = "timeout";
    const auto ended = io::runBlocking(apply);
    ASSERT_TRUE(ended) << ended.error().str();
    EXPECT_THAT(ended->code, ::testing::AnyOf(0, 1, 3, 128 + SIGTERM)) << ended->err;
    EXPECT_THAT(ended->out, HasSubstr("gpu001"));
    expectPrintableLines(ended->out + ended->err);
    if (as_json) expectJson(ended->out);
  }
  EXPECT_EQ(agent.refused(), 0);
  for (const auto& line : linesOf("state/muster.log")) EXPECT_EQ(line, printable(line));
}

}  // namespace
}  // namespace muster::test
