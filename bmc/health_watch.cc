// SPDX-License-Identifier: Apache-2.0
#include "bmc/health_watch.h"

#include "base/async/deadline.h"
#include "base/json_output.h"
#include "bmc/arbiter.h"
#include "bmc/machine_power.h"
#include "bmc/redfish/event_stream.h"
#include "bmc/sel_cursor.h"
#include "inventory/model/cluster.h"

#include <fmt/ranges.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using lifecycle::Fact;
using lifecycle::Subject;
using nlohmann::json;

constexpr auto kReadLimit = 3min;      ///< of one BMC
constexpr auto kIdle = 5s;             ///< between looks at whose turn it is
constexpr std::size_t kLogRead = 200;  ///< newest entries
constexpr std::size_t kTold = 64;      ///< events that wait for the next reading
constexpr auto kEventGap = 30s;        ///< between two readings that events ask for
constexpr std::chrono::seconds kFirstReturn{5},
    kLongestReturn{300};  ///< to a BMC whose stream cannot be opened
constexpr auto kOpenGap =
    50ms;  ///< between the openings of two BMCs' streams: a thousand take 50 s
constexpr auto kNoStreamAgain = 6h;  ///< to one that offers none; an update may bring it
constexpr std::size_t kNamed = 4;    ///< symptoms in a fact's value; all are in its evidence
constexpr std::string_view kOk = "ok";

using Readings = std::vector<SensorReading>;

class Watch final : public HealthWatch {
 public:
  Watch(const inventory::Cluster& cluster, BmcFleet& bmcs, lifecycle::Store& store, Clock& clock,
        SymptomPolicy evaluate)
      : cluster_(cluster),
        bmcs_(bmcs),
        store_(store),
        clock_(clock),
        evaluate_(std::move(evaluate)) {}

  std::string_view name() const override { return "bmc-health"; }

  std::vector<lifecycle::Goal> goals(const inventory::Cluster&, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    const auto* fact = subject.isCluster()
                           ? nullptr
                           : facts.find(subject, FacetName(std::string(kBmcHealthFacet)));
    if (!fact) return {};
    lifecycle::Goal goal;
    goal.facet = {subject, fact->facet};
    goal.want = std::string(kOk);
    goal.expected = 1s;
    goal.deadline = 60s;
    goal.why = "a node in a pool must be well";
    if (fact->value != kOk)
      goal.blocked = fmt::format(
          "its BMC reports {}; no action of muster mends that: the evidence names what to do",
          fact->value.substr(fact->value.find(':') + 1));
    return {goal};
  }
  Async<std::vector<Fact>> observe(Subject subject) override { co_return known(subject); }
  Async<std::vector<Fact>> verify(lifecycle::Action action) override {
    co_return known(action.facet.subject);
  }
  Async<lifecycle::Outcome> act(lifecycle::Action, lifecycle::ActContext&) override {
    co_return lifecycle::Blocked{"nothing that muster does mends it"};
  }

  void notify(const NodeName& node) override {
    if (const auto found = nodes_.find(node); found != nodes_.end()) found->second.due = {};
  }

  /// Whoever runs this ends it by ending the loop; the listeners end with it.
  Task<void> run() override {
    begin();
    const auto executor = co_await asio::this_coro::executor;
    std::chrono::milliseconds turn{0};
    for (const auto& [node, state] : nodes_)
      asio::co_spawn(executor,
                     listenForEver(*this, alive_, node, std::exchange(turn, turn + kOpenGap)),
                     asio::detached);
    while (true) {
      co_await readDue();
      co_await clock_.sleep(kIdle);
    }
  }

 private:
  struct State {
    std::chrono::steady_clock::time_point due{};
    std::vector<BmcSymptom> suspected;  ///< by the last reading of the sensors; believed when the
                                        ///< next one says it again
    std::optional<Fact> fact;
    std::chrono::steady_clock::time_point read_at{};  ///< begun last
    std::vector<LogEntry> told;                       ///< by the BMC itself, since then
  };

  /// Spread over the interval, so that a thousand BMCs do not answer at once.
  void begin() {
    std::size_t place = 0;
    for (const auto& node : cluster_.nodes) {
      if (!node.bmc.url.starts_with("https://")) continue;
      auto& state = nodes_[node.name];
      state.due = clock_.steady() + std::chrono::milliseconds(kHealthEvery) * place++ /
                                        std::max<std::size_t>(cluster_.nodes.size(), 1);
    }
  }

  std::vector<Fact> known(const Subject& subject) const {
    const auto found = subject.isCluster() ? nodes_.end() : nodes_.find(subject.node());
    if (found == nodes_.end() || !found->second.fact) return {};
    return {*found->second.fact};
  }

  /// What a BMC tells by itself is read with the next look, which comes at once; where it tells
  /// nothing, the looks alone remain. Each has its turn, now and after every error: what takes the
  /// network from all of them gives it back to all of them at once.
  static Task<void> listenForEver(Watch& self, std::weak_ptr<int> alive, NodeName node,
                                  std::chrono::milliseconds turn) {
    auto* source = self.bmcs_.eventsOf(node);
    if (!source) co_return;
    EventStreamPosition place;
    std::chrono::milliseconds patience = kFirstReturn;
    co_await self.clock_.sleep(turn);
    if (alive.expired()) co_return;
    while (true) {
      bool stood = false;
      const std::function<void()> opened = [&self, &stood, alive, node] {
        if (alive.expired()) return;
        if (!std::exchange(stood, true) && self.streams_.insert(node).second)
          self.ask(node);  // what happened before was not told
      };
      const std::function<void(std::vector<LogEntry>)> told =
          [&self, alive, node](std::vector<LogEntry> entries) {
            if (!alive.expired()) self.hear(node, std::move(entries));
          };
      auto ended = co_await source->listen(place, opened, told);
      if (alive.expired()) co_return;
      std::chrono::milliseconds pause = patience;
      if (ended) {
        place = std::move(*ended);
        pause = place.reconnect_after;
        patience = kFirstReturn;
      } else {
        self.streams_.erase(node);
        pause += turn;
        if (ended.error().code() == ErrorCode::NotFound)
          pause = kNoStreamAgain + turn;
        else
          patience = std::min<std::chrono::milliseconds>(2 * patience, kLongestReturn);
      }
      co_await self.clock_.sleep(pause);
      if (alive.expired()) co_return;
    }
  }

  void hear(const NodeName& node, std::vector<LogEntry> entries) {
    auto& told = nodes_.at(node).told;
    const bool weighty = std::any_of(entries.begin(), entries.end(), [](const LogEntry& entry) {
      return isSignificant(entry.severity);
    });
    for (auto& entry : entries)
      if (isSignificant(entry.severity) && told.size() < kTold) told.push_back(std::move(entry));
    if (weighty) ask(node);
  }

  /// Soon, but no flood of events makes it a flood of readings.
  void ask(const NodeName& node) {
    auto& state = nodes_.at(node);
    state.due = std::min(state.due, std::max(clock_.steady(), state.read_at + kEventGap));
  }

  Task<void> readDue() {
    struct Batch {
      explicit Batch(const asio::any_io_executor& executor)
          : bell(executor, asio::steady_timer::time_point::max()) {}
      asio::steady_timer bell;
      std::size_t open = 0;
      AsyncSemaphore places{kHealthAtOnce};
    };
    const auto executor = co_await asio::this_coro::executor;
    auto batch = std::make_shared<Batch>(executor);
    std::vector<NodeName> due;
    for (const auto& [node, state] : nodes_)
      if (state.due <= clock_.steady()) due.push_back(node);
    batch->open = due.size();
    if (due.empty()) co_return;
    for (const auto& node : due)
      asio::co_spawn(executor, readInPlace(*this, batch, node), [batch](std::exception_ptr) {
        if (--batch->open == 0) batch->bell.cancel();
      });
    boost::system::error_code ignored;
    co_await batch->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  template <class Batch>
  static Task<void> readInPlace(Watch& self, std::shared_ptr<Batch> batch, NodeName node) {
    auto permit = co_await batch->places.enter();
    auto& state = self.nodes_.at(node);
    state.read_at = self.clock_.steady();
    state.due = state.read_at + kHealthEvery;
    const auto done = co_await withDeadline<void>(
        self.clock_, kReadLimit, "reading sensors and event log of the BMC of " + node.str(),
        self.readOne(node));
    if (!done)
      logInfo("bmc", "{}: {}", node.str(),
              done.error().str());  // what was read last stands; others notice that it is silent
  }

  Async<void> readOne(NodeName node) {
    auto& bmc = bmcs_.at(node);
    auto& state = nodes_.at(node);
    auto readings = co_await bmc.sensors();
    if (!readings && readings.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(readings.error()));
    auto now = symptomsOf(readings.value_or(Readings()));
    std::vector<BmcSymptom> believed;
    for (const auto& symptom : now) {
      const bool again = std::any_of(
          state.suspected.begin(), state.suspected.end(), [&](const BmcSymptom& before) {
            return before.id == symptom.id && before.device == symptom.device;
          });
      if (again) believed.push_back(symptom);
    }
    if (believed.size() < now.size())
      state.due = std::min(state.due, clock_.steady() + kHealthConfirm);
    state.suspected = std::move(now);
    auto entries = co_await bmc.eventLog(kLogRead);
    if (!entries && entries.error().code() != ErrorCode::NotFound)
      co_return fail(std::move(entries.error()));
    CO_TRY(logged, readLog(node, entries.value_or(EventLog()), state.told));
    state.told.clear();
    believed.insert(believed.end(), logged.begin(), logged.end());
    state.fact = factOf(node, std::move(believed), machinePowerOf(readings.value_or(Readings())));
    co_return Result<void>();
  }

  /// The mark is written before the finding: one too few is less than one again and again.
  Result<std::vector<BmcSymptom>> readLog(const NodeName& node, const EventLog& log,
                                          const std::vector<LogEntry>& told) {
    const auto key = "bmc.log." + node.str();
    TRY(text, store_.getValue(key));
    auto mark = EventLogCursor::parse(text.value_or(""));
    const auto had = mark.kept.size();
    bool news = mark.take(log, clock_.now());
    news = mark.takeEvents(told, clock_.now()) || news;
    if (const auto now = mark.str();
        now != text.value_or("") && !(mark.marks.empty() && mark.kept.empty()))
      TRY_OK(store_.putValue(key, now));
    const lifecycle::FacetRef facet{Subject(node), FacetName(std::string(kBmcLogFacet))};
    if (news || (had > 0 && mark.kept.empty())) TRY_OK(store_.clearFindings(facet));
    if (news) TRY_OK(store_.addFinding(findingOf(facet, mark)));
    std::vector<BmcSymptom> out;
    for (const auto& entry : mark.kept)
      if (clock_.now() - entry.seen <= kLogSymptomFor)
        out.push_back({entry.severity == "Critical" ? "bmc.log-critical" : "bmc.log-warning", "",
                       entry.message});
    return out;
  }

  lifecycle::Finding findingOf(const lifecycle::FacetRef& facet, const EventLogCursor& mark) const {
    json evidence = json::array();
    bool critical = false;
    for (const auto& entry : mark.kept) {
      critical = critical || entry.severity == "Critical";
      evidence.push_back(
          {{"created", entry.created}, {"severity", entry.severity}, {"message", entry.message}});
      if (!entry.log.empty()) evidence.back()["log"] = entry.log;
      if (!entry.resolution.empty()) evidence.back()["resolution"] = entry.resolution;
    }
    const auto& resolution = mark.kept.back().resolution;
    return {facet,
            critical ? Severity::Error : Severity::Warning,
            fmt::format("its BMC logged {} entries of weight; the newest: {}", mark.kept.size(),
                        mark.kept.back().message),
            jsonText(evidence),
            fmt::format(
                "{}`muster rma {} --out FILE` gathers all of the log",
                resolution.empty() ? "read them; " : fmt::format("the BMC says: {}; ", resolution),
                facet.subject.str()),
            clock_.now(),
            lifecycle::kBmcSource};
  }

  /// The strongest first; what is only watched is no reason for anything.
  Fact factOf(const NodeName& node, std::vector<BmcSymptom> symptoms,
              const std::optional<MachinePower>& power) const {
    std::sort(symptoms.begin(), symptoms.end());
    symptoms.erase(std::unique(symptoms.begin(), symptoms.end()), symptoms.end());
    std::vector<std::pair<SymptomResponse, BmcSymptom>> evaluated;
    for (auto& symptom : symptoms) evaluated.emplace_back(evaluate_(symptom), symptom);
    std::stable_sort(evaluated.begin(), evaluated.end(),
                     [](const auto& a, const auto& b) { return a.first.rank > b.first.rank; });
    std::vector<std::string> named;
    json rows = json::array();
    for (const auto& [verdict, symptom] : evaluated) {
      const auto name = symptom.device.empty() ? symptom.id : symptom.id + "@" + symptom.device;
      if (verdict.rank > 0 && std::find(named.begin(), named.end(), name) == named.end())
        named.push_back(name);
      rows.push_back({{"symptom", symptom.id},
                      {"device", symptom.device},
                      {"text", symptom.text},
                      {"advice", verdict.advice},
                      {"action", verdict.action}});
    }
    Fact fact{Subject(node), FacetName(std::string(kBmcHealthFacet)), std::string(kOk),
              clock_.now(),  "redfish " + bmcs_.at(node).address(),   ""};
    if (!named.empty()) {
      const auto shown = std::min(named.size(), kNamed);
      fact.value = fmt::format(
          "{}:{}{}", evaluated.front().first.action,
          fmt::join(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(shown), ","),
          named.size() > shown ? fmt::format(",+{}", named.size() - shown) : "");
    }
    json evidence;
    if (!rows.empty()) evidence["symptoms"] = std::move(rows);
    if (power) evidence["power"] = toJson(*power);
    if (!evidence.empty()) fact.evidence = jsonText(evidence);
    return fact;
  }

  const inventory::Cluster& cluster_;
  BmcFleet& bmcs_;
  lifecycle::Store& store_;
  Clock& clock_;
  SymptomPolicy evaluate_;
  std::map<NodeName, State> nodes_;
  std::set<NodeName> streams_;  ///< of BMCs that tell by themselves now
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

/// A limit that is passed counts although the BMC calls the sensor well: some never say anything
/// else.
std::vector<BmcSymptom> symptomsOf(const std::vector<SensorReading>& readings) {
  std::vector<BmcSymptom> out;
  for (const auto& reading : readings) {
    const auto words = fmt::format(
        "{} {}{}", reading.value, reading.unit,
        reading.upper_critical ? fmt::format(", critical from {}", *reading.upper_critical) : "");
    if (reading.kind == "LeakDetector") {
      if (reading.value != 0)
        out.push_back({"bmc.leak", reading.name, reading.health.empty() ? "leak" : reading.health});
      continue;
    }
    const bool beyond = reading.upper_critical && *reading.upper_critical > 0 &&
                        reading.value >= *reading.upper_critical;
    if (reading.health == "Critical" || beyond)
      out.push_back({"bmc.sensor-critical", reading.name, words});
    else if (reading.health == "Warning")
      out.push_back({"bmc.sensor-warning", reading.name, words});
  }
  return out;
}

std::unique_ptr<HealthWatch> makeHealthWatch(const inventory::Cluster& cluster, BmcFleet& bmcs,
                                             lifecycle::Store& store, Clock& clock,
                                             SymptomPolicy evaluate) {
  return std::make_unique<Watch>(cluster, bmcs, store, clock, std::move(evaluate));
}

}  // namespace muster::bmc
