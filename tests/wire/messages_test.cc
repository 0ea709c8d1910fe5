// SPDX-License-Identifier: Apache-2.0
// Messages: what is printed is read back the same; what is no message is refused, never a crash.
#include "wire/messages.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace muster::wire {
namespace {

using ::testing::HasSubstr;

/// Random messages from a fixed seed: text with quotes, control characters and beyond ASCII,
/// numbers at their ends.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(engine_);
  }
  std::string text() {
    static const std::vector<std::string> kPieces = {"a",  "Z", "0", " ", "\"", "\\",   "\n",
                                                     "\t", "{", "}", "ä", "水", "\x01", "/"};
    std::string out;
    for (std::size_t i = below(12); i > 0; --i) out += kPieces[below(kPieces.size())];
    return out;
  }
  std::string name() { return "n" + text(); }
  std::uint64_t number() { return std::uniform_int_distribution<std::uint64_t>()(engine_); }
  template <class T, class Make>
  std::vector<T> some(Make make) {
    std::vector<T> items;
    for (std::size_t i = below(4); i > 0; --i) items.push_back(make());
    return items;
  }

  AgentTaskReport report() {
    AgentTaskReport report;
    report.id = name();
    report.phase = static_cast<TaskPhase>(below(4));
    if (below(2)) report.fraction = static_cast<double>(below(100)) / 100;
    report.text = text();
    if (report.phase == TaskPhase::Done)
      report.result = R"({"x":")" + std::to_string(number()) + "\"}";
    if (report.phase == TaskPhase::Failed) report.code = static_cast<ErrorCode>(below(8));
    report.reasons = some<TaskReason>([&] { return static_cast<TaskReason>(below(6)); });
    return report;
  }
  PollRequest poll() {
    PollRequest poll;
    poll.mode = below(2) ? Mode::Disk : Mode::Ram;
    poll.boot_id = name();
    poll.agent_version = text();
    poll.image_digest = text();
    for (std::size_t i = below(4); i > 0; --i) poll.probes[text()] = text();
    poll.reports = some<AgentTaskReport>([&] { return report(); });
    poll.hardware = text();
    poll.session = text();
    poll.sequence = number();
    return poll;
  }
  PollResponse response() {
    PollResponse response;
    response.start = some<AgentTask>([&] {
      const auto fence =
          below(2) ? Fence{text(), static_cast<std::int64_t>(below(1000) + 1)} : Fence{};
      return AgentTask{name(), static_cast<TaskKind>(below(9)), R"({"p":[1,2]})",
                       std::chrono::seconds(below(100000)), fence};
    });
    response.forget = some<std::string>([&] { return text(); });
    response.session = text();
    return response;
  }
  Hardware hardware() {
    Hardware hardware{text(),   text(), text(), text(), static_cast<int>(below(1024)),
                      number(), {},     {},     {},     {}};
    hardware.gpus = some<Gpu>([&] { return Gpu{text(), text(), text(), text(), text()}; });
    hardware.disks = some<Disk>([&] {
      return Disk{text(), text(), text(), text(), text(), number(), static_cast<DiskUse>(below(5))};
    });
    hardware.nics = some<Nic>([&] { return Nic{text(), text(), text()}; });
    hardware.rdma_devices = some<std::string>([&] { return text(); });
    return hardware;
  }

 private:
  std::mt19937 engine_;
};

TEST(Messages, whatIsPrintedIsReadBackTheSame) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random random(seed);
    auto poll = toJson(random.poll());
    auto parsed_poll = parsePollRequest(poll);
    ASSERT_TRUE(parsed_poll) << parsed_poll.error().str() << " in " << poll;
    EXPECT_EQ(toJson(*parsed_poll), poll);
    auto response = toJson(random.response());
    auto parsed_response = parsePollResponse(response);
    ASSERT_TRUE(parsed_response) << parsed_response.error().str() << " in " << response;
    EXPECT_EQ(toJson(*parsed_response), response);
    auto hardware = toJson(random.hardware());
    auto parsed_hardware = parseHardware(hardware);
    ASSERT_TRUE(parsed_hardware) << parsed_hardware.error().str() << " in " << hardware;
    EXPECT_EQ(toJson(*parsed_hardware), hardware);
  }
}

TEST(Messages, fieldsArriveWhereTheyBelong) {
  AgentTaskReport report;
  report.id = "t";
  report.phase = TaskPhase::Failed;
  report.fraction = 0.25;
  report.text = "no";
  report.code = ErrorCode::Denied;
  PollRequest poll{Mode::Disk, "boot", "1.0", "digest", {{"kernel", "6"}},
                   {report},   "{}",   "",    "s",      7};
  auto read = parsePollRequest(toJson(poll));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mode, Mode::Disk);
  EXPECT_EQ(read->boot_id, "boot");
  EXPECT_EQ(read->image_digest, "digest");
  EXPECT_EQ(read->probes.at("kernel"), "6");
  EXPECT_EQ(read->sequence, 7u);
  ASSERT_EQ(read->reports.size(), 1u);
  EXPECT_EQ(read->reports[0].code, ErrorCode::Denied);
  EXPECT_DOUBLE_EQ(read->reports[0].fraction, 0.25);
  auto enroll = parseEnrollRequest(toJson(EnrollRequest{"tok", "csr", "mac"}));
  EXPECT_EQ(enroll->enrollment + enroll->csr_pem + enroll->mac, "tokcsrmac");
  auto answer = parseEnrollResponse(toJson(EnrollResponse{"cert", "ca", "node"}));
  EXPECT_EQ(answer->certificate_pem + answer->ca_pem + answer->node, "certcanode");
}

TEST(Messages, aShortPollSaysOnlyWhoCalls) {
  PollRequest poll{Mode::Disk, "boot", "1.0", "digest", {{"kernel", "6"}}, {}, "{}", "", "s", 7};
  poll.unchanged_since = 6;
  const auto text = toJson(poll);
  EXPECT_EQ(text,
            R"({"boot_id":"boot","mode":"disk","sequence":7,"session":"s","unchanged_since":6})");
  const auto read = parsePollRequest(text);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->unchanged_since, 6u);
  EXPECT_EQ(read->sequence, 7u);
  EXPECT_TRUE(read->probes.empty());
  EXPECT_FALSE(read->wants_answer);
  EXPECT_FALSE(parsePollRequest(R"({"boot_id":"boot","mode":"disk","sequence":7,"session":"s"})"))
      << "what is left out must be named";
}

TEST(Messages, reasonsAndUsesAreWordsAndThoseOfANewerAgentSayNothing) {
  const auto reports = parseReports(
      R"([{"id":"a","phase":"failed","code":"denied","text":"no",
           "reasons":["disks-untouched","of-next-year","system-wipe-denied"]},
          {"id":"b","phase":"failed","code":"denied","text":"no disk was touched: replace the disk"}])");
  ASSERT_TRUE(reports) << reports.error().str();
  EXPECT_EQ((*reports)[0].reasons,
            (std::vector{TaskReason::DisksUntouched, TaskReason::SystemWipeDenied}));
  EXPECT_TRUE((*reports)[0].has(TaskReason::DisksUntouched));
  EXPECT_TRUE((*reports)[1].reasons.empty()) << "an older agent says it in words alone";
  EXPECT_FALSE(parseReports(R"([{"id":"a","phase":"done","reasons":"disks-untouched"}])"));
  const auto disk = [](const std::string& use) {
    return parseHardware(
               R"({"manufacturer":"","product":"","serial":"","uuid":"","cpus":1,"memory_bytes":1,
                   "gpus":[],"nics":[],"rdma_devices":[],"disks":[{"path":"","serial":"","wwn":"",
                   "model":"","content":"none","size_bytes":1)" +
               use + "}]}")
        ->disks.at(0)
        .use;
  };
  EXPECT_EQ(disk(R"(,"use":"data-set")"), DiskUse::DataSet);
  EXPECT_EQ(disk(R"(,"use":"of-next-year")"), DiskUse::Unknown);
  EXPECT_EQ(disk(""), DiskUse::Unknown) << "\"none\" of an older agent is not Empty";
}

TEST(Messages, cutOrChangedTextIsRefusedOrReadButNeverCrashes) {
  Random random(7);
  auto whole = toJson(random.poll());
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(parsePollRequest(whole.substr(0, length)));
  std::mt19937 engine(11);
  for (int i = 0; i < 3000; ++i) {
    auto changed = whole;
    changed[engine() % changed.size()] = static_cast<char>(engine());
    (void)parsePollRequest(changed);
    (void)parsePollResponse(changed);
    (void)parseHardware(changed);
    (void)parseCheckResults(changed);
  }
}

TEST(Messages, wrongTypesSizesAndWordsAreNamed) {
  auto poll = [](const std::string&
                     member) {  // in place of the good one of this name: no name may stand twice
    std::string text = "{" + member;
    for (const char* good : {R"("mode":"ram")", R"("boot_id":"b")", R"("agent_version":"")",
                             R"("probes":{})", R"("reports":[])", R"("sequence":1)"})
      if (std::string_view(good).substr(0, std::string_view(good).find(':')) !=
          member.substr(0, member.find(':')))
        text += std::string(",") + good;
    return text + "}";
  };
  auto why = [](const std::string& text) {
    auto parsed = parsePollRequest(text);
    return parsed ? std::string("accepted") : parsed.error().str();
  };
  EXPECT_EQ(why(poll(R"("unknown":1)")), "accepted") << "a newer peer may say more";
  EXPECT_NE(why(poll(R"("unknown":1,"mode":"ram")")), "accepted") << "a name that stands twice";
  EXPECT_THAT(why(poll(R"("mode":"moon")")), HasSubstr("poll.mode is not a known word"));
  EXPECT_THAT(why(poll(R"("sequence":-1)")), HasSubstr("poll.sequence must be a whole number"));
  EXPECT_THAT(why(poll(R"("probes":{"a":1})")), HasSubstr("poll.probes"));
  EXPECT_THAT(why(poll(R"("reports":[{"id":"x","phase":"running"},{"id":"","phase":"done"}])")),
              HasSubstr("poll.reports[1].id is empty"));
  EXPECT_THAT(why(poll(R"("reports":[7])")), HasSubstr("poll.reports[0] must be an object"));
  EXPECT_THAT(why(poll(R"("session":")" + std::string(kMaxNameBytes + 1, 'x') + "\"")),
              HasSubstr("longer than"));
  EXPECT_THAT(why("[]"), HasSubstr("not a JSON object"));
  std::string many = "\"reports\":[";
  for (std::size_t i = 0; i <= kMaxTasks; ++i)
    many += (i ? "," : "") + std::string(R"({"id":"x","phase":"done"})");
  EXPECT_THAT(why(poll(many + "]")), HasSubstr("more than 128 entries"));
  EXPECT_THAT(
      parsePollResponse(
          R"({"start":[{"id":"a","kind":"probe","params":"[]","deadline_seconds":1}],"forget":[]})")
          .error()
          .str(),
      HasSubstr("params must be a JSON object"));
  EXPECT_FALSE(parsePollResponse(
      R"({"start":[{"id":"a","kind":"shell","params":"{}","deadline_seconds":1}],"forget":[]})"));
}

TEST(Messages, deepNestingIsNoTrouble) {
  std::string deep(200000, '[');
  EXPECT_FALSE(parsePollRequest(deep));
  EXPECT_FALSE(parsePollRequest("{\"mode\":" + deep));
}

TEST(Messages, bytesThatAreNoTextTravelAsReplacementCharacters) {
  PollRequest poll;
  poll.boot_id = "b";
  poll.probes["kernel"] = "6.1\xff\xfe";
  auto read = parsePollRequest(toJson(poll));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_THAT(read->probes["kernel"], HasSubstr("6.1"));
}

TEST(Messages, checkResultsKeepTheirWordAndTheirNumbers) {
  std::vector<CheckResult> checks(2);
  checks[0] = {"host.gemm", CheckStatus::Pass, "fine", {{"gemm_gflops", 12.5}}, R"({"n":1})", 3.5};
  checks[1] = {"gpu.count", CheckStatus::NoData, "nothing", {{"x", std::nan("")}}, "", 0};
  auto read = parseCheckResults(toJson(checks));
  ASSERT_TRUE(read) << read.error().str();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].status, CheckStatus::Pass);
  EXPECT_DOUBLE_EQ((*read)[0].values["gemm_gflops"], 12.5);
  EXPECT_EQ((*read)[0].evidence, R"({"n":1})");
  EXPECT_EQ((*read)[1].status, CheckStatus::NoData);
  EXPECT_TRUE(std::isnan((*read)[1].values["x"]));
  EXPECT_FALSE(parseCheckResults(R"({"results":[{"id":"a","status":"perhaps","text":""}]})"));
}

TEST(Messages, kindsHaveOneWordEach) {
  for (int kind = 0; kind < 9; ++kind)
    EXPECT_EQ(*parseTaskKind(toString(static_cast<TaskKind>(kind))), static_cast<TaskKind>(kind));
  EXPECT_FALSE(parseTaskKind("shell"));
}

}  // namespace
}  // namespace muster::wire
