// SPDX-License-Identifier: Apache-2.0
#include "validate/report/plots.h"

#include "base/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace muster::validate::report {
namespace {

using history::Better;
using history::Group;

constexpr double kWidth = 340, kHeight = 96, kFoot = 16;
constexpr std::size_t kBins = 48;
constexpr std::size_t kMarks = 200;     ///< of outliers in one picture
constexpr double kCell = 13, kGap = 2;  ///< of the rack map
constexpr double kAround =
    6;  ///< σ around the median that a histogram shows; what is further is at its edge

double placeOf(double value, double low, double high) {
  return high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) * kWidth : kWidth / 2;
}
std::string text(double x, double y, std::string_view anchor, const std::string& words) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor,
                     escapedMarkup(words));
}
std::string open(double width, double height, std::string_view what) {
  return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", width,
                     height, escapedMarkup(what));
}

/// How near to its limit, as one of six classes of colour. The worst of forty metrics is at half of
/// it by noise alone.
int heat(double share) {
  constexpr std::array kSteps{0.6, 0.7, 0.8, 0.9, 1.0};
  return static_cast<int>(std::upper_bound(kSteps.begin(), kSteps.end(), share) - kSteps.begin());
}

}  // namespace

std::string histogram(const Group& group) {
  const auto& latest = group.latest;
  const double spread =
      group.sigma > 0 ? kAround * group.sigma : std::abs(group.median) * 0.05 + 1e-9;
  const double low = std::max(latest.front().second, group.median - 2 * spread),
               high = std::min(latest.back().second, group.median + 2 * spread);
  std::array<std::size_t, kBins> bins{};
  for (const auto& [ignored, value] : latest)
    ++bins[std::min(kBins - 1,
                    static_cast<std::size_t>(placeOf(value, low, high) / kWidth * kBins))];
  const double most = static_cast<double>(*std::max_element(bins.begin(), bins.end()));
  const double base = kHeight - kFoot;
  std::string out = open(kWidth, kHeight, "distribution of " + group.metric);
  if (group.evaluated) {
    const auto shade = [&](double from, double to) {
      const double left = placeOf(from, low, high), right = placeOf(to, low, high);
      if (right > left)
        out += fmt::format(R"(<rect class="bad" x="{:.1f}" y="0" width="{:.1f}" height="{:.1f}"/>)",
                           left, right - left, base);
    };
    if (group.better != Better::Lower) shade(low, group.median - group.limit * group.sigma);
    if (group.better != Better::Higher) shade(group.median + group.limit * group.sigma, high);
  }
  for (std::size_t b = 0; b < kBins; ++b) {
    if (bins[b] == 0) continue;
    const double height =
        std::max(1.5, std::sqrt(static_cast<double>(bins[b]) / most) *
                          (base - 6));  // root scale: single nodes are seen beside thousands
    out += fmt::format(
        R"(<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)",
        static_cast<double>(b) * kWidth / kBins + 0.4, base - height, kWidth / kBins - 0.8, height);
  }
  std::size_t marks = 0;
  const auto mark = [&](const std::pair<std::string, double>& each) {
    const double bad = group.better == Better::Higher  ? group.median - each.second
                       : group.better == Better::Lower ? each.second - group.median
                                                       : std::abs(each.second - group.median);
    if (!group.evaluated || bad <= group.limit * group.sigma || ++marks > kMarks) return;
    out += fmt::format(
        R"(<circle class="out" cx="{:.1f}" cy="{:.1f}" r="3"><title>{} {}</title></circle>)",
        placeOf(each.second, low, high), base - 5, escapedMarkup(each.first),
        shortNumber(each.second));
  };
  for (const auto& each : latest) mark(each);
  const double middle = placeOf(group.median, low, high);
  out += fmt::format(R"(<line class="mid" x1="{0:.1f}" x2="{0:.1f}" y1="2" y2="{1:.1f}"/>)", middle,
                     base);
  out += fmt::format(R"(<line class="axis" x1="0" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kWidth, base,
                     base);
  out += text(0, kHeight - 4, "start", shortNumber(low)) +
         text(kWidth, kHeight - 4, "end", shortNumber(high));
  if (middle > 60 && middle < kWidth - 60)
    out += text(middle, kHeight - 4, "middle", shortNumber(group.median));
  return out + "</svg>";
}

std::string trend(const Group& group) {
  const auto& points = group.trend;
  if (points.size() < 2) return {};
  double low = points[0].low, high = points[0].high;
  for (const auto& point : points)
    low = std::min(low, point.low), high = std::max(high, point.high);
  const double room = std::max((high - low) * 0.08, std::abs(high) * 1e-4 + 1e-12);
  low -= room, high += room;
  const double base = kHeight - kFoot;
  const auto from = points.front().at, to = points.back().at;
  const auto x = [&](const history::TrendPoint& point) {
    return static_cast<double>((point.at - from).count()) /
           static_cast<double>(std::max<std::int64_t>((to - from).count(), 1)) * kWidth;
  };
  const auto y = [&](double value) { return base - (value - low) / (high - low) * (base - 4); };
  std::string band, line;
  for (const auto& point : points)
    band += fmt::format("{:.1f},{:.1f} ", x(point), y(point.high)),
        line += fmt::format("{:.1f},{:.1f} ", x(point), y(point.median));
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    band += fmt::format("{:.1f},{:.1f} ", x(*point), y(point->low));
  return open(kWidth, kHeight, "trend of " + group.metric) +
         fmt::format(R"(<polygon class="band" points="{}"/><polyline class="line" points="{}"/>)",
                     band, line) +
         fmt::format(R"(<line class="axis" x1="0" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kWidth, base,
                     base) +
         text(0, kHeight - 4, "start", toString(from).substr(0, 10)) +
         text(kWidth, kHeight - 4, "end", toString(to).substr(0, 10)) +
         text(kWidth, 10, "end", shortNumber(high - room)) +
         text(kWidth, base - 4, "end", shortNumber(low + room)) + "</svg>";
}

std::string rackMap(const history::Statistics& statistics) {
  std::map<std::string, std::vector<const history::Statistics::NodeState*>> racks;
  std::size_t tallest = 0;
  for (const auto& node : statistics.nodes) {
    auto& rack = racks[node.rack];
    rack.push_back(&node);
    tallest = std::max(tallest, rack.size());
  }
  constexpr double kLabel = 44;
  std::string out;
  // Rows of racks that fit a page.
  constexpr std::size_t kRacksInRow = 64;
  auto rack = racks.begin();
  while (rack != racks.end()) {
    const auto in_row = std::min<std::size_t>(
        kRacksInRow, static_cast<std::size_t>(std::distance(rack, racks.end())));
    const double width = static_cast<double>(std::max<std::size_t>(in_row, 24)) * (kCell + kGap),
                 height = static_cast<double>(tallest) * (kCell + kGap) + kLabel;
    out += fmt::format(
        R"(<svg class="map" style="max-width:{:.0f}px" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="racks">)",
        width * 1.4, width, height);
    for (std::size_t column = 0; column < in_row; ++column, ++rack) {
      const double x = static_cast<double>(column) * (kCell + kGap);
      for (std::size_t row = 0; row < rack->second.size(); ++row) {
        const auto& node = *rack->second[row];
        out += fmt::format(
            R"(<rect class="h{}{}" x="{:.0f}" y="{:.0f}" width="{}" height="{}" rx="2"><title>{} · {:.1f} σ{}</title></rect>)",
            heat(node.share), node.alarmed ? " al" : "", x,
            static_cast<double>(row) * (kCell + kGap), kCell, kCell, escapedMarkup(node.node),
            node.worst, node.metric.empty() ? "" : " · " + escapedMarkup(node.metric));
      }
      const double foot = static_cast<double>(rack->second.size()) * (kCell + kGap) + 4;
      out += fmt::format(R"svg(<text transform="translate({:.1f},{:.1f}) rotate(90)">{}</text>)svg",
                         x + 3, foot, escapedMarkup(rack->first));
    }
    out += "</svg>";
  }
  return out;
}

std::string matrixMap(const Matrix& matrix) {
  const std::size_t n = matrix.names.size();
  const double cell =
                   std::clamp(560.0 / static_cast<double>(std::max<std::size_t>(n, 1)), 4.0, 22.0),
               label = n <= 40 ? 70 : 0, side = label + cell * static_cast<double>(n);
  std::string out = fmt::format(
      R"(<svg class="map" style="max-width:{:.0f}px" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="rates between nodes">)",
      side, side, side);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double share = matrix.shares[i * n + j];
      const int colour = i == j || share < 0 ? -1
                         : share >= 0.985    ? 0
                         : share >= 0.97     ? 1
                         : share >= 0.95     ? 2
                         : share >= 0.9      ? 3
                         : share >= 0.5      ? 4
                                             : 5;
      out +=
          fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">)",
                      colour < 0 ? std::string("none") : fmt::format("h{}", colour),
                      label + static_cast<double>(j) * cell, label + static_cast<double>(i) * cell,
                      cell - 1, cell - 1);
      if (share >= 0)
        out += fmt::format("<title>{} – {}: {:.1f} %</title>", escapedMarkup(matrix.names[i]),
                           escapedMarkup(matrix.names[j]), 100 * share);
      out += "</rect>";
    }
  for (std::size_t i = 0; label > 0 && i < n; ++i) {
    const double middle = label + (static_cast<double>(i) + 0.5) * cell + 3;
    out += text(label - 4, middle, "end", matrix.names[i]);
    out += fmt::format(R"svg(<text transform="translate({:.1f},{:.1f}) rotate(-90)">{}</text>)svg",
                       middle, label - 4, escapedMarkup(matrix.names[i]));
  }
  return out + "</svg>";
}

}  // namespace muster::validate::report
