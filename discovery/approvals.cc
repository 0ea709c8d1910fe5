// SPDX-License-Identifier: Apache-2.0
#include "discovery/approvals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace muster::discovery {
namespace {

constexpr std::size_t kFingerprintDigits = 64;

/// With or without ':', in either case.
Result<std::string> fingerprintOf(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ':');
  std::transform(digits.begin(), digits.end(), digits.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool hex = std::all_of(digits.begin(), digits.end(),
                               [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hex || digits.size() != kFingerprintDigits)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is no SHA-256 fingerprint: it needs 64 hex digits", printable(text)));
  return digits;
}

std::string hostOf(const std::string& bmc) {
  const auto scheme = bmc.find("//");
  return scheme == std::string::npos ? bmc : bmc.substr(scheme + 2);
}

}  // namespace

Result<ApprovedCertificates> ApprovedCertificates::parse(std::string_view text,
                                                         const std::string& file) {
  ApprovedCertificates out;
  std::istringstream lines{std::string(text)};
  std::string line, problems;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream in(line.substr(0, line.find('#')));
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (words.empty()) continue;
    const auto fingerprint = fingerprintOf(words.back());
    if (!fingerprint || words.size() > 2) {
      problems +=
          fmt::format("\n{}:{}: {}", file, number,
                      fingerprint ? "a line is ADDRESS FINGERPRINT, or FINGERPRINT alone"
                                  : "its last word is no SHA-256 fingerprint, which has 64 hex "
                                    "digits");
      continue;
    }
    (words.size() == 1 ? out.for_any_ : out.for_address_[hostOf(words.front())])
        .insert(*fingerprint);
  }
  if (!problems.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is not as it should be; nothing was asked:{}", file, problems));
  return out;
}

Result<void> ApprovedCertificates::add(std::string_view fingerprint) {
  TRY(digits, fingerprintOf(fingerprint));
  for_any_.insert(std::move(digits));
  return {};
}

bool ApprovedCertificates::covers(const Contact& contact) const {
  if (contact.certificate.empty()) return false;
  const auto here = for_address_.find(hostOf(contact.bmc));
  return for_any_.contains(contact.certificate) ||
         (here != for_address_.end() && here->second.contains(contact.certificate));
}

std::string contactsText(const std::vector<Contact>& contacts) {
  std::string out;
  for (const auto& one : contacts)
    out += fmt::format("{} {}  # {}{}{}\n", hostOf(one.bmc), one.certificate, one.vendor,
                       one.product.empty() ? "" : " ", one.product);
  return out;
}

}  // namespace muster::discovery
