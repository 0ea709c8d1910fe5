// SPDX-License-Identifier: Apache-2.0
// system.network: asks the kernel, and compares with what the node was given.
#include "validate/checks/check_row.h"
#include "validate/checks/node_network.h"

#include <fmt/ranges.h>

namespace muster::validate {

namespace {

constexpr std::chrono::seconds kIpLimit{10};
constexpr std::size_t kMaxDeclarationBytes = 256u << 10;
constexpr const char* kDeclaration = "etc/muster/network.json";

/// Errors: those of running it, and Unavailable (its own words)
Result<std::string> ip(const Host& host, std::vector<std::string> args) {
  io::Command command{.program = "ip", .args = std::move(args)};
  command.timeout = kIpLimit;
  TRY(done, host.run(command));
  if (done.code != 0) return fail(ErrorCode::Unavailable, "ip: " + done.err);
  return done.out;
}

bool isPciAddress(const std::string& name) {
  constexpr std::string_view kExample = "0000:18:00.0";
  return name.size() == kExample.size() && name[4] == ':' && name[7] == ':' && name[10] == '.';
}

/// The PCI device that an interface is a part of, whatever is between them (virtio, auxiliary
/// devices): `ip` tells only what is next to it. Empty: none.
std::string placeOf(const Host& host, const std::string& interface) {
  std::error_code error;
  const auto device =
      std::filesystem::canonical(host.root / "sys/class/net" / interface / "device", error);
  if (error) return {};
  std::string place;
  for (const auto& part : device)
    if (isPciAddress(part.string())) place = part.string();
  return place;
}

Result<KernelNetwork> askKernel(const Host& host) {
  TRY(addresses, ip(host, {"-j", "-d", "addr", "show"}));
  TRY(routes, ip(host, {"-j", "route", "show"}));
  TRY(routes6, ip(host, {"-j", "-6", "route", "show"}));
  TRY(kernel, parseKernelNetwork(addresses, routes, routes6));
  for (auto& [name, link] : kernel.links)
    if (const auto place = placeOf(host, name); !place.empty()) link.pci = place;
  return kernel;
}

}  // namespace

Verdict checkSystemNetwork(const nlohmann::json&, const Host& host) {
  const auto text = host.text(kDeclaration);
  if (text.empty())
    return noData(
        "the node was given no network: it was imaged before its profile declared one; image it "
        "again");
  if (text.size() > kMaxDeclarationBytes)
    return checkError("/etc/muster/network.json is too large");
  const auto declared = wire::parseNodeNetwork(text);
  if (!declared) return checkError("/etc/muster/network.json: " + declared.error().str());
  const auto kernel = askKernel(host);
  if (!kernel) return noData(kernel.error().str());
  const auto wrong = networkProblems(*declared, *kernel);
  auto verdict = wrong.empty()
                     ? pass(fmt::format("{} links with addresses, routes and MTU as declared",
                                        declared->links.size()))
                     : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.evidence = {{"problems", wrong}, {"given", wire::digestOf(*declared)}};
  return verdict;
}

}  // namespace muster::validate
