// SPDX-License-Identifier: Apache-2.0
#include "pool/reservations.h"

#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/parse/hostlist.h"
#include "pool/scontrol.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace muster::pool {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::seconds kToolLimit{30};
constexpr std::size_t kQuotedBytes = 300, kMaxListBytes = 8u << 20;
constexpr std::string_view kPrefix = "muster-", kRunPrefix = "r-";
/// Jobs that run longer than that are drained as ever: creating it must not fail for them.
constexpr const char* kFlags = "Flags=MAINT,IGNORE_JOBS";

std::string ownPrefix(std::string_view cluster) { return fmt::format("{}{}-", kPrefix, cluster); }

std::string slurmTime(WallTime at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", std::chrono::floor<std::chrono::seconds>(at));
}

std::string folded(const std::set<std::string>& nodes) {
  return inventory::foldHostlist({nodes.begin(), nodes.end()});
}

WallTime toSecond(WallTime at) {
  return WallTime(std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()));
}

Words created(const std::string& name, const Reservation& wanted) {
  return {"create",
          "reservation",
          "ReservationName=" + name,
          "StartTime=" + slurmTime(wanted.from),
          "EndTime=" + slurmTime(wanted.until),
          "Users=root",
          kFlags,
          "Nodes=" + folded(wanted.nodes)};
}

Words deleted(const std::string& name) { return {"delete", "ReservationName=" + name}; }

/// Empty: it is as it should be. Slurm moves no reservation that has begun: such a one is deleted,
/// and made again at the next look.
Words moved(const Reservation& wanted, const SlurmReservation& present) {
  Words out;
  const bool begins_elsewhere = present.from != toSecond(wanted.from);
  if (begins_elsewhere && present.is_active) return deleted(present.name);
  if (begins_elsewhere) out.push_back("StartTime=" + slurmTime(wanted.from));
  if (present.until != toSecond(wanted.until)) out.push_back("EndTime=" + slurmTime(wanted.until));
  if (present.nodes != wanted.nodes) out.push_back("Nodes=" + folded(wanted.nodes));
  if (!out.empty()) out.insert(out.begin(), {"update", "ReservationName=" + present.name});
  return out;
}

}  // namespace

Result<std::vector<SlurmReservation>> parseReservations(std::string_view text) {
  std::vector<SlurmReservation> out;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with("ReservationName=")) continue;  // "No reservations in the system"
    SlurmReservation each;
    each.name = fieldOf(line, "ReservationName").value_or("");
    const auto from = parseWallTime(std::string(fieldOf(line, "StartTime").value_or("")) + "Z");
    const auto until = parseWallTime(std::string(fieldOf(line, "EndTime").value_or("")) + "Z");
    if (each.name.empty() || !from || !until)
      return fail(ErrorCode::Corrupt,
                  "scontrol show reservation said: " + std::string(line.substr(0, kQuotedBytes)));
    each.from = *from;
    each.until = *until;
    each.is_active = fieldOf(line, "State").value_or("") == "ACTIVE";
    if (const auto nodes = fieldOf(line, "Nodes").value_or("");
        !nodes.empty() && nodes != "(null)") {
      TRY(names, inventory::expandHostlist(nodes));
      each.nodes.insert(names.begin(), names.end());
    }
    out.push_back(std::move(each));
  }
  return out;
}

std::string reservationName(const std::string& cluster, const Reservation& reservation) {
  return fmt::format("{}{}-{}", ownPrefix(cluster), reservation.run, reservation.pool);
}

bool isOwnReservation(std::string_view name, std::string_view cluster) {
  const auto prefix = ownPrefix(cluster);
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (!name.starts_with(kRunPrefix)) return false;  // of another cluster, "hall" and "hall-2"
  name.remove_prefix(kRunPrefix.size());
  const auto id = name.substr(0, name.find('-'));
  return !id.empty() && id.size() + 1 < name.size() &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<Words> reservationOrders(const std::string& cluster,
                                     const std::vector<Reservation>& wanted,
                                     const std::vector<SlurmReservation>& present, WallTime now) {
  std::vector<Words> out;
  std::map<std::string, const Reservation*> by_name;
  for (const auto& each : wanted)
    if (!each.nodes.empty()) by_name.emplace(reservationName(cluster, each), &each);
  std::set<std::string> known;
  for (const auto& each : present) {
    known.insert(each.name);
    if (!isOwnReservation(each.name, cluster)) continue;
    const auto found = by_name.find(each.name);
    if (found == by_name.end()) {
      out.push_back(deleted(each.name));
      continue;
    }
    auto meant = *found->second;
    if (!meant.is_ahead) {
      meant.from = each.from;
      meant.until = each.until;
      std::erase_if(meant.nodes, [&](const auto& node) { return !each.nodes.contains(node); });
    }
    if (meant.nodes.empty())
      out.push_back(deleted(each.name));
    else if (auto order = moved(meant, each); !order.empty())
      out.push_back(std::move(order));
  }
  for (const auto& [name, each] : by_name)
    if (each->is_ahead && !known.contains(name) && each->from > now && each->until > each->from)
      out.push_back(created(name, *each));
  return out;
}

Reservations::Reservations(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                           Clock& clock, PoolOptions options)
    : cluster_(cluster), processes_(processes), clock_(clock), options_(std::move(options)) {
  for (const auto& [name, pool] : cluster.pools) {
    if (!pool.slurm || !pool.slurm->reserve_hours) continue;
    const auto conf =
        pool.slurm->config.empty() ? options_.slurm_conf : cluster.folder / pool.slurm->config;
    confs_[conf.string()].insert(name);
  }
}

Async<void> Reservations::keep(std::vector<Reservation> wanted) {
  Result<void> out;
  for (const auto& [conf, pools] : confs_) {
    auto here = wanted;
    std::erase_if(here, [&](const auto& each) { return !pools.contains(each.pool); });
    auto kept = co_await keepIn(conf, std::move(here));
    if (!kept) out = std::move(kept);
  }
  co_return out;
}

Async<void> Reservations::keepIn(std::string conf, std::vector<Reservation> wanted) {
  Words show{"show", "reservation", "-o"};
  CO_TRY(text, co_await scontrol(conf, std::move(show)));
  CO_TRY(present, parseReservations(text));
  if (wanted.empty() && std::ranges::none_of(present, [&](const auto& each) {
        return isOwnReservation(each.name, cluster_.name);
      }))
    co_return Result<void>();
  const bool some_are_new = std::ranges::any_of(wanted, [&](const auto& each) {
    const auto name = reservationName(cluster_.name, each);
    const auto found = std::ranges::find(present, name, &SlurmReservation::name);
    return each.is_ahead && (found == present.end() || found->nodes != each.nodes);
  });
  if (some_are_new) {  // one node that slurm.conf does not name is a refusal of all
    CO_TRY(names, co_await nodesOf(conf));
    for (auto& each : wanted)
      std::erase_if(each.nodes, [&](const auto& node) { return !names.contains(node); });
  }
  Result<void> out;
  for (auto& order : reservationOrders(cluster_.name, wanted, present, clock_.now())) {
    const auto shown = fmt::format("{}", fmt::join(order, " "));
    auto done = co_await scontrol(conf, std::move(order));
    if (done) logInfo("pool", "scontrol {}", shown);
    if (!done) out = fail(std::move(done).error());
  }
  co_return out;
}

Async<std::string> Reservations::scontrol(std::string conf, Words args) {
  io::Command command;
  command.program = "scontrol";
  command.args = std::move(args);
  command.env = options_.tool_env;
  command.env["SLURM_CONF"] = std::move(conf);
  command.env["TZ"] = "UTC";
  command.timeout = kToolLimit;
  command.max_output_bytes = kMaxListBytes;
  const auto shown = command.str().substr(0, kQuotedBytes);
  CO_TRY(exit, co_await processes_.run(std::move(command)));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{}: {}", shown, (exit.err + exit.out).substr(0, kQuotedBytes)));
  co_return exit.out;
}

Async<std::set<std::string>> Reservations::nodesOf(std::string conf) {
  Words show{"show", "node", "-o"};
  CO_TRY(text, co_await scontrol(std::move(conf), std::move(show)));
  std::set<std::string> out;
  constexpr std::string_view kLabel = "NodeName=";
  for (std::string_view rest = text; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kLabel))
      out.emplace(line.substr(kLabel.size(), line.find(' ') - kLabel.size()));
  }
  co_return out;
}

}  // namespace muster::pool
