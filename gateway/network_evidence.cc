// SPDX-License-Identifier: Apache-2.0
#include "gateway/network_evidence.h"

#include "base/ip_address.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace muster::gateway {

namespace {

constexpr std::size_t kMaxLines = 200'000;
constexpr unsigned long kCompleteEntry =
    0x2;  ///< ATF_COM: the kernel has an answer, not only a question

/// Calls `take` with each line, until it answers true.
template <class Take>
Result<void> eachLine(const std::filesystem::path& file, bool may_be_missing, Take take) {
  std::ifstream in(file);
  if (!in) {
    const int error = errno;
    if (may_be_missing && error == ENOENT) return {};
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot read {}: {}", file.string(), std::strerror(error)));
  }
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) {
    if (++lines > kMaxLines)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} has more than {} lines", file.string(), kMaxLines));
    if (take(line)) return {};
  }
  return {};
}

class KernelAndDnsmasq final : public NetworkEvidence {
 public:
  KernelAndDnsmasq(std::filesystem::path lease_file, std::filesystem::path neighbour_table)
      : lease_file_(std::move(lease_file)), neighbour_table_(std::move(neighbour_table)) {}

  /// A line is: expiry MAC address name client-id.
  Result<std::optional<DhcpLease>> leaseOf(const Mac& mac) const override {
    std::optional<DhcpLease> found;
    TRY_OK(eachLine(lease_file_, true, [&](const std::string& line) {
      std::istringstream words(line);
      std::string expires, hardware, address;
      words >> expires >> hardware >> address;
      const auto of = Mac::parse(hardware);
      const auto at = Ipv4::parse(address);
      if (of && *of == mac && at) found = DhcpLease{*at, expires};
      return found.has_value();
    }));
    return found;
  }

  /// A line is: address type flags MAC mask device. An address may stand there for several devices.
  Result<NeighbourMatch> neighbour(Ipv4 address, const Mac& mac) const override {
    auto match = NeighbourMatch::Absent;
    TRY_OK(eachLine(neighbour_table_, false, [&](const std::string& line) {
      std::istringstream words(line);
      std::string at, type, flags, hardware;
      words >> at >> type >> flags >> hardware;
      if (at != address.str() || (std::strtoul(flags.c_str(), nullptr, 16) & kCompleteEntry) == 0)
        return false;
      const auto shown = Mac::parse(hardware);
      match = shown && *shown == mac ? NeighbourMatch::Same : NeighbourMatch::Other;
      return match == NeighbourMatch::Same;
    }));
    return match;
  }

 private:
  std::filesystem::path lease_file_, neighbour_table_;
};

}  // namespace

std::unique_ptr<NetworkEvidence> makeNetworkEvidence(std::filesystem::path lease_file,
                                                     std::filesystem::path neighbour_table) {
  return std::make_unique<KernelAndDnsmasq>(std::move(lease_file), std::move(neighbour_table));
}

}  // namespace muster::gateway
