// SPDX-License-Identifier: Apache-2.0
// The report for programs: JSON, JUnit; and the picture of an isolation from its evidence.
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/markup.h"
#include "inventory/model/node.h"
#include "validate/report/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace muster::validate::report {
namespace {

using history::Alarm;
using history::AlarmKind;
using nlohmann::json;

constexpr std::size_t kMostNames =
    64;  ///< of a matrix; more nodes are gathered in blocks of neighbours

std::string nodeOf(const Alarm& alarm) { return alarm.subject.substr(0, alarm.subject.find('@')); }
std::string_view word(history::Better better) {
  return better == history::Better::Higher  ? "higher"
         : better == history::Better::Lower ? "lower"
                                            : "unknown";
}

/// The median of all numbers of a triangle; 0: none.
double middleOf(const json& rows) {
  std::vector<double> rates;
  for (const auto& row : rows)
    for (const auto& rate : row)
      if (rate.is_number()) rates.push_back(rate.get<double>());
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

}  // namespace

Result<Matrix> matrixOf(std::string_view isolation_json) {
  const auto document = jsonOrNone(isolation_json, kKeptJson);
  if (!document.is_object() || !document.contains("rounds_run"))
    return fail(ErrorCode::Corrupt, "this is not the evidence of an isolation");
  try {
    const double typical = document.at("typical_gbits").get<double>();
    std::map<std::string, std::size_t> place;
    for (const auto& round : document.at("rounds_run")) {
      for (const auto& test : round.at("tests"))
        place.emplace(test.at("a").get<std::string>(), 0),
            place.emplace(test.at("b").get<std::string>(), 0);
      for (const auto& group : round.value("groups", json::array()))
        for (const auto& member : group.at("members")) place.emplace(member.get<std::string>(), 0);
    }
    Matrix out;
    const std::size_t block =
        std::max<std::size_t>((place.size() + kMostNames - 1) / kMostNames, 1);
    std::size_t next = 0;
    for (auto& [name, at] : place) {
      at = next++ / block;
      if (at == out.names.size())
        out.names.push_back(name);
      else if (!out.names[at].ends_with("…"))
        out.names[at] += "…";
    }
    const std::size_t n = out.names.size();
    out.shares.assign(n * n, -1);
    const auto note = [&](std::size_t i, std::size_t j, const json& gbits, double of) {
      if (!gbits.is_number() || of <= 0) return;
      const double share = gbits.get<double>() / of;
      for (auto* cell : {&out.shares[i * n + j], &out.shares[j * n + i]})
        *cell = *cell < 0 ? share : std::min(*cell, share);
    };
    for (const auto& round : document.at("rounds_run")) {
      for (const auto& test : round.at("tests"))
        note(place.at(test.at("a").get<std::string>()), place.at(test.at("b").get<std::string>()),
             test.at("gbits"), typical);
      for (const auto& group : round.value("groups", json::array()))
        for (const auto& rail : group.value(
                 "pairs_gbits",
                 json::array())) {  // while many ways are loaded: shares of their own middle
          const double middle = middleOf(rail);
          for (std::size_t i = 0; i < rail.size(); ++i)
            for (std::size_t k = 0; k < rail[i].size(); ++k)
              note(place.at(group.at("members").at(i).get<std::string>()),
                   place.at(group.at("members").at(i + 1 + k).get<std::string>()), rail[i][k],
                   middle);
        }
    }
    out.title = fmt::format(
        "The least that tests between two {} reached in the newest isolation, as a share of the "
        "typical {} Gb/s; grey was not tested.",
        block > 1 ? "groups of nodes" : "nodes", shortNumber(typical));
    return out;
  } catch (const json::exception& error) {
    return fail(ErrorCode::Corrupt,
                std::string("the evidence of the isolation is damaged: ") + error.what());
  }
}

std::string toJson(const history::Statistics& statistics, const Subject& subject) {
  json alarms = json::array(), groups = json::array(), nodes = json::array();
  for (const auto& alarm : statistics.alarms)
    alarms.push_back({{"kind", toString(alarm.kind)},
                      {"sku", alarm.sku},
                      {"metric", alarm.metric},
                      {"subject", alarm.subject},
                      {"value", alarm.value},
                      {"typical", alarm.typical},
                      {"sigmas", alarm.sigmas},
                      {"limit", alarm.limit},
                      {"members", alarm.members},
                      {"text", sentence(alarm)}});
  for (const auto& group : statistics.groups)
    groups.push_back({{"sku", group.sku},
                      {"metric", group.metric},
                      {"better", word(group.better)},
                      {"judged", group.evaluated},
                      {"values", group.latest.size()},
                      {"median", group.median},
                      {"sigma", group.sigma},
                      {"limit_sigmas", group.limit}});
  for (const auto& node : statistics.nodes)
    nodes.push_back({{"node", node.node},
                     {"rack", node.rack},
                     {"sku", node.sku},
                     {"worst_sigmas", node.worst},
                     {"metric", node.metric},
                     {"compared", node.compared},
                     {"alarmed", node.alarmed}});
  return jsonText(json{{"cluster", subject.cluster},
                       {"at", toString(subject.at)},
                       {"sets", statistics.sets},
                       {"numbers", statistics.numbers},
                       {"comparisons", statistics.comparisons},
                       {"not_evaluated", statistics.not_evaluated},
                       {"from_future", statistics.from_future},
                       {"not_said", leftOutText(statistics)},
                       {"false_alarms_expected", statistics.policy.false_alarms},
                       {"expected_values", subject.expected},
                       {"alarms", alarms},
                       {"groups", groups},
                       {"nodes", nodes}},
                  1) +
         "\n";
}

std::string toJunit(const history::Statistics& statistics, const Subject& subject) {
  std::map<std::string, std::vector<const Alarm*>> of_node;
  std::vector<const Alarm*> of_others;
  for (const auto& alarm : statistics.alarms) {
    const bool of_one = alarm.kind == AlarmKind::Node || alarm.kind == AlarmKind::Drift ||
                        alarm.kind == AlarmKind::Bits || alarm.kind == AlarmKind::Intermittent;
    (of_one ? of_node[nodeOf(alarm)] : of_others).push_back(&alarm);
    if (alarm.kind == AlarmKind::Populations)
      for (const auto& node : alarm.members) of_node[node].push_back(&alarm);
  }
  std::string cases;
  std::size_t skipped = 0, failed = 0;
  const auto failure =
      [](const std::vector<const Alarm*>& alarms) {  // one a case: readers take no more
        std::string words;
        for (const auto* alarm : alarms) words += (words.empty() ? "" : "; ") + sentence(*alarm);
        return fmt::format("<failure type=\"{}\" message=\"{}\"/>", toString(alarms.front()->kind),
                           escapedMarkup(words));
      };
  for (const auto& node : statistics.nodes) {
    cases += fmt::format("  <testcase classname=\"{}\" name=\"{}\">", escapedMarkup(node.sku),
                         escapedMarkup(node.node));
    if (const auto found = of_node.find(node.node); found != of_node.end()) {
      ++failed;
      cases += failure(found->second);
    } else if (!node.compared) {
      ++skipped;
      cases +=
          "<skipped message=\"none of its values was compared: too few nodes of this SKU, or no "
          "numbers\"/>";
    }
    cases += "</testcase>\n";
  }
  for (const auto* alarm : of_others) {
    ++failed;
    cases +=
        fmt::format("  <testcase classname=\"{}\" name=\"{} {} {}\">{}</testcase>\n",
                    escapedMarkup(alarm->sku), toString(alarm->kind), escapedMarkup(alarm->subject),
                    escapedMarkup(alarm->metric), failure({alarm}));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"muster validation of {}\" "
      "tests=\"{}\" failures=\"{}\" skipped=\"{}\" timestamp=\"{}\">\n{}</testsuite>\n",
      escapedMarkup(subject.cluster), statistics.nodes.size() + of_others.size(), failed, skipped,
      toString(subject.at), cases);
}

}  // namespace muster::validate::report
