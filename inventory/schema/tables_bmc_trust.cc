// SPDX-License-Identifier: Apache-2.0
// How the keys are read that say how a BMC proves who it is: bmc_pin, bmc_ca, bmc_ssh_key of nodes
// and profiles.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

namespace muster::inventory {
namespace {

constexpr std::size_t kMaxCaBytes = 1u << 20;

void refuseBoth(const BmcTrust& trust, const Value& value, Reader& reader) {
  if (!trust.pin.empty() && !trust.ca_file.empty())
    reader.error(value, "both bmc_pin and bmc_ca are given",
                 "keep one: bmc_pin says which certificate it is, bmc_ca who must have signed it");
}

}  // namespace

void readBmcPin(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader) {
  auto read = readText(value, shape, reader);
  if (!read) return;
  std::erase(*read, ':');
  std::transform(read->begin(), read->end(), read->begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  trust.pin = std::move(*read);
  refuseBoth(trust, value, reader);
}

void readBmcCa(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader) {
  readInto(trust.ca_file, value, shape, reader);
  if (trust.ca_file.empty()) return;
  refuseBoth(trust, value, reader);
  const auto complain = [&](std::string_view what, std::string_view advice) {
    reader.error(value, fmt::format("the CA file {} {}", trust.ca_file.string(), what),
                 std::string(advice));
  };
  auto pem = io::readFile(trust.ca_file, kMaxCaBytes);
  if (!pem)
    return complain(
        "cannot be read",
        "name a PEM file with the root certificate; the path starts at the inventory's folder");
  const auto described = io::describeCertificate(*pem);
  if (!described)
    return complain("holds no certificate in PEM form",
                    "it begins with -----BEGIN CERTIFICATE-----");
  if (described->not_after < SystemClock().now())
    reader.warning(
        value,
        fmt::format("the certificate in {} has expired, so no BMC's certificate leads to it",
                    trust.ca_file.string()),
        "write the CA's present certificate into it");
  trust.ca_pem = std::move(*pem);
}

void readBmcSshKey(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader) {
  auto read = readText(value, shape, reader);
  if (!read) return;
  const auto base64 = read->find(' ');
  trust.ssh_key = read->substr(0, read->find(' ', base64 + 1));  // without a comment
}

}  // namespace muster::inventory
