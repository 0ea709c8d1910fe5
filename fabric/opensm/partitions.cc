// SPDX-License-Identifier: Apache-2.0
#include "fabric/opensm/partitions.h"

#include "fabric/opensm/subnet_manager.h"
#include "fabric/topology/topology.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <charconv>

namespace muster::fabric {

namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMembersPerLine = 32;  // OpenSM reads lines of at most 4 KiB
constexpr std::size_t kMaxLineBytes = 2048;

bool isPlainName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

/// HCAs by the node they are in.
std::map<std::string, std::vector<std::string>> hcasByNode(const Topology& declared) {
  std::map<std::string, std::vector<std::string>> hcas;
  for (const auto& [name, device] : declared.devices)
    if (!device.is_switch) hcas[name.substr(0, name.find(' '))].push_back(name);
  return hcas;
}

class Resolver {
 public:
  Resolver(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
           const Topology& declared)
      : cluster_(cluster), fabric_(fabric), hcas_(hcasByNode(declared)) {}

  Result<PartitionRules> run() {
    PartitionRules rules;
    for (const auto& partition : fabric_.partitions) rules.push_back(rule(partition));
    auto is_default = [](const PartitionRule& rule) { return rule.pkey == kDefaultPkey; };
    auto found = std::find_if(rules.begin(), rules.end(), is_default);
    if (found == rules.end())
      rules.insert(rules.begin(),
                   {"Default", kDefaultPkey, true, {false, true, {}}, {true, false, {}}});
    else
      std::rotate(rules.begin(), found, found + 1);
    if (!rules.front().full.self)
      say(
          fmt::format("partition {} (0x7fff) must have SELF as full member, or no node can query "
                      "the subnet manager",
                      rules.front().name));
    // SELF is whoever is master just now; with several, each must be able to become it.
    if (auto managers = managerHcas(cluster_, fabric_); managers.size() > 1)
      for (const auto& hca : managers) rules.front().full.ports.insert(hca);
    rules.front().name = "Default";  // the name that OpenSM knows the default partition by
    if (problems_.empty()) return rules;
    return fail(ErrorCode::InvalidInput,
                fmt::format("fabric {}: {}", fabric_.name, fmt::join(problems_, "; ")));
  }

 private:
  void say(std::string problem) { problems_.push_back(std::move(problem)); }

  PartitionRule rule(const inventory::Partition& partition) {
    if (!isPlainName(partition.name))
      say(fmt::format("partition name '{}' may only hold letters, digits, '-' and '_'",
                      partition.name));
    if (!names_.insert(partition.name).second)
      say(fmt::format("partition {} is declared twice", partition.name));
    if (partition.pkey == 0 || partition.pkey > kDefaultPkey)
      say(
          fmt::format("partition {}: pkey 0x{:x} is not within 0x1 and 0x7fff (15 bits; membership "
                      "is not part of it)",
                      partition.name, partition.pkey));
    if (!pkeys_.insert(partition.pkey).second)
      say(fmt::format("partition {}: pkey 0x{:04x} is used by another partition", partition.name,
                      partition.pkey));
    PartitionRule rule{partition.name, partition.pkey, partition.ipoib,
                       members(partition, partition.full_members),
                       members(partition, partition.limited_members)};
    for (const auto& port : rule.full.ports)
      if (rule.limited.ports.count(port))
        say(fmt::format("partition {}: {} is both full and limited member", partition.name, port));
    return rule;
  }

  Members members(const inventory::Partition& partition, const std::vector<std::string>& lists) {
    Members out;
    for (const auto& list : lists) {
      if (list == "ALL")
        out.all = true;
      else if (list == "SELF")
        out.self = true;
      else if (auto names = inventory::expandHostlist(list); !names)
        say(fmt::format("partition {}: member '{}': {}", partition.name, list,
                        names.error().text()));
      else
        for (const auto& name : *names) addNode(partition, name, out);
    }
    return out;
  }

  void addNode(const inventory::Partition& partition, const std::string& name, Members& out) {
    auto found = hcas_.find(name);
    if (found != hcas_.end())
      return out.ports.insert(found->second.begin(), found->second.end()), void();
    bool is_node = cluster_.findNode(NodeName(name)) != nullptr;
    say(fmt::format(
        "partition {}: member {} {}", partition.name, name,
        is_node ? fmt::format("is a node, but its profile is not on fabric {}", fabric_.name)
                : "is not a node of the inventory; correct the name"));
  }

  const inventory::Cluster& cluster_;
  const inventory::Fabric& fabric_;
  std::map<std::string, std::vector<std::string>> hcas_;
  std::set<std::string> names_;
  std::set<std::uint16_t> pkeys_;
  std::vector<std::string> problems_;
};

Members guidsOf(const Members& members, const PortGuids& guids) {
  Members out{members.all, members.self, {}};
  for (const auto& name : members.ports)
    if (auto guid = guids.find(name); guid != guids.end()) out.ports.insert(guid->second);
  return out;
}

void appendMembers(std::vector<std::string>& out, const Members& members,
                   std::string_view membership) {
  if (members.all) out.push_back(fmt::format("ALL={}", membership));
  if (members.self) out.push_back(fmt::format("SELF={}", membership));
  for (const auto& guid : members.ports) out.push_back(fmt::format("{}={}", guid, membership));
}

std::string_view trim(std::string_view text) {
  auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto at = text.find(by);
    parts.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool isGuid(std::string_view text) {
  return text.size() == 18 && text.substr(0, 2) == "0x" &&
         text.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}

/// One statement: NAME=0xPKEY[, ipoib] : MEMBER=full|limited[, …] ;
class StatementReader {
 public:
  explicit StatementReader(PartitionRules& rules) : rules_(rules) {}

  Result<void> read(std::string_view line) {
    if (line.size() > kMaxLineBytes) return bad("the line is too long for OpenSM");
    if (line.back() != ';') return bad("no ';' at the end");
    auto halves = split(line.substr(0, line.size() - 1), ':');
    if (halves.size() != 2) return bad("not of the form NAME=0xPKEY : MEMBERS ;");
    TRY(rule, head(halves[0]));
    for (auto member : split(halves[1], ',')) TRY_OK(addMember(*rule, member));
    return {};
  }

 private:
  static std::unexpected<Error> bad(std::string text) {
    return fail(ErrorCode::InvalidInput, std::move(text));
  }

  Result<PartitionRule*> head(std::string_view text) {
    auto parts = split(text, ',');
    auto name_key = split(parts[0], '=');
    if (name_key.size() != 2 || !isPlainName(name_key[0]))
      return bad(fmt::format("'{}' is not NAME=0xPKEY", parts[0]));
    if (parts.size() > 2 || (parts.size() == 2 && parts[1] != "ipoib"))
      return bad(fmt::format("unknown flag in '{}'", text));
    std::uint16_t pkey = 0;
    auto key = name_key[1];
    auto [end, error] = std::from_chars(key.data() + std::min<std::size_t>(2, key.size()),
                                        key.data() + key.size(), pkey, 16);
    if (key.substr(0, 2) != "0x" || error != std::errc() || end != key.data() + key.size() ||
        pkey == 0 || pkey > kDefaultPkey)
      return bad(fmt::format("'{}' is not a pkey within 0x1 and 0x7fff", key));
    PartitionRule rule{std::string(name_key[0]), pkey, parts.size() == 2, {}, {}};
    for (auto& other : rules_) {
      if ((other.name == rule.name) != (other.pkey == rule.pkey))
        return bad(fmt::format("{}=0x{:04x} and {}=0x{:04x} contradict each other", other.name,
                               other.pkey, rule.name, pkey));
      if (other.name == rule.name) return &other;
    }
    rules_.push_back(std::move(rule));
    return &rules_.back();
  }

  Result<void> addMember(PartitionRule& rule, std::string_view text) {
    auto parts = split(text, '=');
    if (parts.size() != 2 || (parts[1] != "full" && parts[1] != "limited"))
      return bad(fmt::format("'{}' is not MEMBER=full or MEMBER=limited", text));
    auto& members = parts[1] == "full" ? rule.full : rule.limited;
    if (parts[0] == "ALL")
      members.all = true;
    else if (parts[0] == "SELF")
      members.self = true;
    else if (isGuid(parts[0]))
      members.ports.emplace(parts[0]);
    else
      return bad(fmt::format("'{}' is not a port GUID", parts[0]));
    return {};
  }

  PartitionRules& rules_;
};

}  // namespace

Result<PartitionRules> declaredPartitions(const inventory::Cluster& cluster,
                                          const inventory::Fabric& fabric,
                                          const Topology& declared) {
  return Resolver(cluster, fabric, declared).run();
}

PartitionRules withGuids(const PartitionRules& rules, const PortGuids& guids) {
  auto out = rules;
  for (auto& rule : out) {
    rule.full = guidsOf(rule.full, guids);
    rule.limited = guidsOf(rule.limited, guids);
  }
  return out;
}

std::string renderPartitions(const PartitionRules& rules) {
  std::string out = "# Written by muster from the inventory; what is changed here is undone.\n";
  for (const auto& rule : rules) {
    std::vector<std::string> members;
    appendMembers(members, rule.limited, "limited");
    appendMembers(members, rule.full, "full");
    for (std::size_t from = 0; from < members.size(); from += kMembersPerLine) {
      auto to = std::min(from + kMembersPerLine, members.size());
      out +=
          fmt::format("{}=0x{:04x}{} : {} ;\n", rule.name, rule.pkey, rule.ipoib ? ", ipoib" : "",
                      fmt::join(members.begin() + static_cast<std::ptrdiff_t>(from),
                                members.begin() + static_cast<std::ptrdiff_t>(to), ", "));
    }
  }
  return out;
}

Result<PartitionRules> parsePartitions(std::string_view text) {
  PartitionRules rules;
  StatementReader reader(rules);
  for (int number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    auto line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (auto read = reader.read(line); !read)
      return fail(std::move(read).error().within(fmt::format("partitions.conf line {}", number)));
  }
  if (rules.empty() || rules.front().name != "Default" || rules.front().pkey != kDefaultPkey)
    return fail(ErrorCode::InvalidInput,
                "partitions.conf must start with a rule for Default=0x7fff, or OpenSM makes one of "
                "its own");
  return rules;
}

PkeyTable tableOf(const PartitionRules& rules, const std::string& member, bool is_subnet_manager) {
  PkeyTable table;
  auto in = [&](const Members& members) {
    return members.all || (members.self && is_subnet_manager) || members.ports.count(member) > 0;
  };
  for (const auto& rule : rules) {
    if (in(rule.full))
      table.insert(static_cast<std::uint16_t>(rule.pkey | kFullMember));  // full wins over limited
    else if (in(rule.limited))
      table.insert(rule.pkey);
  }
  return table;
}

bool isWider(const PkeyTable& found, const PkeyTable& declared) {
  return std::any_of(found.begin(), found.end(), [&declared](std::uint16_t key) {
    const bool is_full = key & kFullMember;
    return !declared.count(key) && (is_full || !declared.count(key | kFullMember));
  });
}

std::string toString(const PkeyTable& table) {
  std::vector<std::string> keys;
  for (auto key : table) keys.push_back(fmt::format("0x{:04x}", key));
  return fmt::format("{{{}}}", fmt::join(keys, " "));
}

std::string tablesDigest(const PartitionRules& rules, const Topology& declared) {
  std::string text;
  for (const auto& [name, device] : declared.devices)
    if (!device.is_switch)
      text += fmt::format("{}: {}\n", name,
                          toString(tableOf(rules, name, hostOf(name) == "controller")));
  return io::sha256Hex(text);
}

}  // namespace muster::fabric
