// SPDX-License-Identifier: Apache-2.0
// The entry points that read what unknown senders send, as fuzz targets. Two programs drive the
// same table: libFuzzer with sanitizers
// (`./run fuzz`) and the mutation driver of the normal build (`./run test`), adr/0211.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fuzz {

struct Target {
  std::string_view name;          ///< also the folder of its corpus
  std::size_t max_input_bytes;    ///< longer inputs are not tried
  void (*run)(std::string_view);  ///< ends, or aborts where the parser breaks its promise
  /// Words of the format, for mutations.
  std::span<const std::string_view> words;
};

std::span<const Target> networkTargets();    ///< dhcp, ssdp, lldp, tpm
std::span<const Target> messageTargets();    ///< messages, json, text, attestation, pack, metainfo
std::span<const Target> httpTargets();       ///< http, http-fields
std::span<const Target> inventoryTargets();  ///< inventory, csv, hostlist, kernel-log

// Linked with the libraries that they try, in programs of their own.
Target redfishTarget();
Target pldmTarget();
Target baselineTarget();

/// Those of this program: parser_table.cc or client_table.cc.
std::vector<Target> allTargets();
/// Errors: nullptr when there is none of this name
const Target* findTarget(std::string_view name);

/// Aborts with the sentence: an input that shows a broken promise is a finding like a crash.
void require(bool promise, const char* what);

}  // namespace muster::fuzz
