// SPDX-License-Identifier: Apache-2.0
// A folder that dnsmasq watches (dhcp-hostsdir), one file a node. dnsmasq takes a new file at once
// by inotify; what it has read before it forgets or corrects only on SIGHUP.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <map>
#include <string>

namespace muster::provision {

using HostLines = std::map<std::string, std::string>;  ///< file name → content

struct HostChange {
  std::size_t added = 0, replaced = 0, removed = 0;
  /// The kernel drops inotify events beyond its queue (16,384 by default), and a signal is cheaper
  /// than so many of them.
  static constexpr std::size_t kMaxNoticed = 1000;
  bool mustReread() const { return replaced > 0 || removed > 0 || added > kMaxNoticed; }
};

class HostFiles {
 public:
  explicit HostFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Makes the folder hold exactly these files; those that are right stay untouched. The first call
  /// looks at what an earlier controller left there. Not synced: a controller that starts compares
  /// all of it again. Errors: Internal (the folder cannot be written); what was not done is done by
  /// the next call
  Result<HostChange> write(const HostLines& wanted);
  /// dnsmasq gives up root's rights before it reads, and says nothing when it cannot. Errors:
  /// Denied, with the folder that is shut
  Result<void> checkAnybodyCanRead() const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  Result<void> readBack();

  std::filesystem::path folder_;
  HostLines there_;
  bool known_ = false;
};

}  // namespace muster::provision
