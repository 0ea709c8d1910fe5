// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/switch_config.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "fabric/node_services.h"
#include "fabric/topology/topology.h"
#include "inventory/model/fabric.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace muster::fabric {

namespace {

using inventory::Roce;
using nlohmann::json;

constexpr int kSonicLanes = 4;  // of a port, where the file does not tell its number
constexpr int kKib = 1024, kMostPorts = 1024, kCumulusMtu = 9216, kDscpsOfPriority = 8,
              kClasses = 8;
/// Of a port whose row says none. Source: sonic-swss cfgmgr/portmgr.h
constexpr int kSonicMtu = 9100;
/// What the command takes. Source: sonic-utilities pfcwd/main.py; sonic-scheduler.yang
struct Bounds {
  int least, most;
  bool hold(const std::string& text) const;
};
constexpr Bounds kDetectionMs{100, 5000}, kRestorationMs{100, 60000}, kWeight{1, 100};

const json& at(const json& object, const std::string& key) {
  static const json nothing = json::object();
  const auto inner = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && inner != object.end() ? *inner : nothing;
}
/// Both systems write numbers as text, NVUE also as numbers.
std::string textOf(const json& object, const std::string& key) {
  const auto& value = at(object, key);
  return value.is_string()           ? value.get<std::string>()
         : value.is_number_integer() ? std::to_string(value.get<long>())
                                     : std::string();
}
std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}
bool Bounds::hold(const std::string& text) const {
  const auto value = number(text);
  return value && *value >= least && *value <= most;
}
std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> out;
  for (;;) {
    const auto end = text.find(by);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}
/// "3", "3-4" → the numbers; anything else: none
std::vector<int> range(std::string_view text) {
  const auto dash = text.find('-');
  const auto from = number(text.substr(0, dash)),
             to = dash == std::string_view::npos ? from : number(text.substr(dash + 1));
  std::vector<int> out;
  for (int i = from.value_or(0); from && to && i <= *to && i - *from < kMostPorts; ++i)
    out.push_back(i);
  return out;
}

class Sonic {
 public:
  Sonic(const Roce& roce, const json& config)
      : roce_(roce),
        config_(config),
        text_(jsonText(config)),
        asic_(sonicAsicOf(textOf(at(at(config, "DEVICE_METADATA"), "localhost"), "platform"))),
        load_(fmt::format("load the file that `muster fabric render` wrote for this switch: "
                          "sonic-cfggen -j {} --write-to-db",
                          sonicFile(asic_, "SWITCH"))) {
    for (const auto& [key, entry] : at(config, "QUEUE").items()) {  // "Ethernet0,Ethernet4|3-4"
      const auto bar = key.find('|');
      if (bar == std::string::npos) continue;
      for (const auto& port : split(std::string_view(key).substr(0, bar), ','))
        for (const int queue : range(std::string_view(key).substr(bar + 1)))
          queues_[{port, queue}] = &entry;
    }
  }

  Result<std::vector<PortDifference>> run(const std::vector<int>& wanted) {
    std::vector<std::string> ports;
    for (const auto& [port, ignored] : at(config_, "PORT_QOS_MAP").items())
      if (port != "global") ports.push_back(port);
    if (ports.empty() && wanted.empty())
      return fail(ErrorCode::NotFound,
                  "config_db has no port in PORT_QOS_MAP: the switch ignores DSCP");
    if (!wanted.empty()) ports = namesOf(wanted);
    for (const auto& port : ports) {
      const auto begin = out_.size();
      check(port);
      if (out_.size() - begin > 1) dropRepeatedRepairs(begin);
    }
    return std::move(out_);
  }

 private:
  void say(const std::string& port, std::string text) { say(port, std::move(text), load_); }
  void say(const std::string& port, std::string text, std::string repair) {
    out_.push_back({port, std::move(text), std::move(repair)});
  }
  /// One load mends all that it mends: it is told once a port.
  void dropRepeatedRepairs(std::size_t begin) {
    for (std::size_t i = begin; i + 1 < out_.size(); ++i)
      if (out_[i].repair == out_[i + 1].repair) out_[i].repair.clear();
  }

  /// The names of declared ports; one that the switch does not have is a difference.
  std::vector<std::string> namesOf(const std::vector<int>& numbers) {
    std::map<int, std::string> known;
    for (const auto& [name, port] : at(config_, "PORT").items()) {
      if (!name.starts_with("Ethernet")) continue;
      const auto index = number(textOf(port, "index")),
                 lane = number(std::string_view(name).substr(8));
      if (index || lane) known.emplace(index ? *index : *lane / kSonicLanes + 1, name);
    }
    std::vector<std::string> out;
    for (const int port : numbers)
      if (const auto name = known.find(port); name != known.end())
        out.push_back(name->second);
      else
        say(fmt::format("port {}", port), "the declaration cables it, the switch has no such port",
            "check that this is the right switch and that its breakout mode is as declared");
    return out;
  }

  void check(const std::string& port) {
    const auto& own = at(at(config_, "PORT"), port);
    // A row of a real switch has lanes; its port stays down until something says that it is up.
    const auto admin = textOf(own, "admin_status");
    if (admin.empty() ? own.contains("lanes") : admin != "up")
      say(port, "it is shut down", fmt::format("config interface startup {}", port));
    const auto marking = sonicMarking(text_, port);
    if (!marking) return say(port, marking.error().text());
    for (const auto& text : qosDisagreements(roce_, *marking)) say(port, text);
    mtu(port, textOf(own, "mtu"));
    classes(port);
    queue(port);
    watchdog(port);
  }

  /// A larger one accepts all that hosts send.
  void mtu(const std::string& port, const std::string& told) {
    const auto found = told.empty() ? std::optional(kSonicMtu) : number(told);
    if (found && *found >= roce_.mtu) return;
    say(port,
        found ? fmt::format("the MTU is {} instead of {}", *found, roce_.mtu)
              : fmt::format("the MTU is '{}', which is no number", told),
        fmt::format("config interface mtu {} {}", port, roce_.mtu));
  }

  void watchdog(const std::string& port) {
    const auto& entry = at(at(config_, "PFC_WD"), port);
    const auto start = fmt::format("pfcwd start --action drop --restoration-time 400 {} 200", port);
    if (entry.empty())
      return say(port,
                 "no PFC watchdog: one NIC that sends pause frames without end blocks all traffic "
                 "behind it",
                 start);
    if (const auto action = textOf(entry, "action"); !action.empty() && action != "drop")
      say(port, fmt::format("the PFC watchdog's action is {} instead of drop", action), start);
    for (const auto& [key, bounds] :
         {std::pair("detection_time", kDetectionMs), std::pair("restoration_time", kRestorationMs)})
      if (const auto told = textOf(entry, key);
          !bounds.hold(told) && !(told.empty() && bounds.most == kRestorationMs.most))
        say(port,
            fmt::format("the PFC watchdog's {} is '{}': {} to {} ms are possible", key, told,
                        bounds.least, bounds.most),
            start);
    const auto watched = textOf(at(at(config_, "PORT_QOS_MAP"), port), "pfcwd_sw_enable");
    const auto priorities = split(watched, ',');
    if (std::ranges::find(priorities, std::to_string(roce_.priority)) == priorities.end())
      say(port, fmt::format("the PFC watchdog does not watch priority {} (pfcwd_sw_enable is '{}')",
                            roce_.priority, watched));
  }

  /// Where the lossless class goes: a buffer of its own, and one queue on the way in and out.
  void classes(const std::string& port) {
    const auto& maps = at(at(config_, "PORT_QOS_MAP"), port);
    const auto through = [&](const char* key, const char* table, int from) {
      auto name = textOf(maps, key);
      if (const auto bar = name.find('|'); bar != std::string::npos)
        name = name.substr(bar + 1, name.find(']') - bar - 1);
      return number(textOf(at(at(config_, table), name), std::to_string(from)));
    };
    const auto group = through("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", roce_.priority);
    const auto queue = through("tc_to_queue_map", "TC_TO_QUEUE_MAP", roce_.priority);
    const auto paused = through("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", roce_.priority);
    if (!group || *group == 0)
      say(port, fmt::format("class {} shares priority group 0 with all other traffic: its packets "
                            "are dropped, not paused",
                            roce_.priority));
    if (!queue || !paused || *queue != *paused)
      say(port, fmt::format("class {} leaves by queue {}, a pause for priority {} stops queue {}",
                            roce_.priority, queue ? std::to_string(*queue) : "unknown",
                            roce_.priority, paused ? std::to_string(*paused) : "none"));
    std::set<int> in_group, in_queue;
    std::map<int, std::set<int>> lossless_too;
    for (int other = 0; other < kClasses; ++other) {
      if (other == roce_.priority) continue;
      const auto its_group = through("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", other);
      if (group && its_group == group) in_group.insert(other);
      if (group && its_group && its_group != group && hasLosslessBuffer(port, *its_group))
        lossless_too[*its_group].insert(other);
      if (queue && through("tc_to_queue_map", "TC_TO_QUEUE_MAP", other) == queue)
        in_queue.insert(other);
    }
    if (!in_group.empty() && *group != 0)
      say(port, fmt::format("classes {} share priority group {} with the lossless class {}: they "
                            "fill its buffer, and it pauses for them",
                            fmt::join(in_group, ","), *group, roce_.priority));
    if (!in_queue.empty())
      say(port, fmt::format("classes {} leave by queue {} with the lossless class {}: its pauses "
                            "stop them, and they take its bandwidth",
                            fmt::join(in_queue, ","), *queue, roce_.priority));
    for (const auto& [one, of] : lossless_too)
      say(port, fmt::format("priority group {} of the classes {} is lossless as well (BUFFER_PG): "
                            "it takes the buffer of class {}",
                            one, fmt::join(of, ","), roce_.priority));
    if (!mapsPfcToGroups(asic_) || !group) return;
    const auto pausing =
        through("pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", roce_.priority);
    if (pausing != group)
      say(port, fmt::format("priority {} pauses for priority group {}, its packets are in {}",
                            roce_.priority, pausing ? std::to_string(*pausing) : "none", *group));
    if (!hasLosslessBuffer(port, *group))
      say(port, fmt::format("priority group {} has no lossless buffer (BUFFER_PG): its packets are "
                            "dropped, not paused",
                            *group));
  }

  /// A row of BUFFER_PG that SONiC computes, or that has a profile of lossless traffic.
  bool hasLosslessBuffer(const std::string& port, int group) const {
    constexpr std::string_view kLossy = "lossy";
    for (const auto& [key, entry] : at(config_, "BUFFER_PG").items()) {
      const auto bar = key.find('|');
      if (bar == std::string::npos) continue;
      const auto ports = split(std::string_view(key).substr(0, bar), ',');
      const auto groups = range(std::string_view(key).substr(bar + 1));
      if (std::find(ports.begin(), ports.end(), port) != ports.end() &&
          std::find(groups.begin(), groups.end(), group) != groups.end())
        return textOf(entry, "profile").find(kLossy) == std::string::npos;
    }
    return false;
  }

  void queue(const std::string& port) {
    const auto entry = [&](int queue) -> const json& {
      static const json nothing = json::object();
      const auto found = queues_.find({port, queue});
      return found == queues_.end() ? nothing : *found->second;
    };
    const auto& profile =
        at(at(config_, "WRED_PROFILE"), named(textOf(entry(roce_.priority), "wred_profile")));
    if (!textOf(profile, "ecn").starts_with("ecn_all") && textOf(profile, "ecn") != "ecn_green")
      say(port,
          fmt::format("queue {} does not mark: congestion causes pauses only", roce_.priority));
    else if (textOf(profile, "wred_green_enable") != "true")
      say(port, fmt::format("queue {} does not mark: its profile is off for green packets "
                            "(wred_green_enable)",
                            roce_.priority));
    else if (textOf(profile, "green_min_threshold") != std::to_string(roce_.ecn_min_kib * kKib) ||
             textOf(profile, "green_max_threshold") != std::to_string(roce_.ecn_max_kib * kKib) ||
             textOf(profile, "green_drop_probability") != std::to_string(roce_.ecn_percent))
      say(port, fmt::format("queue {} marks {} % from {} to {} bytes instead of {} % from {} to {}",
                            roce_.priority, textOf(profile, "green_drop_probability"),
                            textOf(profile, "green_min_threshold"),
                            textOf(profile, "green_max_threshold"), roce_.ecn_percent,
                            roce_.ecn_min_kib * kKib, roce_.ecn_max_kib * kKib));
    shared(port, named(textOf(entry(roce_.priority), "scheduler")));
    const auto& scheduler =
        at(at(config_, "SCHEDULER"), named(textOf(entry(roce_.cnp_priority), "scheduler")));
    if (textOf(scheduler, "type") != "STRICT")
      say(port, fmt::format("queue {} is not strict: congestion notifications wait in it",
                            roce_.cnp_priority));
  }
  /// The lossless queue has its share; one that is strict takes all of it, one of weight 0 gets
  /// none. Without a scheduler it is as the others are.
  void shared(const std::string& port, const std::string& name) {
    if (name.empty()) return;
    const auto& scheduler = at(at(config_, "SCHEDULER"), name);
    const auto type = textOf(scheduler, "type"), weight = textOf(scheduler, "weight");
    if (type != "DWRR" && type != "WRR")
      say(port, fmt::format("the scheduler of queue {}, {}, is '{}' instead of DWRR",
                            roce_.priority, name, type));
    else if (!weight.empty() && !kWeight.hold(weight))
      say(port, fmt::format("queue {} has the weight '{}': {} to {} are possible", roce_.priority,
                            weight, kWeight.least, kWeight.most));
  }
  static std::string named(std::string text) {
    const auto bar = text.find('|');
    return bar == std::string::npos ? text : text.substr(bar + 1, text.find(']') - bar - 1);
  }

  const Roce& roce_;
  const json& config_;
  const std::string text_;
  const SonicAsic asic_;
  const std::string load_;
  std::map<std::pair<std::string, int>, const json*> queues_;
  std::vector<PortDifference> out_;
};

/// What is not set has the default of `qos roce mode lossless` (NVIDIA, Cumulus Linux: RDMA over
/// Converged Ethernet).
class Nvue {
 public:
  /// `since`: nullopt where the file does not say its release.
  Nvue(const Roce& roce, const json& set, std::optional<NvueSince> since)
      : roce_(roce), set_(set), since_(since) {}

  std::vector<PortDifference> run(const std::vector<int>& wanted) {
    const auto& qos = at(set_, "qos");
    const auto& mode = at(qos, "roce");
    const bool on = textOf(mode, "enable") == "on" || at(mode, "enable") == true ||
                    textOf(mode, "state") == "enabled";
    if (!on || (!textOf(mode, "mode").empty() && textOf(mode, "mode") != "lossless")) {
      say("",
          on ? fmt::format("RoCE is {} instead of lossless", textOf(mode, "mode"))
             : "RoCE is off: every queue may drop",
          fmt::format("{}; nv set qos roce mode lossless; nv config apply", switchOn()));
      return std::move(out_);
    }
    const auto& map = at(at(at(qos, "mapping"), "default-global"), "dscp");
    for (const auto& [dscp, priority] : declaredMarking(roce_).priority_of) {
      const auto found = number(textOf(at(map, std::to_string(dscp)), "switch-priority"))
                             .value_or(dscp / kDscpsOfPriority);
      expect(found == priority,
             fmt::format("DSCP {} has priority {} instead of {}{}", dscp, found, priority,
                         dscp == roce_.dscp ? ": RDMA is not lossless" : ""),
             fmt::format("mapping default-global dscp {} switch-priority {}", dscp, priority));
    }
    for (const auto& [dscps, entry] : map.items())
      for (const int dscp : range(dscps))  // eight of them have the lossless priority by default
        expect(dscp == roce_.dscp || dscp / kDscpsOfPriority == roce_.priority ||
                   number(textOf(entry, "switch-priority")) != roce_.priority,
               fmt::format("DSCP {} shares the lossless priority {}", dscp, roce_.priority),
               fmt::format("mapping default-global dscp {} switch-priority {}", dscp,
                           dscp / kDscpsOfPriority));
    std::set<int> paused;
    for (const auto& [priority, ignored] :
         at(at(at(qos, "pfc"), "default-global"), "switch-priority").items())
      for (const int one : range(priority)) paused.insert(one);
    if (const auto one = number(textOf(at(at(qos, "pfc"), "default-global"), "switch-priority")))
      paused.insert(*one);
    if (paused.empty()) paused = {3};
    expect(paused == std::set<int>{roce_.priority},
           fmt::format("PFC is on for {} instead of {}", fmt::join(paused, ","), roce_.priority),
           fmt::format("pfc default-global switch-priority {}", roce_.priority));
    ecn(at(at(at(at(qos, "congestion-control"), "default-global"), "traffic-class"),
           std::to_string(roce_.priority)));
    const auto& notify = at(at(at(at(qos, "egress-scheduler"), "default-global"), "traffic-class"),
                            std::to_string(roce_.cnp_priority));
    const auto scheduled = textOf(notify, "mode");
    expect(scheduled == "strict" || (scheduled.empty() && roce_.cnp_priority == 6),
           fmt::format("traffic class {} is not strict: congestion notifications wait in it",
                       roce_.cnp_priority),
           fmt::format("egress-scheduler default-global traffic-class {} mode strict",
                       roce_.cnp_priority));
    ports(wanted);
    return std::move(out_);
  }

 private:
  void say(std::string port, std::string text, std::string repair) {
    out_.push_back({std::move(port), std::move(text), std::move(repair)});
  }
  std::string switchOn() const {
    if (since_) return fmt::format("nv set qos roce {}", nvueRoceOn(*since_));
    return fmt::format("nv set qos roce {} (before Cumulus Linux 5.15: nv set qos roce {})",
                       nvueRoceOn(NvueSince::Cumulus515), nvueRoceOn(NvueSince::Cumulus50));
  }
  void expect(bool holds, std::string text, const std::string& words) {
    if (!holds) say("", std::move(text), fmt::format("nv set qos {}; nv config apply", words));
  }
  void ecn(const json& found) {
    const auto is = [&](const char* key, int wanted) {
      return textOf(found, key).empty() || textOf(found, key) == std::to_string(wanted);
    };
    const auto set = [&](const char* key, int wanted) {
      expect(is(key, wanted),
             fmt::format("ECN of traffic class {}: {} is {} instead of {}", roce_.priority, key,
                         textOf(found, key), wanted),
             fmt::format("congestion-control default-global traffic-class {} {} {}", roce_.priority,
                         key, wanted));
    };
    set("min-threshold-bytes", roce_.ecn_min_kib * kKib);
    set("max-threshold-bytes", roce_.ecn_max_kib * kKib);
    set("probability", roce_.ecn_percent);
  }

  /// Interfaces as NVUE groups them: "swp1", "swp1-8,11".
  void ports(const std::vector<int>& wanted) {
    std::map<int, const json*> known;
    for (const auto& [names, entry] : at(set_, "interface").items())
      for (auto part : split(names, ',')) {
        if (part.starts_with("swp")) part = part.substr(3);
        for (const int port : range(part)) known[port] = &entry;
      }
    for (const int port : wanted)
      if (!known.contains(port))
        say(fmt::format("swp{}", port),
            "the declaration cables it, the switch does not configure it",
            fmt::format("nv set interface swp{} link state up; nv config apply", port));
    for (const auto& [port, entry] : known) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), port) == wanted.end())
        continue;
      const auto& link = at(*entry, "link");
      const auto mtu = number(textOf(link, "mtu")).value_or(kCumulusMtu);
      if (mtu < roce_.mtu)
        say(fmt::format("swp{}", port), fmt::format("the MTU is {}, hosts send {}", mtu, roce_.mtu),
            fmt::format("nv set interface swp{} link mtu {}; nv config apply", port, kCumulusMtu));
      const auto& state = at(link, "state");
      if (state == "down" || state.contains("down"))
        say(fmt::format("swp{}", port), "it is shut down",
            fmt::format("nv set interface swp{} link state up; nv config apply", port));
    }
  }

  const Roce& roce_;
  const json& set_;
  const std::optional<NvueSince> since_;
  std::vector<PortDifference> out_;
};

/// "Cumulus Linux 5.15.0" in the header; nullopt: another product, or nothing.
std::optional<NvueSince> releaseOf(const json& header) {
  constexpr int kMajor = 5, kMinor = 15;
  const auto version = textOf(header, "version");
  const auto words = split(version, ' ');
  if (words.size() != 3 || words[0] != "Cumulus" || words[1] != "Linux") return std::nullopt;
  const auto parts = split(words[2], '.');
  const auto major = number(parts[0]), minor = parts.size() > 1 ? number(parts[1]) : std::nullopt;
  if (!major || !minor) return std::nullopt;
  return std::pair(*major, *minor) >= std::pair(kMajor, kMinor) ? NvueSince::Cumulus515
                                                                : NvueSince::Cumulus50;
}

}  // namespace

Result<std::vector<PortDifference>> checkSwitch(const Roce& roce, const std::vector<int>& ports,
                                                std::string_view config) {
  const auto read = jsonOrNone(config, kFileJson);
  if (read.is_discarded())
    return fail(
        ErrorCode::Corrupt,
        "the switch's configuration is no JSON; fetch config_db.json, or `nv config show -o json`");
  if (read.is_array() || read.contains("set")) {  // NVUE: [{"header": …}, {"set": …}]
    const auto parts = read.is_array() ? read : json::array({read});
    std::optional<NvueSince> since;
    for (const auto& part : parts)
      if (!since) since = releaseOf(at(part, "header"));
    for (const auto& part : parts)
      if (part.is_object() && part.contains("set") && part["set"].is_object())
        return Nvue(roce, part["set"], since).run(ports);
    return fail(ErrorCode::Corrupt,
                "NVUE's configuration has no part \"set\"; fetch it by `nv config show -o json`");
  }
  if (!read.is_object() || (!read.contains("PORT") && !read.contains("PORT_QOS_MAP") &&
                            !read.contains("DEVICE_METADATA")))
    return fail(
        ErrorCode::NotFound,
        "the file has neither PORT nor PORT_QOS_MAP: it is no config_db.json, or one without RoCE");
  return Sonic(roce, read).run(ports);
}

std::optional<PortDifference> isOfAnotherSwitch(std::string_view config, const std::string& name,
                                                const std::set<std::string>& switches) {
  const auto key = [](std::string text) {
    text = text.substr(0, text.find('.'));
    std::ranges::transform(text, text.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    return text;
  };
  const auto read = jsonOrNone(config, kFileJson);
  auto host = textOf(at(at(read, "DEVICE_METADATA"), "localhost"), "hostname");
  for (const auto& part : read.is_array() ? read : json::array({read}))
    if (const auto told = textOf(at(at(part, "set"), "system"), "hostname"); !told.empty())
      host = told;
  const auto other = std::ranges::find(switches, key(host), key);
  if (host.empty() || key(host) == key(name) || other == switches.end()) return std::nullopt;
  return PortDifference{
      {},
      fmt::format("the file is that of {}, which is another switch than {}", host, name),
      fmt::format("fetch the file of {}, or correct the host name of this switch", name)};
}

Result<std::vector<PortDifference>> checkSwitch(const inventory::Cluster& cluster,
                                                const inventory::Fabric& fabric,
                                                const std::string& name, std::string_view config) {
  if (name.empty()) return checkSwitch(*fabric.roce, {}, config);
  TRY(declared, declaredTopology(cluster, fabric));
  std::set<std::string> switches;
  for (const auto& [device, info] : declared.devices)
    if (info.is_switch) switches.insert(device);
  std::vector<int> ports;
  for (const auto& link : declared.links)
    for (const auto& end : {link.a, link.b})
      if (end.node == name && switches.contains(name)) ports.push_back(end.number);
  if (ports.empty())
    return fail(
        ErrorCode::NotFound,
        fmt::format("fabric {} has no switch {} with cables; `muster fabric plan` lists them",
                    fabric.name, name));
  std::sort(ports.begin(), ports.end());
  TRY(differences, checkSwitch(*fabric.roce, ports, config));
  if (auto other = isOfAnotherSwitch(config, name, switches))
    differences.insert(differences.begin(), *std::move(other));
  return std::move(differences);
}

std::string toText(const std::vector<PortDifference>& differences) {
  if (differences.empty()) return "all as declared\n";
  std::string out;
  for (const auto& one : differences) {
    out += fmt::format("{}{}{}\n", one.port, one.port.empty() ? "" : ": ", one.text);
    if (!one.repair.empty()) out += fmt::format("    → {}\n", one.repair);
  }
  return out;
}

std::string toJson(const std::vector<PortDifference>& differences) {
  json out = json::array();
  for (const auto& one : differences)
    out.push_back({{"port", one.port}, {"text", one.text}, {"repair", one.repair}});
  return jsonText(json{{"format", "muster-switch-config/1"},
                       {"as_declared", differences.empty()},
                       {"differences", std::move(out)}},
                  2);
}

}  // namespace muster::fabric
