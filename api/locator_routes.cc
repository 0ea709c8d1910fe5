// SPDX-License-Identifier: Apache-2.0
// The LED by which somebody at the rack finds a machine. A BMC answers within seconds or not at
// all, so it is asked beside the reader's thread; what it said last is read from here.
#include "api/answers.h"
#include "api/schema.h"
#include "app/bmc_power.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace muster::api {
namespace {

constexpr std::size_t kMostWaiting = 32, kMostKnown = 2'000;

struct LocatorRow {
  std::string state = "unknown";  ///< unknown, asking, on, off, failed
  std::string text;               ///< why it failed
  WallTime at{};
};

/// One machine after the other, on a thread of its own that lives as long as there is work.
class LocatorDesk {
 public:
  LocatorDesk() = default;
  LocatorDesk(const LocatorDesk&) = delete;
  LocatorDesk& operator=(const LocatorDesk&) = delete;
  ~LocatorDesk() {
    {
      const std::scoped_lock lock(mutex_);
      waiting_.clear();
    }
    if (worker_.joinable()) worker_.join();
  }

  LocatorRow row(const NodeName& node) {
    const std::scoped_lock lock(mutex_);
    const auto found = rows_.find(node);
    return found == rows_.end() ? LocatorRow{} : found->second;
  }
  /// False: too many wait already.
  bool ask(const app::Options& options, const NodeName& node, std::optional<bool> on,
           WallTime now) {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    if (rows_.size() >= kMostKnown) rows_.clear();
    rows_[node] = {"asking", "", now};
    waiting_.push_back({options, node, on});
    if (works_) return true;
    if (worker_.joinable()) worker_.join();
    works_ = true;
    worker_ = std::thread([this] { work(); });
    return true;
  }

 private:
  struct Wish {
    app::Options options;
    NodeName node;
    std::optional<bool> on;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (!waiting_.empty()) {
      const auto wish = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const auto is_on = app::locateNode(wish.options, wish.node, wish.on);
      lock.lock();
      rows_[wish.node] = {!is_on   ? "failed"
                          : *is_on ? "on"
                                   : "off",
                          is_on ? "" : is_on.error().str(), SystemClock().now()};
    }
    works_ = false;
  }

  std::mutex mutex_;
  std::deque<Wish> waiting_;
  std::map<NodeName, LocatorRow> rows_;
  bool works_ = false;
  std::thread worker_;
};

nlohmann::json locatorJson(const NodeName& node, const LocatorRow& row) {
  nlohmann::json out = {{"node", node.str()}, {"state", row.state}, {"text", row.text}};
  if (row.at != WallTime{}) out["at"] = muster::toString(row.at);
  return out;
}

Reply look(SiteReader& reader, const Call& call, LocatorDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  return Answer{200, locatorJson(node->name, desk.row(node->name))};
}

Reply order(SiteReader& reader, const Call& call, LocatorDesk& desk) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const auto word = call.text("led");
  if (word != "on" && word != "off" && word != "read")
    return std::unexpected(Problem(400, "invalid-input", "\"led\" is on, off or read"));
  const auto on = word == "read" ? std::nullopt : std::optional(word == "on");
  if (!desk.ask(reader.optionsFor(call.actor), node->name, on, reader.now()))
    return std::unexpected(
        Problem(409, "conflict", "too many BMCs are asked already", "try again in a minute"));
  return Answer{202, locatorJson(node->name, desk.row(node->name))};
}

}  // namespace

void addLocatorRoutes(std::vector<ApiRoute>& routes) {
  auto desk = std::make_shared<LocatorDesk>();
  routes.push_back(
      {"GET",
       "/nodes/{name}/locator",
       Verb::Look,
       Reach::Scoped,
       "What the machine's locate LED was when its BMC was asked last",
       {kNameField},
       {},
       {},
       refTo("Locator"),
       200,
       [desk](SiteReader& reader, const Call& call) { return look(reader, call, *desk); }});
  routes.push_back(
      {"POST",
       "/nodes/{name}/locator",
       Verb::Power,
       Reach::Scoped,
       "Switch the machine's locate LED, or ask its BMC for it",
       {kNameField},
       {},
       {{"led", Kind::Text, "on, off or read", true}},
       refTo("Locator"),
       202,
       [desk](SiteReader& reader, const Call& call) { return order(reader, call, *desk); }});
}

}  // namespace muster::api
