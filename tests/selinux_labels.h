// SPDX-License-Identifier: Apache-2.0
// Trees with SELinux (selinux_tree.sh), and the labels of their files as the kernel has them.
#pragma once

#include "base/io/process.h"
#include "tests/paths.h"

#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

namespace muster::test {

/// Why labels cannot be set here; empty: they can.
inline std::string noLabelsHere() {
  if (::geteuid() != 0) return "labels are set by root";
  const auto there = io::runBlocking(
      {.program = "sh", .args = {"-c", "command -v setfiles || command -v /usr/sbin/setfiles"}});
  return there && there->code == 0 ? "" : "setfiles is not here: apt-get install policycoreutils";
}

inline void putSelinux(const std::filesystem::path& root, const std::string& mode) {
  const auto done = io::runChecked({.program = (sourceFolder() / "tests/selinux_tree.sh").string(),
                                    .args = {root.string(), mode}});
  ASSERT_TRUE(done) << done.error().str();
}

/// "etc_t"; of one without a label "(none)".
inline std::string labelOf(const std::filesystem::path& path) {
  char value[256];
  const auto size = ::lgetxattr(path.c_str(), "security.selinux", value, sizeof value);
  if (size <= 0) return "(none)";
  std::string label(value,
                    static_cast<std::size_t>(size) - 1);  // the kernel's has a zero at its end
  if (!label.starts_with("system_u:object_r:") || !label.ends_with(":s0")) return label;
  return label.substr(18, label.size() - 18 - 3);
}

}  // namespace muster::test
