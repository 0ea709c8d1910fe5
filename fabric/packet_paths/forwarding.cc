// SPDX-License-Identifier: Apache-2.0
#include "fabric/packet_paths/forwarding.h"

#include "fabric/topology/topology.h"

#include <charconv>
#include <unordered_map>

namespace muster::fabric {

namespace {

constexpr int kMostHops = 64;
constexpr int kMostPorts = 255;
constexpr int kMostLids = 0xbfff;

template <class Number>
bool read(std::string_view& text, Number& value, int base) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// Numbers in place of names: there are as many steps as pairs times hops.
class Walker {
 public:
  Walker(const Topology& found, const ForwardingTables& tables,
         const std::map<std::string, int>& levels) {
    std::unordered_map<std::string_view, int> ids;
    for (const auto& [name, device] : found.devices) {
      ids.emplace(name, static_cast<int>(names_.size()));
      names_.push_back(name);
      auto level = levels.find(name);
      levels_.push_back(!device.is_switch ? 0 : level == levels.end() ? -1 : level->second);
      auto table = device.is_switch ? tables.find(device.guid) : tables.end();
      tables_.push_back(table == tables.end() ? nullptr : &table->second);
    }
    peers_.assign(names_.size() * kMostPorts, -1);
    load_.assign(peers_.size(), 0);
    for (const auto& link : found.links) {
      auto a = ids.at(link.a.node), b = ids.at(link.b.node);
      peers_[slot(a, link.a.number)] = b;
      peers_[slot(b, link.b.number)] = a;
    }
    for (const auto& [name, device] : found.devices) {
      if (device.is_switch) continue;
      for (const auto& [port, address] : device.addresses)
        if (address.lid > 0 && peers_[slot(ids.at(name), port)] >= 0)
          ends_.push_back({ids.at(name), port, address.lid});
    }
  }

  Reachability run() {
    for (const auto& from : ends_)
      for (const auto& to : ends_)
        if (from.lid != to.lid) way(from, to);
    for (std::size_t i = 0; i < load_.size(); ++i)
      out_.busiest_uplink = std::max(out_.busiest_uplink, load_[i]);
    return std::move(out_);
  }

 private:
  struct End {
    int device, port, lid;
  };
  static std::size_t slot(int device, int port) {
    return static_cast<std::size_t>(device) * kMostPorts + static_cast<std::size_t>(port);
  }
  int level(int device) const { return levels_[static_cast<std::size_t>(device)]; }

  void way(const End& from, const End& to) {
    ++out_.pairs;
    int at = peers_[slot(from.device, from.port)];
    bool went_down = false, turned = false;
    for (int hop = 0; at != to.device; ++hop) {
      const auto* table =
          at >= 0 && hop < kMostHops ? tables_[static_cast<std::size_t>(at)] : nullptr;
      int out = table && static_cast<std::size_t>(to.lid) < table->size()
                    ? (*table)[static_cast<std::size_t>(to.lid)]
                    : kNoRoute;
      int next = out > 0 && out < kMostPorts ? peers_[slot(at, out)] : kNoRoute;
      if (next < 0) return lost(from, to);
      if (level(at) > 0 && level(next) > 0) {
        ++load_[slot(at, out)];
        turned |= went_down && level(next) > level(at);
        went_down |= level(next) < level(at);
      }
      at = next;
    }
    const bool both_above = level(peers_[slot(from.device, from.port)]) > 1 &&
                            level(peers_[slot(to.device, to.port)]) > 1;
    (both_above ? out_.reversed : out_.down_up) += turned;
  }
  void lost(const End& from, const End& to) {
    ++out_.lost;
    if (out_.examples.size() < kMaxExamples)
      out_.examples.push_back(fmt::format("{} to {}", names_[static_cast<std::size_t>(from.device)],
                                          names_[static_cast<std::size_t>(to.device)]));
  }

  std::vector<std::string_view> names_;
  std::vector<int> levels_;
  std::vector<const std::vector<int>*> tables_;
  std::vector<int> peers_, load_;  // by device and port
  std::vector<End> ends_;
  Reachability out_;
};

}  // namespace

Result<ForwardingTables> parseForwardingTables(std::string_view text) {
  constexpr std::string_view kHead = "Unicast lids [", kGuid = " guid 0x", kLid = "0x";
  ForwardingTables out;
  std::vector<int>* table = nullptr;
  for (int number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.starts_with(kHead)) {
      auto at = line.find(kGuid);
      std::uint64_t guid = 0;
      auto rest =
          at == std::string_view::npos ? std::string_view{} : line.substr(at + kGuid.size());
      if (!read(rest, guid, 16))
        return fail(ErrorCode::Corrupt,
                    fmt::format("dump_fts line {}: a switch without GUID", number));
      table = &out[fmt::format("0x{:016x}", guid)];
    } else if (line.starts_with(kLid)) {
      int lid = 0, port = 0;
      line.remove_prefix(kLid.size());
      bool good = table && read(line, lid, 16) && line.starts_with(" ");
      line.remove_prefix(good ? 1 : 0);
      if (!good || !read(line, port, 10))
        return fail(ErrorCode::Corrupt, fmt::format("dump_fts line {}: no LID and port", number));
      if (lid < 0 || lid > kMostLids)
        return fail(ErrorCode::Corrupt, fmt::format("dump_fts line {}: {} is no LID", number, lid));
      if (table->size() <= static_cast<std::size_t>(lid))
        table->resize(static_cast<std::size_t>(lid) + 1, kNoRoute);
      (*table)[static_cast<std::size_t>(lid)] = port;
    }
  }
  return out;
}

Reachability walk(const Topology& found, const ForwardingTables& tables,
                  const std::map<std::string, int>& levels) {
  return Walker(found, tables, levels).run();
}

}  // namespace muster::fabric
