// SPDX-License-Identifier: Apache-2.0
// FakePhase: a phase whose outside world is a map of facets and a list of outside operations. A
// test says what is wanted and how the world behaves; the world counts every effect.
//
//   FakeWorld world;
//   FakePhase firmware("firmware", world);
//   firmware.want([](const inventory::Cluster&, const Subject& subject, const FactSet&) ->
//   std::vector<Goal> { … }); world.behave("gpu001/firmware.BMC").polls = 3;      // the operation
//   takes three polls world.value("gpu001/firmware.BMC")                  // what it is now
//   world.effects("gpu001/firmware.BMC")                // how often outside work on it was begun
#pragma once

#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <set>

namespace muster::test {

struct FakeWorld {
  struct Behaviour {
    int polls = 0;  ///< Again this many times before the operation is finished
    std::chrono::milliseconds poll_every{1'000};
    int fail_first = 0;  ///< act answers `error` this many times before it works
    Error error{ErrorCode::Unavailable, "the other side does not answer"};
    std::string blocked;  ///< act answers Blocked with this
    int away = 0;         ///< act answers so many times, every 15 s, that nobody answers
    bool hangs = false;   ///< act never answers
    bool throws = false;  ///< act throws: a broken phase
    bool server_ids =
        false;  ///< the outside gives operation ids (Redfish), instead of taking ours (agent)
    std::string
        becomes;  ///< what the facet becomes instead of what was asked; "" is what was asked
    bool unreadable = false;  ///< verify and observe see nothing of it
    int verify_errors = 0;    ///< verify answers Unavailable this many times
    std::map<std::string, std::string>
        also;  ///< other facets of the subject that become this when it is finished
    std::set<std::string> destroys;  ///< facets of the subject that are gone when it begins
  };
  struct Operation {
    lifecycle::FacetRef facet;
    std::string to;
    int polls_left = 0;
    bool finished = false;
  };

  static lifecycle::FacetRef ref(const std::string& text) {
    const auto slash = text.find('/');
    return {lifecycle::Subject::parse(text.substr(0, slash)), FacetName(text.substr(slash + 1))};
  }
  Behaviour& behave(const std::string& facet) { return behaviours[ref(facet)]; }
  std::string value(const std::string& facet) const {
    auto it = values.find(ref(facet));
    return it == values.end() ? "" : it->second;
  }
  void set(const std::string& facet, std::string value) { values[ref(facet)] = std::move(value); }
  int effects(const std::string& facet) const {
    auto it = effect_counts.find(ref(facet));
    return it == effect_counts.end() ? 0 : it->second;
  }

  /// Begins outside work. The same id again is the same work.
  void begin(const std::string& id, const lifecycle::FacetRef& facet, const std::string& to) {
    if (operations.contains(id)) return;
    operations[id] = Operation{facet, to, behaviours[facet].polls};
    ++effect_counts[facet];
    log.push_back(facet.str() + " → " + to);
    for (const auto& gone : behaviours[facet].destroys)
      values.erase({facet.subject, FacetName(gone)});
  }
  /// Answers whether it is finished.
  bool poll(const std::string& id) {
    auto& operation = operations.at(id);
    if (operation.finished) return true;
    if (operation.polls_left-- > 0) return false;
    const auto& behaviour = behaviours[operation.facet];
    values[operation.facet] = behaviour.becomes.empty() ? operation.to : behaviour.becomes;
    for (const auto& [facet, value] : behaviour.also)
      values[{operation.facet.subject, FacetName(facet)}] = value;
    return operation.finished = true;
  }

  std::map<lifecycle::FacetRef, std::string> values;
  std::map<lifecycle::FacetRef, Behaviour> behaviours;
  std::map<lifecycle::FacetRef, int> effect_counts;
  std::map<std::string, Operation> operations;
  std::vector<std::string> log;                           ///< effects in order
  std::map<std::string, std::chrono::seconds> deadlines;  ///< that act was last told, by facet
};

class FakePhase final : public lifecycle::Phase {
 public:
  using Goals = std::function<std::vector<lifecycle::Goal>(
      const inventory::Cluster&, const lifecycle::Subject&, const lifecycle::FactSet&)>;

  FakePhase(std::string name, FakeWorld& world) : name_(std::move(name)), world_(world) {}
  void want(Goals goals) { goals_ = std::move(goals); }
  /// Facets without a goal that observe reads too ("hw.serial").
  void reads(std::set<std::string> facets) { reads_ = std::move(facets); }

  std::string_view name() const override { return name_; }
  bool isOnDemand() const override { return is_on_demand; }
  bool is_on_demand = false;  ///< its goals are asked for, not declared
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster,
                                     const lifecycle::Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    return goals_ ? goals_(cluster, subject, facts) : std::vector<lifecycle::Goal>();
  }

  Async<std::vector<lifecycle::Fact>> observe(lifecycle::Subject subject) override {
    ++observed[subject];
    if (observe_throws) throw std::runtime_error("broken");
    if (observe_error) co_return fail(*observe_error);
    std::vector<lifecycle::Fact> out;
    for (const auto& goal : goals(cluster_, subject, {})) read(goal.facet, out);
    for (const auto& facet : reads_) read({subject, FacetName(facet)}, out);
    co_return out;
  }

  Async<lifecycle::Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    auto& behaviour = world_.behaviours[action.facet];
    world_.deadlines[action.facet.str()] = action.deadline;
    if (behaviour.throws) throw std::runtime_error("broken");
    if (behaviour.hangs) {
      co_await hang();
    }
    if (behaviour.fail_first > 0) {
      --behaviour.fail_first;
      co_return fail(behaviour.error);
    }
    if (behaviour.away > 0) {
      --behaviour.away;
      co_return lifecycle::Outcome(
          lifecycle::Again{std::chrono::seconds(15), "the other side is away", true});
    }
    if (!behaviour.blocked.empty())
      co_return lifecycle::Outcome(lifecycle::Blocked{behaviour.blocked});
    auto now = world_.values.find(action.facet);
    if (context.operation().empty() && now != world_.values.end() &&
        lifecycle::matches(action.to, now->second))
      co_return lifecycle::Outcome(lifecycle::Done{});  // looks before it acts
    if (action.disruption == lifecycle::Disruption::Wipe && !context.wipeAllowed() &&
        holdsSystem(action.facet.subject))
      co_return lifecycle::Outcome(
          lifecycle::Blocked{"the agent refuses: the disk holds a system"});
    if (context.operation().empty()) {
      const auto id = operationFor(action, behaviour, context.intentId());
      CO_TRY_OK(co_await context.recordOperation(id));
    }
    if (!world_.poll(context.operation())) {
      context.progress(0.5, "half way");
      co_return lifecycle::Outcome(
          lifecycle::Again{behaviour.poll_every, "the operation to finish"});
    }
    co_return lifecycle::Outcome(lifecycle::Done{});
  }

  Async<std::vector<lifecycle::Fact>> verify(lifecycle::Action action) override {
    auto& behaviour = world_.behaviours[action.facet];
    if (behaviour.verify_errors > 0) {
      --behaviour.verify_errors;
      co_return fail(ErrorCode::Unavailable, "cannot be read now");
    }
    std::vector<lifecycle::Fact> out;
    read(action.facet, out);
    for (const auto& [facet, value] : behaviour.also)
      read({action.facet.subject, FacetName(facet)}, out);
    co_return out;
  }

  bool resumesAfterMet() const override { return drives_on; }

  bool drives_on = false;
  std::map<lifecycle::Subject, int> observed;
  std::optional<Error> observe_error;
  bool observe_throws = false;

 private:
  void read(const lifecycle::FacetRef& facet, std::vector<lifecycle::Fact>& out) const {
    auto behaviour = world_.behaviours.find(facet);
    if (behaviour != world_.behaviours.end() && behaviour->second.unreadable) return;
    auto it = world_.values.find(facet);
    if (it != world_.values.end())
      out.push_back(lifecycle::Fact{facet.subject, facet.facet, it->second, {}, name_, ""});
  }
  bool holdsSystem(const lifecycle::Subject& subject) const {
    auto it = world_.values.find({subject, FacetName(std::string(lifecycle::kInstalledFacet))});
    return it != world_.values.end() && it->second != lifecycle::kNothingInstalled;
  }
  /// With ids of the outside, work that already runs on the facet is found by looking, as a Redfish
  /// client does.
  std::string operationFor(const lifecycle::Action& action, const FakeWorld::Behaviour& behaviour,
                           const std::string& intent_id) {
    std::string id = intent_id;
    if (behaviour.server_ids) {
      for (const auto& [running, operation] : world_.operations)
        if (operation.facet == action.facet && !operation.finished) return running;
      id = "/tasks/" + std::to_string(world_.operations.size() + 1);
    }
    world_.begin(id, action.facet, action.to);
    return id;
  }
  Task<void> hang() {
    asio::steady_timer never(co_await asio::this_coro::executor,
                             asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
  }

  std::string name_;
  FakeWorld& world_;
  Goals goals_;
  std::set<std::string> reads_;
  inventory::Cluster cluster_;
};

}  // namespace muster::test
