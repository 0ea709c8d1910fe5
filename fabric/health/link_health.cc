// SPDX-License-Identifier: Apache-2.0
#include "fabric/health/link_health.h"

#include "fabric/discovery/tools.h"
#include "inventory/parse/csv.h"

#include <algorithm>
#include <charconv>

namespace muster::fabric {

namespace {

using links::Grade;

constexpr std::size_t kCablesOfADevice =
    3;  ///< so many bad ones of one device are hardly the cables' fault

/// ibqueryerrors names an HCA by its node GUID where it lists data, and by the port's GUID where it
/// lists errors.
links::PortReading readingOf(const links::ReadingsByGuid& readings, const Topology& topology,
                             const Port& port) {
  const auto device = topology.devices.find(port.node);
  if (device == topology.devices.end()) return {};
  const auto at = readings.find({device->second.guid, port.number});
  auto out = at == readings.end() ? links::PortReading{} : at->second;
  const auto address = device->second.addresses.find(port.number);
  if (device->second.is_switch || address == device->second.addresses.end() ||
      address->second.guid == device->second.guid)
    return out;
  if (const auto by_port = readings.find({address->second.guid, port.number});
      by_port != readings.end())
    for (const auto& row : links::counterRows())
      if (const auto& value = by_port->second[row.counter]) out[row.counter] = value;
  return out;
}

/// Bad cables that have a device in common, where that is most of the device's cables.
std::vector<std::string> hintsOf(const std::vector<LinkVerdict>& links) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> by_device;  // bad, all
  for (const auto& one : links)
    for (const auto* end : {&one.link.a, &one.link.b}) {
      auto& [bad, all] = by_device[end->node];
      ++all;
      if (one.grade == Grade::Bad) ++bad;
    }
  std::vector<std::string> out;
  for (const auto& [device, counts] : by_device)
    if (counts.first >= kCablesOfADevice && 2 * counts.first > counts.second)
      out.push_back(fmt::format(
          "{} of the {} cables of {} are bad: inspect the device itself before the cables",
          counts.first, counts.second, device));
  return out;
}

double seconds(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

Async<FabricReading> readCounters(Tools& tools, Clock& clock) {
  FabricReading out;
  out.began = seconds(clock.steady());
  CO_TRY(ports, co_await tools.counters());
  out.ports = std::move(ports);
  out.ended = seconds(clock.steady());
  co_return std::move(out);
}

/// The discovery is outside the readings' clock: it does not count as window.
Async<LinkHealthReport> measure(Tools& tools, Clock& clock, std::chrono::milliseconds window,
                                links::Limits limits, Transceivers transceivers) {
  CO_TRY(before, co_await tools.discover());
  CO_TRY(first, co_await readCounters(tools, clock));
  co_await clock.sleep(window);
  CO_TRY(second, co_await readCounters(tools, clock));
  CO_TRY(after, co_await tools.discover());
  co_return evaluateLinks(before, after, first, second, limits, transceivers);
}

}  // namespace

std::vector<std::string> LinkVerdict::texts(Grade at_least) const {
  std::vector<std::pair<Grade, std::string>> all;
  for (const auto& end : ends)
    for (const auto& one : end.verdict.complaints)
      if (one.grade >= at_least)
        all.emplace_back(one.grade, fmt::format("{}: {}", toString(end.port), one.text));
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (auto& [ignored, text] : all) out.push_back(std::move(text));
  return out;
}

std::string LinkVerdict::advice() const {
  const links::Complaint* worst = nullptr;
  for (const auto& end : ends)
    for (const auto& one : end.verdict.complaints)
      if (one.grade != Grade::Good && (!worst || one.grade > worst->grade)) worst = &one;
  return worst ? std::string(links::adviceFor(worst->kind)) : std::string();
}

std::size_t LinkHealthReport::count(Grade grade) const {
  return static_cast<std::size_t>(std::count_if(
      links.begin(), links.end(), [grade](const auto& one) { return one.grade == grade; }));
}

int LinkHealthReport::exitCode() const {
  if (!error.empty()) return kNoAnswer;
  if (count(Grade::Bad)) return kBad;
  return links.empty() || count(Grade::Unproven) ? kNoAnswer : kGood;
}

Result<Transceivers> parseTransceivers(std::string_view csv) {
  Diagnostics diagnostics;
  const auto table = inventory::parseCsv(csv, "transceivers", diagnostics);
  if (!diagnostics.all().empty())
    return fail(ErrorCode::InvalidInput, diagnostics.all().front().text);
  const auto column = [&](std::string_view name) {
    const auto at = std::find_if(table.header.begin(), table.header.end(),
                                 [name](const auto& cell) { return cell.text == name; });
    return at == table.header.end() ? std::optional<std::size_t>()
                                    : static_cast<std::size_t>(at - table.header.begin());
  };
  const auto device = column("device"), port = column("port"), serial = column("serial");
  if (!device || !port || !serial)
    return fail(ErrorCode::InvalidInput, "transceivers need the columns device, port and serial");
  Transceivers out;
  for (const auto& row : table.rows) {
    links::Transceiver one;
    one.serial = row.cells[*serial].text;
    if (const auto at = column("vendor")) one.vendor = row.cells[*at].text;
    if (const auto at = column("part")) one.part = row.cells[*at].text;
    Port place{row.cells[*device].text, 0};
    const auto& digits = row.cells[*port].text;
    const auto [end, bad] =
        std::from_chars(digits.data(), digits.data() + digits.size(), place.number);
    if (bad != std::errc() || end != digits.data() + digits.size() || place.node.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("line {}: '{}' port '{}' is no port", row.line, place.node, digits));
    out[std::move(place)] = one.str();
  }
  return out;
}

LinkHealthReport evaluateLinks(const Topology& before, const Topology& after,
                               const FabricReading& first, const FabricReading& second,
                               const links::Limits& limits, const Transceivers& transceivers) {
  LinkHealthReport report;
  report.window = {second.began - first.ended, second.ended - first.began};
  bool has_moved = before.links.empty();
  for (const auto& link : before.links) {
    LinkVerdict one{link, Grade::Good, {}, {}};
    const bool gone = !std::binary_search(after.links.begin(), after.links.end(), link);
    for (const auto& port : {link.a, link.b}) {
      const auto grown = links::growth(readingOf(first.ports, before, port),
                                       readingOf(second.ports, before, port));
      has_moved = has_moved || !grown.isNone();
      auto verdict = links::evaluateEnd(grown, report.window, link.width_speed, limits);
      if (gone)
        verdict.complaints.insert(
            verdict.complaints.begin(),
            {Grade::Bad, "gone", fmt::format("the link ({}) has disappeared", link.width_speed)});
      if (gone) verdict.grade = Grade::Bad;
      one.grade = std::max(one.grade, verdict.grade);
      one.ends.push_back({port, std::move(verdict)});
      if (const auto at = transceivers.find(port);
          at != transceivers.end() && one.transceiver.empty())
        one.transceiver = at->second;
    }
    report.links.push_back(std::move(one));
  }
  if (!has_moved && !report.count(Grade::Bad))
    report.error =
        "no counter of any port moved, though a reading itself sends packets: the two are one "
        "reading, or their counters are full; read again after the window (perfquery with -x)";
  report.hints = hintsOf(report.links);
  std::stable_sort(report.links.begin(), report.links.end(),
                   [](const auto& a, const auto& b) { return a.grade > b.grade; });
  return report;
}

links::ReadingsByGuid byGuid(const links::ReadingsByLid& readings, const Topology& topology) {
  std::map<std::pair<int, int>, std::string>
      guids;  // LID, port → node GUID; a switch has one LID for all of its ports
  for (const auto& [name, device] : topology.devices)
    for (const auto& [number, address] : device.addresses)
      for (int port = device.is_switch ? 1 : number;
           port <= (device.is_switch ? device.ports : number); ++port)
        guids[{address.lid, port}] = device.guid;
  links::ReadingsByGuid out;
  for (const auto& [port, reading] : readings)
    if (const auto guid = guids.find(port); guid != guids.end())
      out[{guid->second, port.second}] = reading;
  return out;
}

Result<links::ReadingsByGuid> parseReadings(std::string_view text, const Topology& topology) {
  constexpr std::string_view kPerfquery = "# Port ", kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find(kPerfquery) == std::string_view::npos) return links::parseQueryErrors(text, text);
  TRY(readings, links::parsePerfquery(text));
  auto out = byGuid(readings, topology);
  if (out.empty())
    return fail(
        ErrorCode::Corrupt,
        "none of the LIDs in it is in the topology; was the subnet manager restarted in between?");
  return out;
}

Async<LinkHealthReport> linkHealth(io::ProcessRunner& processes, Clock& clock,
                                   FabricOptions options, std::chrono::milliseconds window,
                                   links::Limits limits, Transceivers transceivers) {
  options.run_folder = std::filesystem::absolute(options.run_folder);
  Tools tools(processes, options);
  auto done = co_await measure(tools, clock, window, limits, std::move(transceivers));
  if (done) co_return std::move(*done);
  LinkHealthReport report;
  report.error = done.error().str();
  co_return std::move(report);
}

}  // namespace muster::fabric
