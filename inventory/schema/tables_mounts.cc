// SPDX-License-Identifier: Apache-2.0
// The tables of file systems that profiles mount.
#include "inventory/model/mounts.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

constexpr int kMaxMbS = 10'000'000;

constexpr TextFormat kMountPoint{"an absolute path without spaces", R"(^/[A-Za-z0-9._/-]+$)",
                                 "/scratch"};
constexpr TextFormat kMountOption{"one mount option", R"(^[^\s,]+$)", "nconnect=16"};
constexpr TextFormat kStorageSource{"a source without spaces", R"(^\S+$)",
                                    "10.20.0.9:/export/home"};

std::string wrongSource(const MountedSystem& system) {
  const auto& source = system.source;
  const auto slash = source.find(":/");
  switch (system.kind) {
    case MountKind::Nfs:
      return slash == std::string::npos || slash == 0 ? "an NFS source is SERVER:/EXPORT" : "";
    case MountKind::Lustre:
      if (slash == std::string::npos || slash + 2 == source.size())
        return "a Lustre source is MGSNID[:MGSNID]:/FSNAME";
      return source.find('@') == std::string::npos
                 ? "a Lustre source names its network: 10.0.0.1@o2ib:/FSNAME"
                 : "";
    case MountKind::Gpfs:
      return source.find('/') != std::string::npos
                 ? "a GPFS source is the file system's name, without slashes"
                 : "";
  }
  return "";
}

void checkStorage(MountedSystem& system, const Value& map, Reader& reader) {
  if (auto wrong = wrongSource(system); !wrong.empty())
    reader.error(place(map, "source"),
                 fmt::format("\"{}\" is no source of this kind", shorten(system.source)), wrong);
  if (system.mount.find("/../") != std::string::npos || system.mount.ends_with("/..") ||
      system.mount.find("//") != std::string::npos ||
      system.mount.find("/./") != std::string::npos || system.mount.ends_with("/"))
    reader.error(place(map, "mount"), "the mount point is not written plainly",
                 "without '.', '..', '//' and a '/' at its end");
  for (std::string_view taken : {"/", "/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr",
                                 "/var", "/bin", "/lib", "/sbin", "/tmp"})
    if (system.mount == taken)
      reader.error(place(map, "mount"), fmt::format("{} belongs to the system", taken),
                   "mount it elsewhere");
}

ObjectSpec make_fileSystemSpec() {
  return Table<MountedSystem>(
             "file-system", "file system",
             "A file system of others that nodes mount; it is checked for what is mounted and how "
             "fast it is. A node's own disks are under `storage` of its profile.")
      .required("kind", &MountedSystem::kind, choice({"nfs", "lustre", "gpfs"}), "What it is.")
      .required("source", &MountedSystem::source, text(kStorageSource),
                "nfs SERVER:/EXPORT; lustre MGSNID:/FSNAME; gpfs the file system's name.")
      .required("mount", &MountedSystem::mount, text(kMountPoint), "Where it is mounted.")
      .optional("options", &MountedSystem::options, listOf(text(kMountOption)),
                "Options of the mount; what is mounted must have them.")
      .optional("packages", &MountedSystem::packages, listOf(text(kPackage)),
                "Packages beyond those that the kind always needs.")
      .optional("read_mb_s", &MountedSystem::read_mb_s, integer(1, kMaxMbS),
                "MB/s that one stream of direct reads must reach.")
      .optional("write_mb_s", &MountedSystem::write_mb_s, integer(1, kMaxMbS),
                "MB/s that one stream of direct writes must reach.")
      .printsAlways()
      .check(checkStorage)
      .spec();
}

}  // namespace

MUSTER_SPEC(fileSystemSpec)

}  // namespace muster::inventory
