// SPDX-License-Identifier: Apache-2.0
// What BMCs tell by themselves: the format, and the way from the emulated BMC over real HTTPS into
// a finding.
#include "bmc/redfish/event_stream.h"

#include "base/io/crypto.h"
#include "bmc/fleet.h"
#include "bmc/health_watch.h"
#include "bmc/sel_cursor.h"
#include "inventory/model/cluster.h"
#include "lab/vbmc/redfish_service.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> dataOf(EventReader& reader, std::string_view bytes,
                                std::size_t piece_bytes) {
  std::vector<std::string> out;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    const auto events = reader.take(bytes.substr(0, piece_bytes));
    for (const auto& event : *events) out.push_back(event.data);
  }
  return out;
}

TEST(EventReader, takesPiecesOfAnySizeAndAllLineEnds) {
  constexpr std::string_view kStream =
      ": hello\nid: 7\nretry: 250\ndata: {\"a\":\ndata: 1}\n\nid:8\r\ndata:x\r\n\r\nevent: "
      "other\rdata\r\rdata: unfinished\n";
  for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
    EventReader reader;
    EXPECT_THAT(dataOf(reader, kStream, piece), ElementsAre("{\"a\":\n1}", "x", "")) << piece;
    EXPECT_EQ(reader.lastId(), "8");
    EXPECT_EQ(reader.retry(), 250ms);
  }
}

TEST(EventReader, refusesAnEventWithoutEnd) {
  EventReader reader;
  EXPECT_FALSE(reader.take(std::string(kMaxEventBytes + 1, 'x')));
  EventReader lines;
  const auto line = "data: " + std::string(1000, 'x') + "\n";
  std::size_t taken = 0;
  while (taken < 2 * kMaxEventBytes && lines.take(line)) taken += line.size();
  EXPECT_LT(taken, 2 * kMaxEventBytes);
}

TEST(EventRecords, areReadLeniently) {
  const auto entries = entriesOf(Json::parse(
      R"({"Events":[{"EventId":12,"Severity":"Warning","Message":"fan"},{"MessageId":"Alert.1.0.X","MessageSeverity":"Critical"},{"EventId":"3"},7]})"));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].id, "12");
  EXPECT_EQ(entries[0].severity, "Warning");
  EXPECT_EQ(entries[1].message, "Alert.1.0.X");
  for (const char* other : {"null", "[]", "{}", R"({"Events":{}})", R"({"MetricValues":[]})"})
    EXPECT_THAT(entriesOf(Json::parse(other)), IsEmpty()) << other;
}

TEST(EventLogCursor, saysAnEventAndItsLogEntryOnce) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 22);
  const LogEntry event{"9", "2026-11-22T00:00:00Z", "Critical", "PSU 2 failed"},
      entry{"41", "2026-11-22T00:00:03Z", "Critical", "PSU 2 failed"};
  EventLogCursor mark;
  const LogEntry history{"1", "2020", "Critical", "history"};
  mark.take({{history}, {""}}, now);
  EXPECT_TRUE(mark.takeEvents({event}, now));
  EXPECT_FALSE(mark.takeEvents({event}, now + 1h)) << "told again after a new connection";
  mark = EventLogCursor::parse(mark.str());
  EXPECT_FALSE(mark.take({{history, entry}, {""}}, now + 1min)) << "its entry in the log";
  EXPECT_EQ(mark.kept.size(), 1u);
  EXPECT_TRUE(
      mark.takeEvents({{"10", "2026-11-22T05:00:00Z", "Critical", "PSU 2 failed"}}, now + 5h))
      << "it failed again";
  EventLogCursor log_first;
  log_first.take({{}, {""}}, now);
  EXPECT_TRUE(log_first.take({{entry}, {""}}, now)) << "the log was empty when it was met";
  EXPECT_FALSE(log_first.takeEvents({event}, now + 1min));
  EXPECT_FALSE(log_first.takeEvents({{"11", "", "OK", "fine"}}, now));
}

/// A GPU baseboard's clock is years behind that of the host's BMC.
TEST(EventLogCursor, eachLogHasItsOwnMarkAndClock) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 22);
  const LogEntry sel{"75", "2026-11-21T00:00:00Z", "OK", "power on", "/sel"};
  EventLogCursor mark;
  EXPECT_FALSE(mark.take({{sel}, {"/sel"}}, now));
  const LogEntry old{"1", "1970-01-01T00:00:20Z", "Critical", "years ago", "/hgx"};
  EXPECT_FALSE(mark.take({{old, sel}, {"/sel", "/hgx"}}, now))
      << "the baseboard was off when the BMC was met: what its log holds is history";
  const LogEntry fresh{"2", "1970-01-02T00:00:00Z", "Critical", "GPU 3 fell off", "/hgx"};
  mark = EventLogCursor::parse(mark.str());
  EXPECT_TRUE(mark.take({{old, fresh, sel}, {"/sel", "/hgx"}}, now));
  ASSERT_EQ(mark.kept.size(), 1u);
  EXPECT_EQ(mark.kept[0].log, "/hgx");
  EXPECT_FALSE(mark.take({{old, fresh, sel}, {"/sel", "/hgx"}}, now));
}

TEST(EventLogCursor, oneEntryInTwoLogsIsSaidOnce) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 22);
  EventLogCursor mark;
  mark.take({{}, {"/sel", "/events"}}, now);
  const LogEntry one{"9", "2026-11-21T00:00:00Z", "Critical", "fan 2 stands", "/sel"};
  auto other = one;
  other.log = "/events";
  EXPECT_TRUE(mark.take({{one, other}, {"/sel", "/events"}}, now));
  EXPECT_EQ(mark.kept.size(), 1u);
}

TEST(EventLogCursor, goesOnFromTheOneMarkOfAnEarlierVersion) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 11 / 22);
  auto mark = EventLogCursor::parse(R"({"met":true,"id":"7","created":"2026","kept":[]})");
  const LogEntry seen{"7", "2026", "Critical", "seen", "/sel"},
      fresh{"8", "2027", "Critical", "new", "/sel"},
      other{"1", "2025", "Critical", "another log", "/hgx"};
  EXPECT_TRUE(mark.take({{other, seen, fresh}, {"/sel", "/hgx"}}, now));
  ASSERT_EQ(mark.kept.size(), 1u);
  EXPECT_EQ(mark.kept[0].message, "new");
  EXPECT_EQ(mark.marks.size(), 2u) << "the unnamed one is gone";
}

/// A real server, a real client, real time; the machine behind it is in memory.
class EventStream : public testing::Test {
 protected:
  void serve(std::string_view vendor_profile) {
    auto options = test::virtualBmcOptions(folder_.path(), vendor_profile);
    options.timings.reset_duration = 300ms;
    options.went_away = [this] { server_->stop(); };
    options.came_back = [this] { listen(); };
    service_ = *lab::vbmc::RedfishService::make(clock_, workers_, machine_, std::move(options));
    listener_.identity = *io::selfSigned("bmc", {"127.0.0.1"});
    listen();
    asio::co_spawn(io_, service_->run(), asio::detached);
    cluster_ = test::clusterWithBmcAt(listener_.port);
    fleet_ = makeBmcFleet(cluster_, store_, clock_, workers_);
    watch_ = makeHealthWatch(cluster_, *fleet_, store_, clock_,
                             [](const BmcSymptom&) { return SymptomResponse{0, "watch", ""}; });
  }
  ~EventStream() override {
    if (service_) service_->stop();
    if (server_) server_->stop();
  }
  void listen() {
    server_ = *io::startHttpServer(io_.get_executor(), listener_);
    listener_.port = server_->port();  // the same after a restart
    server_->addRoutes(service_->routes());
  }
  bool until(std::function<bool()> done, std::chrono::seconds limit = 60s) {
    const auto end = clock_.steady() + limit;
    while (!done() && clock_.steady() < end) {
      io_.restart();
      io_.run_for(20ms);
    }
    return done();
  }
  std::vector<lifecycle::Fact> watchFacts() {
    return test::runAsync(io_, watch_->observe(lifecycle::Subject(node_)), 5s)
        .value_or(std::vector<lifecycle::Fact>());
  }
  EventSource& source() { return *fleet_->eventsOf(node_); }
  /// Listens, comes back where a stream ended, and keeps what it was told.
  Task<void> hear() {
    EventStreamPosition place;
    while (true) {
      auto ended = co_await source().listen(
          place, [this] { ++opened_; },
          [this](std::vector<LogEntry> entries) {
            told_.insert(told_.end(), entries.begin(), entries.end());
          });
      if (ended)
        place = *ended;
      else
        last_error_ = ended.error();
      co_await clock_.sleep(100ms);
    }
  }

  test::TempFolder folder_;
  const NodeName node_{"gpu001"};
  SystemClock clock_;
  Workers workers_{1};
  lab::vbmc::FakeMachine machine_;
  inventory::Cluster cluster_;
  test::MemoryStore store_{std::make_shared<test::MemoryStore::Data>()};
  io::ServerOptions listener_;
  std::unique_ptr<lab::vbmc::RedfishService> service_;
  std::unique_ptr<BmcFleet> fleet_;
  std::unique_ptr<HealthWatch> watch_;
  std::vector<LogEntry> told_;
  int opened_ = 0;
  std::optional<Error> last_error_;
  asio::io_context io_;
  std::unique_ptr<io::HttpServer> server_;
};

TEST_F(EventStream, tellsOnceWhatHappensAndGoesOnAfterARestartOfTheBmc) {
  serve("openbmc");
  service_->report("Critical", "before anybody listened");
  asio::co_spawn(io_, hear(), asio::detached);
  ASSERT_TRUE(until([this] { return opened_ >= 1; }));
  service_->report("Critical", "PSU 2 failed");
  service_->report("Warning", "fan 3 is slow", lab::vbmc::RedfishService::SentEvent::ByEvent);
  ASSERT_TRUE(until([this] { return told_.size() >= 2; }));
  const int before = opened_;
  ASSERT_TRUE(
      test::runAsync(io_, fleet_->at(node_).resetBmc(), 60s));  // sessions and streams are gone
  service_->report("Critical", "while it came back");
  ASSERT_TRUE(until([this] { return told_.size() >= 3; }));
  EXPECT_GT(opened_, before);
  std::vector<std::string> messages;
  for (const auto& entry : told_) messages.push_back(entry.message);
  EXPECT_THAT(messages, ElementsAre("PSU 2 failed", "fan 3 is slow", "while it came back"));
  EXPECT_EQ(told_[1].severity, "Warning");
}

TEST_F(EventStream, isNotOfferedByEveryBmc) {
  serve("supermicro");
  const auto ended =
      test::runAsync(io_, source().listen({}, [] {}, [](std::vector<LogEntry>) {}), 30s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), ErrorCode::NotFound);
}

TEST_F(EventStream, becomesAFindingAtOnceAndOnlyOnce) {
  serve("idrac");
  asio::co_spawn(io_, watch_->run(), asio::detached);
  ASSERT_TRUE(until([this] { return !watchFacts().empty(); }))
      << "the first look, which meets the log";
  const auto begun = clock_.steady();
  service_->report("Critical", "PSU 2 failed");
  ASSERT_TRUE(until([this] { return !store_.findings(nullptr)->empty(); }));
  EXPECT_LT(clock_.steady() - begun, 60s) << "long before the next look of its own";
  const auto findings = *store_.findings(nullptr);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("1 entries of weight; the newest: PSU 2 failed"))
      << "event and log entry are one";
}

}  // namespace
}  // namespace muster::bmc
