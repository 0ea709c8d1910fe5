// SPDX-License-Identifier: Apache-2.0
// rdma.links: what the node's InfiniBand ports count over a window. Only differences are evaluated:
// what was counted before the cable was cleaned is past.
#include "validate/checks/rdma_links.h"

#include "wire/links/counter_text.h"
#include "wire/links/transceiver.h"
#include "wire/links/verdict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <thread>

namespace muster::validate {
namespace {

using wire::CheckStatus;

constexpr double kWindowSeconds = 30,
                 kMostSeconds =
                     120;  ///< of a window that is made longer to prove the BER of a slow link
constexpr std::chrono::seconds kToolLimit{10};
const std::filesystem::path kDevices = "sys/class/infiniband";

struct LinkPort {
  std::string device, number, rate;
  links::PortReading before, after;
  std::filesystem::path folder() const { return kDevices / device / "ports" / number; }
};

links::PortReading read(const Host& host, const LinkPort& port) {
  return links::readSysfs([&](std::string_view file) -> std::optional<std::uint64_t> {
    const auto text = host.line(port.folder() / "counters" / file);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
  });
}

std::vector<LinkPort> portsOf(const Host& host) {
  std::vector<LinkPort> out;
  for (const auto& device : host.names(kDevices))
    for (const auto& number : host.names(kDevices / device / "ports")) {
      LinkPort port{device, number, {}, {}, {}};
      if (host.line(port.folder() / "link_layer") != "InfiniBand") continue;
      port.rate = links::widthSpeedOf(host.line(port.folder() / "rate"));
      out.push_back(std::move(port));
    }
  return out;
}

/// Of the transceiver, where the interface of the device (IPoIB) and ethtool are there.
std::string transceiverOf(const Host& host, const std::string& device) {
  for (const auto& interface : host.names(kDevices / device / "device/net")) {
    io::Command command;
    command.program = "ethtool";
    command.args = {"-m", interface};
    command.timeout = kToolLimit;
    const auto done = host.run(command);
    if (!done || done->code != 0) continue;
    if (const auto found = links::parseTransceiver(done->out)) return found->str();
  }
  return {};
}

double windowOf(const std::vector<LinkPort>& ports, double asked) {
  double window = asked;
  for (const auto& port : ports)
    window =
        std::max(window, std::min(links::secondsToProve(port.rate).value_or(0) + 1, kMostSeconds));
  return window;
}

}  // namespace

LinkWatch::LinkWatch(Host host, std::string device, std::function<double()> now)
    : host_(std::move(host)), device_(std::move(device)), now_(std::move(now)), began_(now_()) {
  for (const auto& port : portsOf(host_))
    if (port.device == device_) ports_.push_back({port.number, port.rate, read(host_, port)});
}

std::vector<std::string> LinkWatch::complaints() const {
  std::vector<std::string> out;
  for (const auto& seen : ports_) {
    const auto after = read(host_, {device_, seen.number, seen.rate, {}, {}});
    const auto window = now_() - began_;
    for (const auto& one :
         links::evaluateEnd(links::growth(seen.reading, after), {window, window}, seen.rate)
             .complaints)
      if (one.grade == links::Grade::Bad)
        out.push_back(fmt::format("{}/{}: {}", device_, seen.number, one.text));
  }
  return out;
}

double steadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Verdict checkRdmaLinks(const nlohmann::json& params, const Host& host) {
  return measureRdmaLinks(params, host,
                          {steadySeconds, [](double seconds) {
                             std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
                           }});
}

Verdict measureRdmaLinks(const nlohmann::json& params, const Host& host, const Stopwatch& watch) {
  auto ports = portsOf(host);
  if (ports.empty()) return noData("the kernel has no InfiniBand port");
  links::Limits limits;
  limits.min_load = params.value("min_load", 0.0);
  const auto began = watch.now();
  for (auto& port : ports) port.before = read(host, port);
  const auto first = watch.now();
  watch.wait(windowOf(ports, params.value("window_seconds", kWindowSeconds)));
  const auto second = watch.now();
  for (auto& port : ports) port.after = read(host, port);
  const links::Window window{second - first, watch.now() - began};

  Verdict verdict = pass("");
  auto worst = links::Grade::Good;
  std::vector<std::string> texts;
  for (const auto& port : ports) {
    const auto evaluated =
        links::evaluateEnd(links::growth(port.before, port.after), window, port.rate, limits);
    const auto name = fmt::format("{}/{}", port.device, port.number);
    worst = std::max(worst, evaluated.grade);
    nlohmann::json row = {{"port", name},
                          {"rate", port.rate},
                          {"grade", links::toString(evaluated.grade)},
                          {"transceiver", transceiverOf(host, port.device)}};
    for (const auto& one : evaluated.complaints) {
      if (one.grade != links::Grade::Good) texts.push_back(fmt::format("{}: {}", name, one.text));
      row["complaints"].push_back(one.text);
    }
    if (evaluated.ber)
      verdict.values[port.device + ".port" + port.number + "_ber_at_most"] = evaluated.ber->high;
    if (evaluated.load)
      verdict.values[port.device + ".port" + port.number + "_load_share"] = *evaluated.load;
    verdict.evidence.push_back(std::move(row));
  }
  if (worst == links::Grade::Bad) verdict.status = CheckStatus::Fail;
  if (worst == links::Grade::Unproven) verdict.status = CheckStatus::NoData;
  const auto summary = fmt::format("{} links in {:.1f} s", ports.size(), window.longest_seconds);
  verdict.text = texts.empty() ? summary + ": no errors, BER below 1e-12"
                               : fmt::format("{}: {}", summary, fmt::join(texts, "; "));
  return verdict;
}

}  // namespace muster::validate
