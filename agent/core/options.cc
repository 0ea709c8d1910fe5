// SPDX-License-Identifier: Apache-2.0
#include "agent/core/options.h"

#include "base/ids.h"
#include "wire/controllers.h"
#include "wire/json_reader.h"

#include <algorithm>
#include <sstream>

namespace muster::agent {
namespace {

constexpr std::size_t kFingerprintDigits = 64;
constexpr std::size_t kMaxPathBytes = 4096;

Result<void> readControllers(const std::string& text, AgentOptions& options) {
  TRY(urls, wire::parseControllers(text));
  options.url = urls.front();
  options.urls = std::move(urls);
  return {};
}

}  // namespace

Result<AgentOptions> optionsFromKernel(std::string_view command_line) {
  std::map<std::string, std::string> given;
  std::istringstream words{std::string(command_line)};
  for (std::string word; words >> word;) {
    auto equals = word.find('=');
    if (word.starts_with("muster.") && equals != std::string::npos)
      given[word.substr(0, equals)] = word.substr(equals + 1);
  }
  for (const char* key : {"muster.url", "muster.ca", "muster.enrolment", "muster.mac"}) {
    if (given[key].empty())
      return fail(ErrorCode::InvalidInput, "the kernel command line lacks " + std::string(key));
  }
  AgentOptions options;
  options.mode = wire::Mode::Ram;
  TRY_OK(readControllers(given["muster.url"], options));
  TRY(mac, Mac::parse(given["muster.mac"]));
  options.mac = mac.str();
  options.ca_fingerprint = given["muster.ca"];
  std::transform(options.ca_fingerprint.begin(), options.ca_fingerprint.end(),
                 options.ca_fingerprint.begin(), ::tolower);
  bool is_hash = options.ca_fingerprint.size() == kFingerprintDigits &&
                 options.ca_fingerprint.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hash)
    return fail(ErrorCode::InvalidInput, "muster.ca is not a SHA-256 fingerprint in hex");
  options.enrollment = given["muster.enrolment"];
  options.node = given["muster.node"];
  options.image_digest = given["muster.image"];
  options.state_folder = "/run/muster";
  return options;
}

Result<AgentOptions> optionsFromFile(std::string_view json) {
  TRY(object, wire::parseObject(json, kMaxPathBytes * 8, "agent.json"));
  wire::JsonReader reader(object, "agent");
  AgentOptions options;
  options.mode = wire::Mode::Disk;
  std::string url = reader.text("url", kMaxPathBytes);
  options.node = reader.text("node", wire::kMaxNameBytes);
  options.ca_pem_file = reader.text("ca_pem_file", kMaxPathBytes);
  options.key_file = reader.text("key_file", kMaxPathBytes);
  options.certificate_file = reader.text("certificate_file", kMaxPathBytes);
  options.image_digest = reader.text("image_digest", wire::kMaxNameBytes);
  TRY_OK(reader.finish());
  TRY_OK(readControllers(url, options));
  options.state_folder = "/var/lib/muster";
  return options;
}

}  // namespace muster::agent
