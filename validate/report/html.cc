// SPDX-License-Identifier: Apache-2.0
#include "validate/report/plots.h"

#include "base/markup.h"
#include "inventory/model/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace muster::validate::report {
namespace {

using history::Alarm;
using history::AlarmKind;

constexpr std::size_t kMaxAlarms = 500;

constexpr std::string_view kStyle = R"css(
:root{--bg:#f6f7f9;--card:#fff;--ink:#1a2330;--soft:#5d6b7d;--line:#e3e7ed;--accent:#2f6fde;--band:#2f6fde22;--good:#1f9d61;--bad:#d13b3b;--badbg:#d13b3b14;
--h0:#d9e8dd;--h1:#c3dfca;--h2:#f3e3a6;--h3:#f2bf6b;--h4:#e9853f;--h5:#c8322f}
@media(prefers-color-scheme:dark){:root{--bg:#10151c;--card:#19212b;--ink:#e6ebf2;--soft:#93a1b3;--line:#2a3543;--accent:#6ea3ff;--band:#6ea3ff2b;--good:#4ccb8b;--bad:#ff6b66;--badbg:#ff6b6620;
--h0:#22382c;--h1:#2b4a37;--h2:#6a6126;--h3:#8f6320;--h4:#b25524;--h5:#d8403b}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:1160px;margin:0 auto;padding:36px 24px 80px}h1{font-size:27px;letter-spacing:-.02em;margin:0}h2{font-size:18px;margin:44px 0 4px;letter-spacing:-.01em}
p.lead,.note{color:var(--soft);margin:4px 0 16px;max-width:78ch}.note{font-size:13.5px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:24px 0 0}.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{padding:14px 16px}.tile b{display:block;font-size:25px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.02em}.tile span{color:var(--soft);font-size:13px}
.tile.ok b{color:var(--good)}.tile.no b{color:var(--bad)}.card{padding:16px 18px}.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:14px}
.card h3{margin:0;font-size:14px;font-weight:600;overflow-wrap:anywhere}.card .sub{color:var(--soft);font-size:12.5px;margin:1px 0 8px;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;width:100%;font-size:14px}th{font-weight:500;color:var(--soft);text-align:left;font-size:12.5px}td,th{padding:7px 10px;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}th.n{text-align:right}.kind{display:inline-block;border-radius:99px;padding:0 9px;font-size:12px;background:var(--badbg);color:var(--bad);white-space:nowrap}
svg{display:block;width:100%;height:auto;overflow:visible}svg text{font-size:10px;fill:var(--soft)}svg.map{margin-top:10px}.metric svg+svg{margin-top:12px}
.bar{fill:var(--accent);opacity:.75}.bad{fill:var(--badbg)}.out{fill:var(--bad)}.mid{stroke:var(--ink);stroke-width:1;stroke-dasharray:2 3;opacity:.55}.axis{stroke:var(--line)}.band{fill:var(--band)}.line{fill:none;stroke:var(--accent);stroke-width:1.6}
.h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}.h5{fill:var(--h5)}.none{fill:var(--line);opacity:.55}.al{stroke:var(--bad);stroke-width:2}
.legend{display:flex;gap:14px;flex-wrap:wrap;font-size:12.5px;color:var(--soft);margin-top:12px}.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:5px;vertical-align:-1px}
input{font:inherit;width:100%;max-width:340px;padding:7px 12px;border:1px solid var(--line);border-radius:9px;background:var(--card);color:var(--ink);margin:4px 0 14px}
footer{margin-top:48px;color:var(--soft);font-size:13px;border-top:1px solid var(--line);padding-top:16px}
@media print{body{background:#fff}.card,.tile{break-inside:avoid}input{display:none}}
)css";

// Only the search box needs it; without scripts everything is there.
constexpr std::string_view kScript =
    R"js(document.querySelectorAll('input[data-for]').forEach(i=>i.addEventListener('input',()=>{const q=i.value.toLowerCase();document.querySelectorAll(i.dataset.for).forEach(e=>e.style.display=e.textContent.toLowerCase().includes(q)?'':'none')}))js";

std::string tile(std::string_view kind, const std::string& number, std::string_view words) {
  return fmt::format(R"(<div class="tile {}"><b>{}</b><span>{}</span></div>)", kind, number, words);
}

std::string grouped(std::size_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string head(const history::Statistics& statistics, const Subject& subject) {
  std::size_t alarmed = 0;
  for (const auto& node : statistics.nodes) alarmed += node.alarmed;
  std::string out =
      fmt::format("<h1>Validation of {}</h1><p class=\"lead\">", escapedMarkup(subject.cluster));
  if (statistics.sets == 0)
    out += "Nothing has been measured yet.";
  else
    out += fmt::format("What was measured from {} to {}, as of {} UTC.",
                       toString(statistics.from).substr(0, 10),
                       toString(statistics.to).substr(0, 10), toString(subject.at).substr(0, 16));
  out += "</p><div class=\"tiles\">";
  out += tile("", grouped(statistics.nodes.size()), "nodes");
  out += tile("", grouped(statistics.numbers), "measurements");
  out += tile(alarmed ? "no" : "ok", grouped(alarmed), "nodes unlike their peers");
  out += tile(statistics.alarms.empty() ? "ok" : "no", grouped(statistics.alarms.size()),
              "alarms in all");
  out += tile("", shortNumber(statistics.policy.false_alarms), "false alarms to be expected");
  return out + "</div>";
}

std::string alarms(const history::Statistics& statistics) {
  std::string out = "<h2>Alarms</h2>";
  out += fmt::format(
      "<p class=\"note\">Out of {} comparisons at most about {} false alarms are to be expected. A "
      "value counts when it is further from the median of its SKU than noise would put it within "
      "that budget – how heavy its tails are is seen on the good sides, where nothing is wrong – "
      "and by at least {:.1f} %.</p>",
      grouped(statistics.comparisons), shortNumber(statistics.policy.false_alarms),
      100 * statistics.policy.least_effect);
  if (const auto left_out = leftOutText(statistics); !left_out.empty())
    out += "<p class=\"note\">" + escapedMarkup(left_out) + "</p>";
  if (statistics.alarms.empty())
    return out + fmt::format("<div class=\"card\">{}</div>",
                             statistics.comparisons == 0
                                 ? "Nothing was evaluated: there is too little to compare."
                                 : "None: everything that was evaluated is like its peers.");
  out +=
      "<input type=\"search\" data-for=\"#alarms tbody tr\" placeholder=\"Filter by node, rack or "
      "metric\" aria-label=\"Filter alarms\">";
  out +=
      "<div class=\"card\"><table "
      "id=\"alarms\"><thead><tr><th>what</th><th>subject</th><th>metric</th><th "
      "class=\"n\">value</th><th class=\"n\">typical</th><th class=\"n\">change</th><th "
      "class=\"n\">σ (limit)</th></tr></thead><tbody>";
  for (std::size_t i = 0; i < std::min(kMaxAlarms, statistics.alarms.size()); ++i) {
    const Alarm& alarm = statistics.alarms[i];
    if (alarm.kind == AlarmKind::Bits) {
      out += fmt::format(
          "<tr><td><span class=\"kind\">{}</span></td><td>{}</td><td>{}</td><td "
          "class=\"n\">{:012x}</td><td class=\"n\">{:012x}</td><td class=\"n\" colspan=\"2\">{} "
          "others agree</td></tr>",
          toString(alarm.kind), escapedMarkup(alarm.subject), escapedMarkup(alarm.metric),
          static_cast<std::uint64_t>(alarm.value), static_cast<std::uint64_t>(alarm.typical),
          alarm.others);
      continue;
    }
    out += fmt::format(
        "<tr><td><span class=\"kind\">{}</span></td><td>{}</td><td>{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:+.1f} %</td><td "
        "class=\"n\">{:.1f} ({:.1f})</td></tr>",
        toString(alarm.kind), escapedMarkup(alarm.subject), escapedMarkup(alarm.metric),
        shortNumber(alarm.value), shortNumber(alarm.typical), 100 * alarm.change(), alarm.sigmas,
        alarm.limit);
  }
  out += "</tbody></table></div>";
  if (statistics.alarms.size() > kMaxAlarms)
    out += fmt::format("<p class=\"note\">{} more are in the JSON report.</p>",
                       statistics.alarms.size() - kMaxAlarms);
  return out;
}

std::string legend(std::initializer_list<std::string_view> words) {
  std::string out = "<div class=\"legend\">";
  int colour = 0;
  for (const auto word : words)
    out += fmt::format("<span><i style=\"background:var(--h{})\"></i>{}</span>", colour++, word);
  return out + "</div>";
}

/// Whose word a pass was: a vendor's or a public table's, or the fleet's own.
std::string expected(const Subject& subject) {
  if (subject.expected.empty()) return {};
  std::string out =
      "<h2>Expected values of the gates</h2><div "
      "class=\"card\"><table><thead><tr><th>SKU</th><th>from</th></tr></thead><tbody>";
  for (const auto& [sku, from] : subject.expected)
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>", escapedMarkup(sku), escapedMarkup(from));
  return out + "</tbody></table></div>";
}

std::string racks(const history::Statistics& statistics) {
  if (statistics.nodes.empty()) return {};
  return "<h2>Racks</h2><p class=\"note\">A cell is a node, a column a rack. The colour is how "
         "near the node's worst metric is to the limit that makes it an alarm; a red frame is "
         "one.</p><div class=\"card\">" +
         rackMap(statistics) +
         legend({"below 60 % of the limit", "70 %", "80 %", "90 %", "100 %", "beyond"}) + "</div>";
}

std::string matrix(const Subject& subject) {
  if (!subject.matrix || subject.matrix->names.empty()) return {};
  return fmt::format(
      "<h2>Between nodes</h2><p class=\"note\">{}</p><div class=\"card\">{}{}</div>",
      escapedMarkup(subject.matrix->title), matrixMap(*subject.matrix),
      legend({"98.5 % and more", "97 %", "95 %", "90 %", "50 %", "less, or nothing"}));
}

std::string metrics(const history::Statistics& statistics) {
  if (statistics.groups.empty()) return {};
  std::string out =
      "<h2>Distributions and trends</h2><p class=\"note\">The newest value of every node, on a "
      "root scale so that single nodes are seen beside thousands; shaded is what counts as an "
      "alarm. Below, the "
      "median over time within 10 % to 90 % of the fleet.</p><input type=\"search\" "
      "data-for=\".metric\" placeholder=\"Filter by metric or SKU\" aria-label=\"Filter "
      "metrics\"><div class=\"grid\">";
  for (const auto& group : statistics.groups) {
    const auto spread = group.median != 0 ? fmt::format(", σ\u00a0{:.2f}\u00a0%",
                                                        100 * group.sigma / std::abs(group.median))
                                          : std::string();
    out += fmt::format(
        "<div class=\"card metric\"><h3>{}</h3><div class=\"sub\">{} · {} values · median "
        "{}{}{}</div>{}{}</div>",
        escapedMarkup(group.metric), escapedMarkup(group.sku), grouped(group.latest.size()),
        shortNumber(group.median), spread, group.evaluated ? "" : " · too few to evaluate",
        histogram(group), trend(group));
  }
  return out + "</div>";
}

}  // namespace

std::string toHtml(const history::Statistics& statistics, const Subject& subject) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>Validation of " +
      escapedMarkup(subject.cluster) + "</title><style>" + std::string(kStyle) +
      "</style></head><body><main>";
  out += head(statistics, subject) + alarms(statistics) + racks(statistics) + matrix(subject) +
         expected(subject) + metrics(statistics);
  out += fmt::format(
      "<footer>muster, {} sets of measurements. Scales are robust (median and median absolute "
      "deviation); limits are shared among all comparisons.</footer>",
      grouped(statistics.sets));
  return out + "</main><script>" + std::string(kScript) + "</script></body></html>\n";
}

}  // namespace muster::validate::report
