// SPDX-License-Identifier: Apache-2.0
// Firmware as it is declared: baselines of components, constraints between their versions, and how
// two versions compare.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// One image file; another file is never sent to a BMC.
struct FirmwareImageFile {
  std::string version;  ///< that the BMC reports once it runs
  std::filesystem::path file;
  std::string sha256;
};

/// What makes an uploaded image run. Auto: by the component's name (firmware/activation_policy.cc).
enum class FirmwareActivation { Auto, None, BmcReset, PowerCycle, AcCycle };

struct FirmwareComponent {
  std::string name;  ///< as the BMC's inventory calls it
  std::string version;
  std::filesystem::path file;
  std::string sha256;
  FirmwareActivation activation = FirmwareActivation::Auto;
  std::vector<FirmwareImageFile> intermediate =
      {};  ///< versions on the way, oldest first: a component below one passes through it
  std::string device =
      {};  ///< "iana:1647", "pci:10de", "uuid:…": a PLDM package must be for it; empty: any
  int minutes = 0;  ///< its flash usually takes; 0: what was learned, else a guess
  std::string pattern =
      {};  ///< ECMAScript; its first group, else the whole match, is the part of a version that is
           ///< compared with another one: "GB200Nvl-([0-9.-]+)". Empty: the whole version
};

/// "COMPONENT >= VERSION", the left or the right side of a constraint.
struct FirmwareTerm {
  enum class Op { Less, AtMost, Equal, NotEqual, AtLeast, Greater };
  std::string component;  ///< glob of component names, or a driver's probe ("nvml.driver")
  Op op = Op::Equal;
  std::string version;

  /// Unknown: the two versions are not of one kind, so that neither is newer.
  enum class Holds : std::uint8_t { No, Yes, Unknown };
  Holds holds(std::string_view seen) const;
  std::string str() const;
};

/// "HGX_FW_FPGA_0 >= 3.14 needs CPLD >= 0x14": while the left side holds, the right side must hold
/// (needs) or must not (excludes).
struct FirmwareConstraint {
  FirmwareTerm when, then;
  bool excludes = false;

  /// Errors: InvalidInput with the grammar
  static Result<FirmwareConstraint> parse(std::string_view text);
  std::string str() const;
};

struct FirmwareBaseline {
  std::string name;
  std::vector<FirmwareComponent> components;
  std::vector<std::string>
      order;  ///< all component names: first those declared, then the rest by name
  std::size_t declared_order =
      0;  ///< how many of `order` the file names itself; only these keep their place
  std::vector<FirmwareConstraint> constraints = {};
  std::string signature = {};   ///< Ed25519 over canonical(), base64; empty: not signed
  std::string signer_pem = {};  ///< the public key that must have made it

  const FirmwareComponent* find(std::string_view component) const;
  /// What a signature is over: versions, digests, order and constraints; no paths.
  std::string canonical() const;
};

/// Whether two versions can be compared: equal texts, or the same words in front of the first
/// number that differs. "GB200Nvl-24.12" and "24.10" cannot, nor can "1.2-rc1" and "1.2". Blanks at
/// the ends do not count.
std::optional<std::weak_ordering> comparedVersions(std::string_view a, std::string_view b);

/// A version without blanks at its ends: BMCs pad them.
std::string_view trimmedVersion(std::string_view version);

/// A version is what a BMC says, and may be anything.
inline constexpr std::size_t kMaxComparedBytes = 256;

/// The part of the component's version that is compared.
/// Errors: InvalidInput (the pattern finds nothing in it, or is no pattern; the version is longer
/// than kMaxComparedBytes)
Result<std::string> comparablePart(const std::string& pattern, std::string_view version);

/// Numbers compare as numbers, and what could be hexadecimal as such ("96.00.9F" < "96.00.A1",
/// "0x9" < "0x14", "1.4.9" < "1.4.10"); other words by letters. A total order. A longer version is
/// newer than its own beginning.
std::weak_ordering compareVersions(std::string_view a, std::string_view b);

/// How the versions that a baseline asks for break one of its constraints: "BIOS 2.0 and CPLD
/// 0x12". Empty when they do not, or when that cannot be told here: globs, and versions without an
/// order.
std::string brokenByTargets(const FirmwareConstraint& constraint, const FirmwareBaseline& baseline);

}  // namespace muster::inventory
