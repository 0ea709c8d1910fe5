// SPDX-License-Identifier: Apache-2.0
#include "fabric/compare/recognition.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace muster::fabric {

namespace {

constexpr int kNone = -1;
// Of a device's cables so many must lead where the declaration says, beside more than half of those
// that lead to known devices. The strictest first: one cable at a wrong port decides nothing while
// there is better evidence elsewhere.
struct Share {
  std::size_t of, in;
  bool by_port = true;  ///< the cable's end is at the declared port of the device as well
};
constexpr Share kShares[] = {{1, 2}, {1, 4}, {1, 16}, {0, 1}};
/// Where two leaves seem to be exchanged, half of a spine's cables are at the other's port.
constexpr Share kAnyPort = {0, 1, false};

/// "gpu001.hall-2.example.com mlx5_0" and "GPU001 mlx5_0" are one host.
std::string hostKey(std::string_view device_name) {
  auto host = hostOf(device_name);
  std::string out(host.substr(0, host.find('.')));
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

/// What is behind the host: "mlx5_4", "HCA-5".
std::string_view labelOf(std::string_view device_name) {
  const auto host = hostOf(device_name).size();
  return host < device_name.size() ? device_name.substr(host + 1) : std::string_view();
}

/// The number at the end of "mlx5_4", "HCA-5".
std::optional<int> numberOf(std::string_view label) {
  const auto at = label.find_last_not_of("0123456789") + 1;
  int value = 0;
  auto [end, error] = std::from_chars(label.data() + at, label.data() + label.size(), value);
  return error == std::errc() && at > 0 ? std::optional(value) : std::nullopt;
}

/// One name for all ways to write the host.
std::string keyOf(std::string_view device_name) {
  return fmt::format("{} {}", hostKey(device_name), labelOf(device_name));
}

/// "HCA-5" is the fifth device of its host, mlx5_4.
bool isCounted(std::string_view label, std::string_view as) {
  const auto number = numberOf(label), declared = numberOf(as);
  return label.starts_with("HCA-") && number && declared && *number == *declared + 1;
}

// Of the one switch that is left so many cables must be right, and this share of all.
constexpr std::size_t kFewestOfLast = 2, kLastShare = 4;

/// One of the two topologies, by numbers.
struct Graph {
  struct Cable {
    int port = 0, peer = kNone, peer_port = 0;
  };
  std::vector<const std::string*> names;
  std::vector<bool> is_switch;
  std::vector<std::vector<Cable>> cables;
  std::map<std::string_view, int> ids;

  explicit Graph(const Topology& topology) {
    for (const auto& [name, device] : topology.devices) {
      ids.emplace(name, static_cast<int>(names.size()));
      names.push_back(&name);
      is_switch.push_back(device.is_switch);
    }
    cables.resize(names.size());
    for (const auto& link : topology.links)
      for (const auto& [own, peer] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
        cables[at(ids.at(own->node))].push_back({own->number, ids.at(peer->node), peer->number});
  }
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  int size() const { return static_cast<int>(names.size()); }
};

class Recognition {
 public:
  Recognition(const Topology& declared, const Topology& found)
      : declared_(declared), found_(found) {
    for (const auto& [name, fabric] : declared.elsewhere) elsewhere_.emplace(keyOf(name), &name);
    is_.assign(found_.names.size(), kNone);
    named_.assign(found_.names.size(), false);
    taken_.assign(declared_.names.size(), false);
    by_port_.resize(declared_.names.size());
    for (int id = 0; id < declared_.size(); ++id) {
      for (const auto& cable : declared_.cables[Graph::at(id)])
        by_port_[Graph::at(id)][cable.port] = {cable.peer, cable.peer_port};
      if (!declared_.is_switch[Graph::at(id)])
        hosts_[hostKey(*declared_.names[Graph::at(id)])].push_back(id);
    }
  }

  /// Found name → declared name, of devices that may be called so.
  std::map<std::string, std::string> run() {
    for (int id = 0; id < found_.size(); ++id)
      if (const auto same = declared_.ids.find(*found_.names[Graph::at(id)]);
          same != declared_.ids.end() &&
          declared_.is_switch[Graph::at(same->second)] == found_.is_switch[Graph::at(id)]) {
        take(id, same->second);
        named_[Graph::at(id)] = true;
        if (!found_.is_switch[Graph::at(id)]) ++called_so_[labelOf(same->first)];
      }
    readLabels();
    for (bool moved = true; moved;) {
      // The strictest again, with what is known now.
      moved = std::ranges::any_of(kShares, [this](const auto& share) { return switchesBy(share); });
      if (!moved) moved = hcasBy(learnedLabels());
      if (!moved) moved = hcasBy(guessedLabels());
      if (!moved) moved = switchesBy(kAnyPort);
      if (!moved) moved = lastSwitch();
    }
    exchangeSwitches();
    auto out = ofOtherFabrics();
    renumberHosts();
    for (const auto& [found, as] : renumbered_)
      out.emplace(*found_.names[Graph::at(found)], *declared_.names[Graph::at(as)]);
    for (int id = 0; id < found_.size(); ++id)
      if (const int as = is_[Graph::at(id)]; as != kNone)
        if (const auto &from = *found_.names[Graph::at(id)], &to = *declared_.names[Graph::at(as)];
            from != to && !found_.ids.contains(to))  // a device of the other kind may carry it
          out.emplace(from, to);
    return out;
  }

  /// "gpu001 shows fewer HCAs than it has…"; empty: no host.
  std::string noteOfRenumbered() const {
    std::set<std::string_view> hosts;
    for (const auto& [found, as] : renumbered_)
      hosts.insert(hostOf(*declared_.names[Graph::at(as)]));
    if (hosts.empty()) return {};
    return fmt::format(
        "{}{} shows fewer HCAs than it has, and its kernel has numbered the others "
        "anew: they are told by their cables",
        *hosts.begin(),
        hosts.size() > 1 ? fmt::format(" (and {} more hosts)", hosts.size() - 1) : "");
  }

 private:
  struct End {
    int device = kNone, port = 0;
  };

  void take(int found, int declared) {
    is_[Graph::at(found)] = declared;
    taken_[Graph::at(declared)] = true;
  }
  End declaredPeer(int declared, int port) const {
    const auto& ports = by_port_[Graph::at(declared)];
    const auto at = ports.find(port);
    return at == ports.end() ? End{} : at->second;
  }

  using Labels = std::map<std::string_view, std::string_view>;  // found → declared

  /// HCAs of other fabrics that write their host in another way.
  std::map<std::string, std::string> ofOtherFabrics() const {
    std::map<std::string, std::string> out;
    for (int id = 0; id < found_.size(); ++id)
      if (const auto& name = *found_.names[Graph::at(id)];
          !found_.is_switch[Graph::at(id)] && is_[Graph::at(id)] == kNone)
        if (const auto other = elsewhere_.find(keyOf(name));
            other != elsewhere_.end() && !found_.ids.contains(*other->second))
          out.emplace(name, *other->second);
    return out;
  }

  /// HCAs of declared hosts whose label is not the declared one.
  void readLabels() {
    std::map<std::string, int> carriers;
    for (int id = 0; id < found_.size(); ++id)
      if (!found_.is_switch[Graph::at(id)] && is_[Graph::at(id)] == kNone)
        ++carriers[keyOf(*found_.names[Graph::at(id)])];
    for (int id = 0; id < found_.size(); ++id) {
      const auto& name = *found_.names[Graph::at(id)];
      if (found_.is_switch[Graph::at(id)] || is_[Graph::at(id)] != kNone) continue;
      // Two devices with one name, which the parser has told apart: neither is believed.
      if (name.ends_with(')') && name.find(" (") != std::string::npos) continue;
      if (elsewhere_.contains(keyOf(name))) continue;
      const auto host = hosts_.find(hostKey(name));
      if (host == hosts_.end()) continue;
      const auto own = std::ranges::find(host->second, keyOf(name), [this](int hca) {
        return keyOf(*declared_.names[Graph::at(hca)]);
      });
      if (own == host->second.end())
        unlabelled_.emplace(id, &host->second);
      else if (!taken_[Graph::at(*own)] && carriers.at(keyOf(name)) == 1)
        take(id, *own), ++called_so_[labelOf(name)];
    }
  }

  /// Whether a label's votes are most of all that is known of those HCAs: a host whose label alone
  /// is another has another HCA there. "HCA-5" is no other.
  bool areMost(std::size_t votes, std::string_view label, std::string_view as,
               std::size_t all) const {
    const auto so = called_so_.find(as);
    return isCounted(label, as) || 2 * votes > all + (so == called_so_.end() ? 0 : so->second);
  }

  /// By what stands at the places of known hosts' HCAs; a swap at one host is outvoted.
  Labels learnedLabels() {
    std::map<std::string_view, std::map<std::string_view, std::size_t>> votes;
    for (const auto& [id, hcas] : unlabelled_)
      for (const auto& cable : found_.cables[Graph::at(id)]) {
        const int at = is_[Graph::at(cable.peer)];
        if (at == kNone) continue;
        const auto expected = declaredPeer(at, cable.peer_port);
        if (expected.device != kNone &&
            std::find(hcas->begin(), hcas->end(), expected.device) != hcas->end())
          ++votes[labelOf(*found_.names[Graph::at(id)])]
                 [labelOf(*declared_.names[Graph::at(expected.device)])];
      }
    std::map<std::string_view, std::size_t> by_declared;
    for (const auto& [label, candidates] : votes)
      for (const auto& [as, count] : candidates) by_declared[as] += count;
    for (const auto& [label, candidates] : votes) {
      const auto best =
          std::max_element(candidates.begin(), candidates.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      std::size_t all = 0;
      for (const auto& [as, count] : candidates) all += count;
      if (2 * best->second <= all) continue;
      if (areMost(best->second, label, best->first, by_declared.at(best->first)))
        learned_[label] = best->first;
      else if (!learned_.contains(label))
        outvoted_.insert(label);
    }
    return learned_;
  }

  /// Where no cable says it: "HCA-5" is mlx5_4, and if that does not fit all of them, labels are
  /// the declared ones in the order of their numbers. What was learned of others is no candidate.
  Labels guessedLabels() const {
    std::set<std::string_view> used, seen, known;
    for (const auto& [label, as] : learned_) used.insert(as);
    std::vector<std::string_view> found, declared;
    for (const auto& [id, hcas] : unlabelled_) {
      const auto label = labelOf(*found_.names[Graph::at(id)]);
      if (numberOf(label) && !learned_.contains(label) && !outvoted_.contains(label) &&
          seen.insert(label).second)
        found.push_back(label);
      for (int hca : *hcas)
        if (const auto as = labelOf(*declared_.names[Graph::at(hca)]);
            numberOf(as) && !used.contains(as) && known.insert(as).second)
          declared.push_back(as);
    }
    const auto by_number = [](std::string_view a, std::string_view b) {
      return std::pair(*numberOf(a), a) < std::pair(*numberOf(b), b);
    };
    std::sort(found.begin(), found.end(), by_number);
    std::sort(declared.begin(), declared.end(), by_number);
    Labels counted, in_order;
    for (const auto label : found)
      for (const auto as : declared)
        if (isCounted(label, as)) counted.emplace(label, as);
    if (counted.size() == found.size()) return counted;
    for (std::size_t i = 0; i < found.size() && found.size() <= declared.size(); ++i)
      in_order.emplace(found[i], declared[i]);
    return in_order;
  }

  /// The declared HCA that a label stands for at its host; kNone: unknown, or another has it.
  int labelled(int found, const std::vector<int>& hcas, const Labels& labels) const {
    const auto as = labels.find(labelOf(*found_.names[Graph::at(found)]));
    if (as == labels.end()) return kNone;
    for (int id : hcas)
      if (labelOf(*declared_.names[Graph::at(id)]) == as->second)
        return taken_[Graph::at(id)] ? kNone : id;
    return kNone;
  }

  bool hcasBy(const Labels& labels) {
    bool moved = false;
    for (auto at = unlabelled_.begin(); at != unlabelled_.end();) {
      const int as = labelled(at->first, *at->second, labels);
      if (as != kNone) {
        take(at->first, as);
        ++called_so_[labelOf(*declared_.names[Graph::at(as)])];
        moved = true;
      }
      at = as == kNone ? std::next(at) : unlabelled_.erase(at);
    }
    return moved;
  }

  /// Takes every switch that has this share of its cables for it. Whether there was one.
  bool switchesBy(const Share& share) {
    struct Claim {
      std::size_t votes;
      int found, declared;
    };
    std::vector<Claim> claims;
    for (int id = 0; id < found_.size(); ++id) {
      if (!found_.is_switch[Graph::at(id)] || is_[Graph::at(id)] != kNone) continue;
      const auto& cables = found_.cables[Graph::at(id)];
      std::map<int, std::size_t> votes;
      std::size_t evidence = 0;
      for (const auto& cable : cables) {
        const int peer = is_[Graph::at(cable.peer)];
        if (peer == kNone) continue;
        const auto expected = declaredPeer(peer, cable.peer_port);
        if (expected.device == kNone) continue;
        ++evidence;
        if ((!share.by_port || expected.port == cable.port) &&
            declared_.is_switch[Graph::at(expected.device)] && !taken_[Graph::at(expected.device)])
          ++votes[expected.device];
      }
      for (const auto& [declared, count] : votes)
        if (2 * count > evidence && count * share.in >= cables.size() * share.of)
          claims.push_back({count, id, declared});
    }
    std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
      return std::tuple(b.votes, a.found, a.declared) < std::tuple(a.votes, b.found, b.declared);
    });
    std::map<int, std::size_t> best;  // declared → votes; two with as many are not told apart
    std::set<int> disputed;
    for (const auto& claim : claims)
      if (auto [at, fresh] = best.emplace(claim.declared, claim.votes);
          !fresh && at->second == claim.votes)
        disputed.insert(claim.declared);
    bool moved = false;
    for (const auto& claim : claims) {
      if (disputed.contains(claim.declared) || taken_[Graph::at(claim.declared)]) continue;
      take(claim.found, claim.declared);
      moved = true;
    }
    return moved;
  }

  /// Where one switch is not recognized and one is missing, a few of its cables are enough: most of
  /// them may be wrong.
  bool lastSwitch() {
    int left = kNone, missing = kNone;
    for (int id = 0; id < found_.size(); ++id)
      if (found_.is_switch[Graph::at(id)] && is_[Graph::at(id)] == kNone) {
        if (left != kNone) return false;
        left = id;
      }
    for (int id = 0; id < declared_.size(); ++id)
      if (declared_.is_switch[Graph::at(id)] && !taken_[Graph::at(id)]) {
        if (missing != kNone) return false;
        missing = id;
      }
    if (left == kNone || missing == kNone) return false;
    std::size_t right = 0;
    const auto& cables = found_.cables[Graph::at(left)];
    for (const auto& cable : cables)
      if (const int peer = is_[Graph::at(cable.peer)]; peer != kNone) {
        const auto expected = declaredPeer(peer, cable.peer_port);
        right += expected.device == missing && expected.port == cable.port;
      }
    if (right < kFewestOfLast || right * kLastShare < cables.size()) return false;
    take(left, missing);
    return true;
  }

  /// Leaves are told by their hosts first. Where the cables above say otherwise, and are more, the
  /// hosts are at the wrong leaves: that takes fewer moves. Only among switches that take each
  /// other's places, and where no label was read by them.
  void exchangeSwitches() {
    std::map<int, int> wish, holder;  // found → declared; declared → found
    for (int id = 0; id < found_.size(); ++id) {
      if (!found_.is_switch[Graph::at(id)]) {
        if (is_[Graph::at(id)] != kNone && !named_[Graph::at(id)]) return;
        continue;
      }
      if (is_[Graph::at(id)] == kNone || named_[Graph::at(id)]) continue;
      std::map<int, std::size_t> votes;
      for (const auto& cable : found_.cables[Graph::at(id)])
        if (const int peer = is_[Graph::at(cable.peer)]; peer != kNone)
          if (const auto expected = declaredPeer(peer, cable.peer_port);
              expected.device != kNone && expected.port == cable.port)
            ++votes[expected.device];
      const auto best =
          std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
      if (best == votes.end() || best->second <= votes[is_[Graph::at(id)]] ||
          !declared_.is_switch[Graph::at(best->first)])
        continue;
      wish[id] = best->first;
      holder[is_[Graph::at(id)]] = id;
    }
    std::set<int> wanted;
    for (const auto& [id, as] : wish)
      if (!holder.contains(as) || !wanted.insert(as).second) return;
    for (const auto& [id, as] : wish) is_[Graph::at(id)] = as;
  }

  /// A kernel numbers the HCAs that it finds: where one has died, those behind it answer with the
  /// number before, at cables that are right. So a host that shows fewer than it has, each at the
  /// place of one of its own and in their order, has a dead HCA, and no cable that moved.
  void renumberHosts() {
    std::map<int, int> found_as;  // declared → found
    for (int id = 0; id < found_.size(); ++id)
      if (!found_.is_switch[Graph::at(id)] && is_[Graph::at(id)] != kNone)
        found_as.emplace(is_[Graph::at(id)], id);
    for (const auto& [host, hcas] : hosts_) {
      const auto shown =
          std::ranges::count_if(hcas, [&found_as](int hca) { return found_as.contains(hca); });
      if (shown == 0 || shown == std::ssize(hcas)) continue;
      const auto order = inNumbers(hcas);
      std::vector<std::pair<int, int>> places;  // found, the HCA that belongs to its cables
      for (const int hca : order)
        if (const auto found = found_as.find(hca); found != found_as.end())
          places.emplace_back(found->second, placeOf(found->second));
      auto next = order.begin();  // each place behind the one before
      bool in_order = true, moved = false;
      for (const auto& [found, place] : places) {
        const auto at = std::find(next, order.end(), place);
        in_order = in_order && at != order.end();
        if (!in_order) break;
        moved = moved || is_[Graph::at(found)] != place;
        next = std::next(at);
      }
      if (!in_order || !moved) continue;
      for (const auto& [found, place] : places)
        if (is_[Graph::at(found)] != place) {
          is_[Graph::at(found)] = place;
          renumbered_.emplace(found, place);
        }
    }
  }
  /// Declared HCAs of a host by the numbers of their names.
  std::vector<int> inNumbers(std::vector<int> hcas) const {
    std::ranges::stable_sort(hcas, {}, [this](int hca) {
      return numberOf(labelOf(*declared_.names[Graph::at(hca)])).value_or(0);
    });
    return hcas;
  }
  /// The declared HCA that all cables of a found one belong to; kNone: they do not agree, or lead
  /// to what is not known.
  int placeOf(int found) const {
    int out = kNone;
    for (const auto& cable : found_.cables[Graph::at(found)]) {
      const int peer = is_[Graph::at(cable.peer)];
      const int device = peer == kNone ? kNone : declaredPeer(peer, cable.peer_port).device;
      if (device == kNone || (out != kNone && out != device)) return kNone;
      out = device;
    }
    return out;
  }

  const Graph declared_, found_;
  std::vector<int> is_;      // found → declared
  std::vector<bool> named_;  // found: carries the declared name
  std::vector<bool> taken_;
  std::vector<std::map<int, End>> by_port_;                     // declared
  std::map<std::string, std::vector<int>, std::less<>> hosts_;  // declared HCAs
  std::map<int, const std::vector<int>*> unlabelled_;           // found → HCAs of its host
  Labels learned_;
  std::map<int, int> renumbered_;                        // found → declared
  std::set<std::string_view> outvoted_;                  // labels that are other HCAs
  std::map<std::string_view, std::size_t> called_so_;    // declared label → HCAs that are it
  std::map<std::string, const std::string*> elsewhere_;  // keyOf → HCA of another fabric
};

Topology renamed(const Topology& found, const std::map<std::string, std::string>& names) {
  Topology out;
  out.shared_guids = found.shared_guids;
  out.switch_parts = found.switch_parts;
  const auto now = [&](const std::string& name) -> const std::string& {
    const auto at = names.find(name);
    return at == names.end() ? name : at->second;
  };
  for (const auto& [name, device] : found.devices) {
    auto& one = out.devices[now(name)] = device;
    one.name = now(name);
  }
  for (const auto& link : found.links) {
    Link one{
        {now(link.a.node), link.a.number}, {now(link.b.node), link.b.number}, link.width_speed};
    if (one.b < one.a) {
      std::swap(one.a, one.b);
      if (const auto slash = one.width_speed.find('/'); slash != std::string::npos)
        one.width_speed =
            one.width_speed.substr(slash + 1) + "/" + one.width_speed.substr(0, slash);
    }
    out.links.push_back(std::move(one));
  }
  std::sort(out.links.begin(), out.links.end());
  return out;
}

}  // namespace

Recognized recognize(const Topology& declared, Topology found) {
  Recognition recognition(declared, found);
  const auto names = recognition.run();
  Recognized out;
  if (names.empty()) {
    out.found = std::move(found);
    return out;
  }
  out.found = renamed(found, names);
  std::size_t switches = 0, hcas = 0;
  std::string a_switch, an_hca;
  for (const auto& [name, as] : names) {
    const bool is_switch = found.devices.at(name).is_switch;
    auto& example = is_switch ? a_switch : an_hca;
    if (example.empty()) example = fmt::format("{} answers as \"{}\"", as, name);
    ++(is_switch ? switches : hcas);
    out.names.emplace(as, name);
  }
  std::vector<std::string> parts;
  if (switches) parts.push_back(fmt::format("{} switches ({})", switches, a_switch));
  if (hcas) parts.push_back(fmt::format("{} HCAs ({})", hcas, an_hca));
  out.note = fmt::format("{} were recognized by their cables, not by their names",
                         fmt::join(parts, " and "));
  if (const auto renumbered = recognition.noteOfRenumbered(); !renumbered.empty())
    out.note += "; " + renumbered;
  return out;
}

}  // namespace muster::fabric
