// SPDX-License-Identifier: Apache-2.0
#include "fabric/rehearsal/rehearsal.h"

#include "base/io/files.h"
#include "fabric/discovery/discovery.h"
#include "fabric/packet_paths/lost_pairs.h"
#include "fabric/rehearsal/simulator.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/opensm_routing.h"

#include <algorithm>
#include <csignal>

namespace muster::fabric {

namespace {

constexpr std::chrono::milliseconds kLookEvery{5};
constexpr std::chrono::seconds kUpLimit{120};  // 16,384 HCAs take 52 s
constexpr int kLooks = 4;                      // each after a sweep: until a fault is routed around
constexpr std::chrono::milliseconds kTrapGrace{500};  // then a sweep is ordered: ibsim loses traps
constexpr std::chrono::seconds kSweepLimit{
    40};  // OpenSM sweeps by itself every 10 s; a sweep takes 0.3 s, or 14 s on a busy machine
constexpr std::chrono::seconds kFailoverBar{5}, kFailoverLimit{20};
constexpr int kFailoverTries = 4;  // one in eight is lost to ibsim
constexpr std::string_view kTypo = "typo=0x00zz10,bla : ;\n";

double secondsOf(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// One OpenSM in the simulation.
struct Manager {
  std::string hca;
  FabricOptions options;
  Tools tools;
  SubnetManager opensm;
  SmFiles files;

  Manager(std::string seat, FabricOptions where, io::ProcessRunner& processes)
      : hca(std::move(seat)),
        options(std::move(where)),
        tools(processes, options),
        opensm(processes, tools, options.run_folder) {}
};

class Rehearsal {
 public:
  Rehearsal(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
            RehearsalOptions options)
      : cluster_(cluster), processes_(processes), clock_(clock), options_(std::move(options)) {}
  ~Rehearsal() {
    for (auto& manager : managers_) (void)manager->opensm.stop();
  }

  Async<RehearsalReport> run() {
    const auto begin = clock_.steady();
    auto done = co_await everything();
    if (!done) report_.error = done.error().str();
    report_.seconds = secondsOf(clock_.steady() - begin);
    co_return std::move(report_);
  }

 private:
  Async<void> everything() {
    CO_TRY(fabric, chosenFabric(cluster_, options_.fabric));
    fabric_ = fabric;
    report_.fabric = fabric->name;
    CO_TRY(declared, declaredTopology(cluster_, *fabric));
    declared_ = std::move(declared);
    CO_TRY(rules, declaredPartitions(cluster_, *fabric, declared_));
    rules_ = std::move(rules);
    report_.slowed = slowDownForIbsim(declared_);
    levels_ = switchLevels(declared_);
    CO_TRY_OK(co_await bringUp());
    for (auto& group : faultGroups(possible(faultsOf(declared_, *fabric_, options_.kinds)),
                                   declared_, options_.together)) {
      CO_TRY_OK(co_await rehearseGroup(std::move(group)));
    }
    co_return co_await mend();
  }

  Manager& master() { return *managers_.front(); }
  bool isDeclared(std::string_view engine) const {
    return inventory::namesRouting(routingOf(*fabric_, declared_), engine);
  }

  Async<void> bringUp() {
    auto seats = managerHcas(cluster_, *fabric_);
    if (seats.empty())
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("fabric {} declares no subnet manager; a rehearsal needs one",
                                 fabric_->name));
    for (const auto& seat : seats)
      if (!declared_.devices.count(seat))
        co_return fail(ErrorCode::InvalidInput,
                       fmt::format("the subnet manager's HCA {} is not cabled", seat));
    auto start = Simulator::start(declared_, processes_, clock_, options_.folder);
    CO_TRY(simulator, co_await std::move(start));
    simulator_ = std::move(simulator);
    for (const auto& seat : seats)
      managers_.push_back(std::make_unique<Manager>(seat, simulator_->seat(seat), processes_));
    CO_TRY(found, co_await master().tools.discover());
    known_.learn(declared_, found);
    for (std::size_t rank = 0; rank < managers_.size(); ++rank) {
      auto& manager = *managers_[rank];
      manager.files = renderSm(
          *fabric_, declared_, rules_, known_,
          {known_.hcas.at(manager.hca), manager.options.run_folder, static_cast<int>(rank)});
      CO_TRY_OK(manager.opensm.start(manager.files));
      CO_TRY_OK(co_await untilUp(manager, rank > 0));
    }
    co_return co_await checkHealthy();
  }

  Async<void> untilUp(Manager& manager, bool standby) {
    for (const auto until = clock_.steady() + kUpLimit; clock_.steady() < until;) {
      auto log = manager.opensm.log();
      if (standby ? log.standby : log.subnet_up) co_return Result<void>();
      if (!manager.opensm.pid()) break;
      co_await clock_.sleep(kLookEvery);
    }
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("opensm on {} did not become {}: {}", manager.hca,
                               standby ? "standby" : "master", manager.opensm.logTail()));
  }

  Async<void> checkHealthy() {
    CO_TRY(now, co_await see());
    report_.routing_engine = master().opensm.log().routing_engine;
    report_.healthy = walk(now.found, now.tables, levels_);
    for (const auto& [name, device] : declared_.devices)
      ++(device.is_switch ? report_.switches : report_.hcas);
    report_.cables = declared_.links.size();
    auto problems = evaluate(now, {});
    if (auto compared = compare(declared_, now.found); !compared.deviations.empty())
      problems.push_back("not as declared: " + compared.deviations.front().repair);
    if (!problems.empty())
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("the healthy fabric differs from the declaration: {}",
                                 fmt::join(problems, "; ")));
    CO_TRY(tables, co_await wrongTables());
    if (!tables.empty())
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("the PKey table of {} is not as declared", tables));
    co_return Result<void>();
  }

  struct Sight {
    Topology found;
    ForwardingTables tables;
  };
  Async<Sight> see() {
    Sight out;
    CO_TRY(found, co_await master().tools.discover());
    CO_TRY(tables, co_await master().tools.forwardingTables());
    co_return Sight{std::move(found), std::move(tables)};
  }

  /// The first HCA whose PKey table is not as declared; empty: all are.
  Async<std::string> wrongTables() {
    CO_TRY(found, co_await master().tools.discover());
    auto rules = withGuids(rules_, known_.hcas);
    std::vector<PkeyPort> ports;
    for (const auto& [name, device] : found.devices)
      if (!device.is_switch)
        ports.emplace_back(device.addresses.begin()->second.lid, device.addresses.begin()->first);
    CO_TRY(tables, co_await master().tools.pkeyTables(std::move(ports)));
    for (const auto& [name, device] : found.devices) {
      if (device.is_switch) continue;
      const auto& [number, address] = *device.addresses.begin();
      if (tables.at({address.lid, number}) != tableOf(rules, address.guid, name == master().hca))
        co_return name;
    }
    co_return std::string();
  }

  /// What must hold whatever is broken. `lost`: HCAs that the fault itself takes away.
  std::vector<std::string> evaluate(const Sight& now, const std::set<std::string>& lost) {
    std::vector<std::string> problems;
    auto log = master().opensm.log();
    if (!isDeclared(log.routing_engine))
      problems.push_back(fmt::format("routing fell back to {}{}{}", log.routing_engine,
                                     log.complaints.empty() ? "" : ": ",
                                     fmt::join(log.complaints, " | ")));
    for (const auto& [name, device] : declared_.devices)
      if (!device.is_switch && !lost.count(name) && !now.found.devices.count(name))
        problems.push_back(fmt::format("{} is no longer reachable", name));
    auto reach = walk(now.found, now.tables, levels_);
    const auto hcas = declared_.devices.size() - levels_.size() - lost.size();
    if (reach.pairs != hcas * (hcas - 1))
      problems.push_back(
          fmt::format("{} of {} pairs of HCAs have LIDs", reach.pairs, hcas * (hcas - 1)));
    if (reach.lost) {
      const auto pairs = lostPairs(now.found, now.tables, declared_);
      problems.push_back(fmt::format(
          "{}: {}", toString(pairs),
          causeOf(pairs,
                  {declared_, now.found, log.routing_engine, &master().files.root_guids, {}})));
    }
    if (reach.down_up)
      problems.push_back(
          fmt::format("{} routes go down and up again: they can deadlock", reach.down_up));
    last_reach_ = std::move(reach);
    return problems;
  }

  std::set<std::string> hcasLostBy(const Fault& fault) const {
    std::set<std::string> lost;
    for (const auto& link : declared_.links)
      for (const auto& [hca, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
        if (declared_.devices.at(hca.node).is_switch) continue;
        bool gone = fault.kind == FaultKind::SwitchLost
                        ? other.node == fault.name
                        : fault.kind == FaultKind::CablePulled && link == fault.links[0];
        if (gone) lost.insert(hca.node);
      }
    return lost;
  }

  /// What cannot be rehearsed is told.
  std::vector<Fault> possible(std::vector<Fault> faults) {
    std::erase_if(faults, [this](const Fault& fault) {
      const auto why = impossible(fault);
      if (!why.empty())
        report_.left_out.push_back(
            fmt::format("{}: {}: {}", toString(fault.kind), fault.name, why));
      return !why.empty();
    });
    return faults;
  }

  Async<void> rehearseGroup(std::vector<Fault> group) {
    if (group.size() > 1) {
      FaultOutcome all;
      const auto begin = clock_.steady();
      CO_TRY_OK(co_await breakCables(group, all));
      if (all.problems.empty()) {
        const auto share = secondsOf(clock_.steady() - begin) / static_cast<double>(group.size());
        for (auto& fault : group) note({std::move(fault), {}, all.effect, share, group.size(), 0});
        co_return Result<void>();
      }
    }
    for (auto& fault : group) {
      CO_TRY_OK(co_await rehearseOne(std::move(fault)));
    }
    co_return Result<void>();
  }

  void note(FaultOutcome outcome) {
    options_.tell(outcome);
    report_.outcomes.push_back(std::move(outcome));
  }

  Async<void> rehearseOne(Fault fault) {
    FaultOutcome outcome;
    outcome.fault = std::move(fault);
    const auto begin = clock_.steady();
    if (outcome.fault.kind == FaultKind::PartitionsTypo) {
      CO_TRY_OK(co_await typo(outcome));
    } else if (outcome.fault.kind == FaultKind::ManagerLost) {
      CO_TRY_OK(co_await loseManager(outcome));
    } else {
      std::vector<Fault> alone = {outcome.fault};
      CO_TRY_OK(co_await breakCables(std::move(alone), outcome));
    }
    outcome.seconds = secondsOf(clock_.steady() - begin);
    note(std::move(outcome));
    co_return Result<void>();
  }

  /// The tools of the rehearsal sit where the subnet manager does: what cuts it off cannot be
  /// watched.
  std::string impossible(const Fault& fault) const {
    auto seat = managers_.front()->hca;
    if ((fault.kind == FaultKind::CablePulled || fault.kind == FaultKind::SwitchLost) &&
        hcasLostBy(fault).count(seat))
      return "it cuts off the subnet manager itself, which manager-lost rehearses";
    if (fault.kind == FaultKind::RailSwapped)
      for (const auto& link : fault.links)
        if (hostOf(link.a.node) == hostOf(seat) || hostOf(link.b.node) == hostOf(seat))
          return "it moves the subnet manager's own cable";
    if (fault.kind == FaultKind::ManagerLost && managers_.size() < 2)
      return "only one subnet manager is declared; add a node to subnet_managers";
    return {};
  }

  /// Undoes the fault before; one sweep then shows both.
  std::string mending() { return std::exchange(undo_, {}); }
  Async<void> mend() { return simulator_->say(mending()); }

  static std::string injecting(const Fault& fault) {
    if (fault.kind == FaultKind::SwitchLost)
      return fmt::format("Unlink \"{}\"\n", ibsimNodeId(fault.name));
    std::string lines;
    for (const auto& link : fault.links) lines += Simulator::unlinkLine(link.a);
    if (fault.kind == FaultKind::RailSwapped)
      lines += Simulator::linkLine(fault.links[0].a, fault.links[1].b) +
               Simulator::linkLine(fault.links[1].a, fault.links[0].b);
    return lines;
  }

  /// Where no repair can be trusted: what was not seen right, or is not there at all.
  static std::string undoing(const Fault& fault) {
    if (fault.kind == FaultKind::SwitchLost)
      return fmt::format("ReLink \"{}\"\n", ibsimNodeId(fault.name));
    std::string lines;
    for (const auto& link : fault.links)
      if (fault.kind == FaultKind::RailSwapped) lines += Simulator::unlinkLine(link.a);
    for (const auto& link : fault.links) lines += Simulator::linkLine(link.a, link.b);
    return lines;
  }

  /// All of one kind, at once. Looked at after the sweep that OpenSM's traps make it do, and if not
  /// all is well then after one more that is ordered, a few times: by sweeps and not by seconds, so
  /// that a busy machine evaluates as a quiet one does.
  Async<void> breakCables(std::vector<Fault> faults, FaultOutcome& outcome) {
    auto before = master().opensm.log();
    auto lines = mending();
    std::set<std::string> lost;
    for (const auto& fault : faults) {
      lines += injecting(fault);
      lost.merge(hcasLostBy(fault));
    }
    CO_TRY_OK(co_await simulator_->say(std::move(lines)));
    std::vector<Repair> repairs;
    for (int look = 1; look <= kLooks; ++look) {
      CO_TRY_OK(co_await untilSwept(std::move(before), look > 1));
      before = master().opensm.log();
      auto sight = co_await see();
      outcome.problems =
          sight ? evaluate(*sight, lost) : std::vector<std::string>{sight.error().str()};
      if (sight) {
        auto compared = compare(declared_, sight->found);
        for (auto& problem : misnamed(faults, compared))
          outcome.problems.push_back(std::move(problem));
        repairs = std::move(compared.repairs);
      }
      if (outcome.problems.empty() || look == kLooks) break;
      CO_TRY_OK(master().opensm.hangUp());
    }
    if (outcome.problems.empty() && faults.front().kind != FaultKind::SwitchLost)
      undo_ = Simulator::linesOf(repairs);  // doing what the repair says must mend it
    else
      for (const auto& fault : faults) undo_ += undoing(fault);
    outcome.effect = effectOf(lost);
    co_return Result<void>();
  }

  /// Until a sweep has ended that `before` does not know. One that is ordered while OpenSM sweeps
  /// makes it begin anew, so an order is given once, and only where ibsim lost all the traps: one
  /// every half second and it never comes to an end on a busy machine.
  Async<void> untilSwept(SmLog before, bool ordered) {
    const auto begin = clock_.steady();
    while (true) {
      const auto now = master().opensm.log();
      if (now.sweeps != before.sweeps && now.subnet_up) co_return Result<void>();
      if (!ordered && now.traps == before.traps && clock_.steady() - begin > kTrapGrace) {
        ordered = true;
        CO_TRY_OK(master().opensm.hangUp());
      }
      if (clock_.steady() - begin > kSweepLimit || !master().opensm.pid()) break;
      co_await clock_.sleep(kLookEvery);
    }
    ++report_.manager_restarts;  // that is told, and the fault is tried on a fresh one
    CO_TRY_OK(master().opensm.start(master().files));
    co_return co_await untilUp(master(), false);
  }

  std::string effectOf(const std::set<std::string>& lost) const {
    std::string text = fmt::format("{} stays", report_.routing_engine);
    if (!lost.empty())
      text += fmt::format(", {} HCA{} lost", lost.size(), lost.size() > 1 ? "s" : "");
    if (report_.healthy.busiest_uplink &&
        last_reach_.busiest_uplink != report_.healthy.busiest_uplink)
      text += fmt::format(", busiest uplink carries {} routes instead of {}",
                          last_reach_.busiest_uplink, report_.healthy.busiest_uplink);
    return text;
  }

  /// Somebody edits partitions.conf by hand and slips: OpenSM opens the fabric. muster's lint
  /// refuses the text, its check sees the tables, and its own file closes it again.
  Async<void> typo(FaultOutcome& outcome) {
    CO_TRY_OK(co_await mend());
    const auto file = master().options.run_folder / "partitions.conf";
    const auto spoiled = master().files.partitions + std::string(kTypo);
    if (parsePartitions(spoiled))
      outcome.problems.push_back("muster's own lint accepts the text with the mistake");
    const auto opened_at = clock_.steady();
    auto before = master().opensm.log();
    CO_TRY_OK(io::writeFileAtomic(file, spoiled));
    CO_TRY_OK(master().opensm.hangUp());
    CO_TRY(opened, co_await untilTables(false, std::move(before)));
    before = master().opensm.log();
    CO_TRY_OK(master().opensm.applyPartitions(master().files));
    CO_TRY(closed, co_await untilTables(true, std::move(before)));
    if (!closed) outcome.problems.push_back("the PKey tables did not become as declared again");
    outcome.effect = fmt::format(
        "{}; closed again within {:.1f} s of the mistake",
        opened ? "OpenSM opened the fabric, the tables show it" : "OpenSM kept its tables",
        secondsOf(clock_.steady() - opened_at));
    co_return Result<void>();
  }

  /// After the sweep that was ordered, and some more: until all tables are as declared, or one is
  /// not. Answers whether that came.
  Async<bool> untilTables(bool as_declared, SmLog before) {
    for (int look = 1;; ++look) {
      CO_TRY_OK(co_await untilSwept(std::move(before), true));
      before = master().opensm.log();
      CO_TRY(wrong, co_await wrongTables());
      if (wrong.empty() == as_declared || look == kLooks) co_return wrong.empty() == as_declared;
      CO_TRY_OK(master().opensm.hangUp());
    }
  }

  /// The master's process is killed; the time until a standby says that it is master, seen from
  /// another HCA.
  Async<void> loseManager(FaultOutcome& outcome) {
    CO_TRY_OK(co_await mend());
    auto& standby = *managers_[1];
    std::optional<double> seconds;
    for (int left = kFailoverTries; !seconds && left > 0; --left) {
      if (left < kFailoverTries) {  // ibsim loses an answer now and then, and OpenSM may wait for
                                    // it for ever: told, and tried with two fresh ones
        ++report_.manager_restarts;
        CO_TRY_OK(standby.opensm.stop());
        CO_TRY_OK(master().opensm.start(master().files));
      }
      CO_TRY(taken, co_await takeOver(standby));
      seconds = taken;
    }
    if (seconds) outcome.failover_seconds = *seconds;
    outcome.effect = seconds ? fmt::format("{} is master with the subnet up after {:.1f} s",
                                           standby.hca, *seconds)
                             : "nobody took over";
    if (!seconds)
      outcome.problems.push_back(fmt::format("{}; last lines of the standby's log: {}",
                                             outcome.effect, standby.opensm.logTail()));
    if (seconds && *seconds > secondsOf(kFailoverBar))
      outcome.problems.push_back(
          fmt::format("{}; at most {} s", outcome.effect, kFailoverBar.count()));
    if (seconds && !isDeclared(standby.opensm.log().routing_engine))
      outcome.problems.push_back(
          fmt::format("the standby routes by {}", standby.opensm.log().routing_engine));
    auto wrong = co_await wrongTables();
    if (!wrong || !wrong->empty())
      outcome.problems.push_back(wrong ? "the PKey table of " + *wrong + " changed"
                                       : wrong.error().str());
    co_return Result<void>();
  }

  /// Beside a master that is up a fresh standby is started; then the master is killed. The seconds
  /// until the standby has the subnet up; nothing when that does not come.
  Async<std::optional<double>> takeOver(Manager& standby) {
    CO_TRY_OK(co_await untilUp(master(), false));
    CO_TRY_OK(standby.opensm.start(standby.files));
    CO_TRY_OK(co_await untilUp(standby, true));
    auto pid = master().opensm.pid();
    if (!pid)
      co_return fail(ErrorCode::Unavailable, "the master exited: " + master().opensm.logTail());
    const auto begin = clock_.steady();
    ::kill(*pid, SIGKILL);
    while (clock_.steady() - begin < kFailoverLimit) {
      const auto log = standby.opensm.log();
      if (log.master && log.subnet_up) co_return secondsOf(clock_.steady() - begin);
      co_await clock_.sleep(kLookEvery);
    }
    co_return std::optional<double>();
  }

  const inventory::Cluster& cluster_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  RehearsalOptions options_;
  const inventory::Fabric* fabric_ = nullptr;
  Topology declared_;
  PartitionRules rules_;
  std::map<std::string, int> levels_;
  KnownGuids known_;
  std::unique_ptr<Simulator> simulator_;
  std::vector<std::unique_ptr<Manager>> managers_;  // the master first
  std::string undo_;                                // console lines that end the fault before
  Reachability last_reach_;
  RehearsalReport report_;
};

}  // namespace

Async<RehearsalReport> rehearse(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                                Clock& clock, RehearsalOptions options) {
  Rehearsal rehearsal(cluster, processes, clock, std::move(options));
  co_return co_await rehearsal.run();
}

}  // namespace muster::fabric
