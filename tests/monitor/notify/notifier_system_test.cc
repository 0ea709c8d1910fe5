// SPDX-License-Identifier: Apache-2.0
// Receivers that are not ours: Prometheus Alertmanager with its own amtool, and a receiver of
// webhooks that checks signatures by Python's hmac.
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/notifications.h"
#include "monitor/notify/notifier.h"
#include "tests/fakes/memory_store.h"
#include "tests/free_port.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <thread>

namespace muster::monitor {
namespace {

using ::testing::HasSubstr;

/// Answers each request with 204 when its signature is right, with 401 when it is not, and writes
/// the bodies down.
constexpr const char* kPythonReceiver = R"(
import base64, hashlib, hmac, http.server, sys
port, key, out = int(sys.argv[1]), base64.b64decode(sys.argv[2].removeprefix("whsec_")), sys.argv[3]
class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed = ".".join([self.headers["webhook-id"], self.headers["webhook-timestamp"]]).encode() + b"." + body
        right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        good = "v1," + right in self.headers["webhook-signature"].split(" ")
        if good:
            with open(out, "ab") as file: file.write(body + b"\n")
        self.send_response(204 if good else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", port), Receiver).serve_forever()
)";

class NotifySystem : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kLimit{60};

  void SetUp() override {
    port_ = test::freeLoopbackPort(SOCK_STREAM);
    ASSERT_NE(port_, 0);
    cluster_.name = "c1";
  }
  void start(const std::string& program, std::vector<std::string> args) {
    auto started =
        processes_->start({.program = program, .args = std::move(args)}, folder_ / "receiver.log");
    ASSERT_TRUE(started) << started.error().str();
    receiver_ = std::move(*started);
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!test::isListening(port_)) {
      ASSERT_TRUE(receiver_->running() && std::chrono::steady_clock::now() < end)
          << io::readFile(folder_ / "receiver.log").value_or("");
      std::this_thread::yield();
    }
  }
  Result<void> deliver(Delivery& delivery) { return test::runAsync(io_, delivery.deliver()); }
  NotifierServices services() {
    return {cluster_, store_, clock_, workers_,
            [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); }};
  }
  lifecycle::Finding gone() const {
    return {{lifecycle::Subject::cluster(), FacetName("health.gpu")},
            Severity::Error,
            "GPU 3 is gone, \"quoted\", \n ü",
            "",
            "replace it",
            clock_.now(),
            lifecycle::kMonitorSource};
  }

  asio::io_context io_;
  test::TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> receiver_;
  test::MemoryStore store_;
  SystemClock clock_;
  Workers workers_{1};
  inventory::Cluster cluster_;
  int port_ = 0;
};

TEST_F(NotifySystem, alertmanagerHasWhatIsOpenAndDropsWhatIsOver) {
  if (!io::runBlocking({"prometheus-alertmanager", {"--version"}}))
    GTEST_SKIP() << "no prometheus-alertmanager here";
  std::ofstream(folder_ / "am.yml") << "route: {receiver: none}\nreceivers: [{name: none}]\n";
  start("prometheus-alertmanager",
        {"--config.file=" + (folder_ / "am.yml").string(),
         "--storage.path=" + (folder_ / "data").string(),
         fmt::format("--web.listen-address=127.0.0.1:{}", port_), "--cluster.listen-address="});
  auto& receiver = cluster_.notifications["alerts"];
  receiver.url = fmt::format("http://127.0.0.1:{}/", port_);
  receiver.format = inventory::NotificationFormat::Alertmanager;
  const auto delivery = makeDelivery(services(), "alerts", receiver);
  const auto alerts = [this] {
    const auto said =
        io::runBlocking({"amtool",
                         {fmt::format("--alertmanager.url=http://127.0.0.1:{}", port_), "alert",
                          "query", "-o", "json"}});
    EXPECT_TRUE(said && said->code == 0) << (said ? said->err : said.error().str());
    return said ? nlohmann::json::parse(said->out, nullptr, false) : nlohmann::json();
  };
  ASSERT_TRUE(store_.addFinding(gone()));
  const auto sent = deliver(*delivery);
  ASSERT_TRUE(sent) << sent.error().str();
  const auto open = alerts();
  ASSERT_EQ(open.size(), 1u) << open;
  EXPECT_EQ(open[0]["labels"]["subject"], "@cluster");
  EXPECT_EQ(open[0]["annotations"]["summary"], gone().text);
  ASSERT_TRUE(store_.clearFindings(gone().facet));
  ASSERT_TRUE(deliver(*delivery));
  EXPECT_EQ(alerts().size(), 0u);
}

TEST_F(NotifySystem, aSignatureIsWhatPythonComputes) {
  std::ofstream(folder_ / "receiver.py") << kPythonReceiver;
  const auto secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  std::ofstream(folder_ / "key") << secret << "\n";
  start("python3", {(folder_ / "receiver.py").string(), std::to_string(port_), secret,
                    (folder_ / "bodies").string()});
  auto& receiver = cluster_.notifications["oncall"];
  receiver.url = fmt::format("http://127.0.0.1:{}/hook", port_);
  receiver.secret = inventory::SecretRef{std::filesystem::path(folder_ / "key"), ""};
  const auto delivery = makeDelivery(services(), "oncall", receiver);
  ASSERT_TRUE(store_.addFinding(gone()));
  const auto sent = deliver(*delivery);
  ASSERT_TRUE(sent) << sent.error().str();
  EXPECT_THAT(io::readFile(folder_ / "bodies").value_or(""), HasSubstr("finding.raised"));
  std::ofstream(folder_ / "key") << "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
  ASSERT_TRUE(store_.clearFindings(gone().facet));
  const auto refused = deliver(*delivery);
  ASSERT_FALSE(refused) << "another key";
  EXPECT_THAT(refused.error().str(), HasSubstr("answered 401"));
}

}  // namespace
}  // namespace muster::monitor
