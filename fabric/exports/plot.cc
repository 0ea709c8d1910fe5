// SPDX-License-Identifier: Apache-2.0
#include "fabric/exports/plot.h"

#include "base/markup.h"
#include "fabric/exports/plot_overview.h"

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr int kLeft = 20, kTop = 70, kRowHeight = 170, kBoxHeight = 22;
constexpr int kSwitchWidth = 96, kSwitchGap = 10, kHostWidth = 12, kHostGap = 4;
constexpr std::size_t kMostLabels = 400;     ///< switches of a row whose names still fit
constexpr std::size_t kMostHostLabels = 64;  ///< hosts whose names are written below them
constexpr std::size_t kMostHosts = 160;  ///< and switches: more on a screen are dots without names
constexpr int kHostLabelHeight = 90;
constexpr std::string_view kStyle =
    "text{font:11px "
    "sans-serif;fill:#222}.t{font-size:18px}.s{fill:#dbe7f5;stroke:#4a6fa5}.h{fill:#e6e6e6;stroke:#"
    "888}"
    ".x{fill:#f8c9c9;stroke:#c00;stroke-width:2}.e{fill:#fff;stroke:#c00;stroke-width:2}path{fill:"
    "none;stroke:#9ab;stroke-width:.7}"
    ".m{stroke:#c00;stroke-width:2;stroke-dasharray:5 "
    "4}.w{stroke:#c00;stroke-width:2}.d{stroke:#e08000;stroke-width:2}"
    "path:hover{stroke-width:4}";

struct Box {
  int x = 0, y = 0, width = 0;
  int middle() const { return x + width / 2; }
};

using Pair = std::pair<std::string_view, std::string_view>;
Pair pairOf(const Link& link) { return {hostOf(link.a.node), hostOf(link.b.node)}; }

class Plot {
 public:
  Plot(const Topology& declared, const std::map<std::string, Place>& places,
       const FoundFabric* found)
      : declared_(declared), places_(places), found_(found) {}

  std::string draw(const std::string& title) {
    arrange();
    healthy();
    if (found_) faults();
    boxes();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "width=\"{}\"><style>{}</style><text class=\"t\" x=\"{}\" "
        "y=\"28\">{}</text>"
        "<text x=\"{}\" y=\"48\">{}</text>{}{}</svg>\n",
        width_ + kLeft, height_, std::min(width_ + kLeft, 4000), kStyle, kLeft,
        escapedMarkup(title), kLeft, legend(), lines_, boxes_);
  }

 private:
  std::string legend() const {
    if (!found_) return "as declared";
    if (found_->comparison.deviations.empty()) return "found as declared";
    return fmt::format(
        "{} deviations: dashed red is missing, red should not be there, orange is slower than "
        "declared; point at a line to read what to do",
        found_->comparison.deviations.size());
  }

  /// The highest switches on top, hosts at the bottom; what nobody declared stands below them.
  void arrange() {
    auto levels = switchLevels(declared_);
    int highest = 0;
    for (const auto& [name, level] : levels) highest = std::max(highest, level);
    std::vector<int> filled(static_cast<std::size_t>(highest) + 2, 0);
    auto put = [&](std::string_view name, int row, bool is_switch) {
      if (boxes_of_.count(name)) return;
      auto& count = filled[static_cast<std::size_t>(row)];
      int width = is_switch ? kSwitchWidth : kHostWidth, gap = is_switch ? kSwitchGap : kHostGap;
      boxes_of_[name] = {kLeft + count++ * (width + gap), kTop + row * kRowHeight, width};
      width_ = std::max(width_, kLeft + count * (width + gap));
    };
    for (const auto& [name, device] : declared_.devices) {
      auto level = levels.find(name);
      put(hostOf(name),
          device.is_switch ? highest - (level == levels.end() ? 1 : level->second) : highest,
          device.is_switch);
    }
    if (found_)
      for (const auto& [name, device] : found_->topology.devices)
        if (!declared_.devices.count(name)) put(hostOf(name), highest + 1, device.is_switch);
    centre();
    height_ = kTop + (highest + (filled.back() ? 2 : 1)) * kRowHeight;
    label_hosts_ =
        static_cast<std::size_t>(filled[static_cast<std::size_t>(highest)]) <= kMostHostLabels;
    if (label_hosts_) height_ = std::max(height_, kTop + highest * kRowHeight + kHostLabelHeight);
  }

  void centre() {
    std::map<int, int> ends;
    for (const auto& [name, box] : boxes_of_)
      ends[box.y] = std::max(ends[box.y], box.x + box.width);
    for (auto& [name, box] : boxes_of_) box.x += (width_ - ends[box.y]) / 2;
  }

  std::string line(const Link& link) const {
    auto a = boxes_of_.find(hostOf(link.a.node)), b = boxes_of_.find(hostOf(link.b.node));
    if (a == boxes_of_.end() || b == boxes_of_.end()) return {};
    const Box &low = a->second.y > b->second.y ? a->second : b->second,
              &high = a->second.y > b->second.y ? b->second : a->second;
    if (low.y == high.y)
      return fmt::format("M{} {}q{} 60 {} 0", low.middle(), low.y + kBoxHeight,
                         (high.middle() - low.middle()) / 2, high.middle() - low.middle());
    return fmt::format("M{} {}L{} {}", low.middle(), low.y, high.middle(), high.y + kBoxHeight);
  }

  void healthy() {
    std::set<Pair> drawn;
    std::string path;
    const auto& links = found_ ? found_->topology.links : declared_.links;
    for (const auto& link : links)
      if (drawn.insert(pairOf(link)).second) path += line(link);
    lines_ = fmt::format("<path d=\"{}\"/>", path);
  }

  void fault(std::string_view kind, const Link& link, const std::string& what) {
    auto path = line(link);
    if (!path.empty())
      lines_ += fmt::format("<path class=\"{}\" d=\"{}\"><title>{}: {} – {}{}</title></path>", kind,
                            path, what, escapedMarkup(toString(link.a)),
                            escapedMarkup(toString(link.b)), escapedMarkup(adviceOn(link)));
  }
  std::string adviceOn(const Link& link) const {
    for (const auto* end : {&link.a, &link.b})
      for (const auto& at : {*end, Port{end->node, 0}})
        if (auto repair = repairs_.find(at); repair != repairs_.end()) return "; " + repair->second;
    return {};
  }

  void faults() {
    for (const auto& one : found_->comparison.deviations) repairs_.emplace(one.at, one.repair);
    auto wanted = declared_.links.begin();
    auto have = found_->topology.links.begin();
    const auto wanted_end = declared_.links.end();
    const auto have_end = found_->topology.links.end();
    auto ends = [](const Link& link) { return std::tie(link.a, link.b); };
    while (wanted != wanted_end || have != have_end) {
      if (have == have_end || (wanted != wanted_end && ends(*wanted) < ends(*have)))
        fault("m", *wanted++, "missing");
      else if (wanted == wanted_end || ends(*have) < ends(*wanted))
        fault("w", *have++, "not declared");
      else {
        if (have->width_speed != wanted->width_speed)
          fault("d", *have, have->width_speed + " instead of " + wanted->width_speed);
        ++wanted, ++have;
      }
    }
  }

  void boxes() {
    std::map<int, std::size_t> in_row;
    for (const auto& [name, box] : boxes_of_) ++in_row[box.y];
    for (const auto& [name, box] : boxes_of_) {
      bool is_switch = box.width == kSwitchWidth;
      boxes_ += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
          "height=\"{}\"><title>{}</title></rect>",
          look(name, is_switch), box.x, box.y, box.width, kBoxHeight, escapedMarkup(tooltip(name)));
      if (is_switch && in_row[box.y] <= kMostLabels)
        boxes_ += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", box.x + 4, box.y + 15,
                              escapedMarkup(name));
      if (!is_switch && label_hosts_)
        boxes_ += fmt::format("<text transform=\"translate({},{}) rotate(90)\">{}</text>",
                              box.x + 2, box.y + kBoxHeight + 4, escapedMarkup(name));
    }
  }
  /// Of a host by its first HCA.
  static const Device* deviceOf(const Topology& topology, std::string_view host) {
    auto at = topology.devices.lower_bound(std::string(host));
    return at != topology.devices.end() && hostOf(at->first) == host ? &at->second : nullptr;
  }
  std::string_view look(std::string_view host, bool is_switch) const {
    const auto* declared = deviceOf(declared_, host);
    if (!declared) return "e";
    if (found_ && !deviceOf(found_->topology, host)) return "x";
    return is_switch ? "s" : "h";
  }
  std::string tooltip(std::string_view host) const {
    const auto* declared = deviceOf(declared_, host);
    auto place = declared ? places_.find(declared->name) : places_.end();
    return fmt::format("{}{}", host,
                       !declared ? " (not declared)"
                       : place != places_.end() && !place->second.rack.empty()
                           ? " in " + place->second.str()
                           : "");
  }

  const Topology& declared_;
  const std::map<std::string, Place>& places_;
  const FoundFabric* found_;
  std::map<std::string_view, Box> boxes_of_;  // by host or switch
  std::map<Port, std::string> repairs_;
  std::string lines_, boxes_;
  int width_ = 400, height_ = 0;
  bool label_hosts_ = false;
};

bool isLarge(const Topology& declared) {
  std::set<std::string_view> hosts;
  std::size_t switches = 0;
  for (const auto& [name, device] : declared.devices)
    if (device.is_switch)
      ++switches;
    else
      hosts.insert(hostOf(name));
  return hosts.size() > kMostHosts || switches > kMostHosts;
}

}  // namespace

std::string plotSvg(const std::string& title, const Topology& declared,
                    const std::map<std::string, Place>& places, const FoundFabric* found) {
  return isLarge(declared) ? plotOverviewSvg(title, declared, found)
                           : Plot(declared, places, found).draw(title);
}

}  // namespace muster::fabric
