// SPDX-License-Identifier: Apache-2.0
#include "provision/images/foreign_format.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace muster::provision {

namespace {

using std::string_view_literals::operator""sv;

struct Foreign {
  std::size_t offset;
  std::string_view bytes;  ///< there, in the file
  const char* what;
  const char* instead;
};

constexpr const char* kMakeTar = "unpack it, and make a tar of the folder (tar --numeric-owner)";
constexpr const char* kPackAnew = "unpack it, and pack it by zstd, xz, gzip or bzip2";
constexpr const char* kMakeExt4 = "muster installs ext4; make a tar of what is in it";

/// Source: qemu's block/{vhdx,vpc,qed,parallels}.c, the format descriptions of the others
constexpr Foreign kForeign[] = {
    {0, "vhdxfile"sv, "a VHDX of Hyper-V", "convert it: qemu-img convert -f vhdx -O qcow2"},
    {0, "conectix"sv, "a VHD of Virtual PC", "convert it: qemu-img convert -f vpc -O qcow2"},
    {0, "QED\0"sv, "a QED", "convert it: qemu-img convert -f qed -O qcow2"},
    {0, "WithoutFreeSpace"sv, "a disk of Parallels",
     "convert it: qemu-img convert -f parallels -O qcow2"},
    {0, "WithouFreSpacExt"sv, "a disk of Parallels",
     "convert it: qemu-img convert -f parallels -O qcow2"},
    {0, "# Disk DescriptorFile"sv, "the description of a VMDK without its data",
     "convert both together: qemu-img convert -f vmdk -O qcow2"},
    {0, "LUKS\xba\xbe"sv, "encrypted (LUKS)", "decrypt it first"},
    {0, "\x3a\xff\x26\xed"sv, "a sparse image of Android", "expand it: simg2img"},
    {0, "\x04\x22\x4d\x18"sv, "compressed by lz4", kPackAnew},
    {0, "LZIP"sv, "compressed by lzip", kPackAnew},
    {0, "\x5d\0\0"sv, "compressed by lzma", kPackAnew},
    {0, "PK\3\4"sv, "a zip archive", kMakeTar},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", kMakeTar},
    {0, "07070"sv, "a cpio archive", kMakeTar},
    {0, "\xc7\x71"sv, "a cpio archive", kMakeTar},
    {0, "\xed\xab\xee\xdb"sv, "a package of rpm, not a system", "give the image of a system"},
    {0, "!<arch>\n"sv, "a package of Debian or a library, not a system",
     "give the image of a system"},
    {0, "XFSB"sv, "an XFS file system", kMakeExt4},
    {1024, "\xe2\xe1\xf5\xe0"sv, "an EROFS file system", kMakeExt4},
    {0x10040, "_BHRfS_M"sv, "a btrfs file system", kMakeExt4},
    {32769, "CD001"sv, "the image of a CD", "install from it, and give the disk that comes of it"},
    {512, "LABELONE"sv, "a volume of LVM", kMakeExt4},
};

}  // namespace

std::string foreignFormat(int fd) {
  for (const Foreign& each : kForeign) {
    std::string there(each.bytes.size(), '\0');
    if (::pread(fd, there.data(), there.size(), static_cast<off_t>(each.offset)) ==
            static_cast<ssize_t>(there.size()) &&
        there == each.bytes)
      return fmt::format("it is {}; {}", each.what, each.instead);
  }
  return {};
}

}  // namespace muster::provision
