// SPDX-License-Identifier: Apache-2.0
// The tables of `images` and `ram_os`: the systems that nodes run, and the one that images them.
#include "inventory/model/images.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <set>

namespace muster::inventory {

namespace {

using Json = nlohmann::json;

constexpr TextFormat kModuleStream{"a module and its stream",
                                   "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}:[A-Za-z0-9][A-Za-z0-9._+-]"
                                   "{0,63}$",
                                   "nodejs:18"};

/// dnf knows one stream of a module at a time.
void checkModules(const ImageBuild& build, const Value& map, Reader& reader) {
  if (!build.modules.empty() && build.release.empty())
    reader.error(place(map, "modules"), "only systems of a release (dnf) have module streams",
                 "remove modules");
  std::set<std::string> seen;
  for (const Value& item : place(map, "modules").items)
    if (!seen.insert(item.text.substr(0, item.text.find(':'))).second)
      reader.error(item,
                   fmt::format("two streams of one module: {}",
                               shorten(item.text.substr(0, item.text.find(':')))),
                   "choose one");
}

void checkImageBuild(ImageBuild& build, const Value& map, Reader& reader) {
  if (build.suite.empty() == build.release.empty())
    reader.error(map,
                 "a system is built from apt's packages of a suite or from dnf's of a release: one "
                 "of the two",
                 "write suite: bookworm, or release: \"9\" with archives");
  if (!build.release.empty() && build.archives.empty())
    reader.error(place(map, "release"), "nothing says where packages of this release are",
                 "add archives: {NAME: {url: …, key: …}}");
  if (!build.mirror.empty() && (!build.archives.empty() || !build.release.empty()))
    reader.error(place(map, "mirror"),
                 "mirror is Debian's archive; it goes with neither archives nor release",
                 "remove it, or name it as one of the archives, with its key");
  checkModules(build, map, reader);
  if (map.find("selinux") != nullptr && build.release.empty())
    reader.error(place(map, "selinux"), "only systems of a release (dnf) are built with SELinux",
                 "remove selinux");
}

ObjectSpec make_imageBuildSpec() {
  return Table<ImageBuild>("image-build", "image build",
                           "A system that `muster image build` makes: by mmdebstrap of a suite, by "
                           "dnf of a release.")
      .optional("suite", &ImageBuild::suite, text(kSuite), "Debian or Ubuntu suite.")
      .optional("release", &ImageBuild::release, text(kRelease),
                "Or a release of a system with dnf (RHEL, Rocky, AlmaLinux, Fedora); its archives "
                "say which.")
      .optional("packages", &ImageBuild::packages, listOf(text(kPackage)),
                "Packages beyond the base system; a kernel among them.")
      .optional("mirror", &ImageBuild::mirror, text(kMirror),
                "Debian's package archive; the building machine's own when absent.")
      .optional("archives", &ImageBuild::archives, mapOf(object(archiveSpec), kEntryName),
                "Signed archives that all packages come from, instead of a mirror of Debian.")
      .optional("modules", &ImageBuild::modules, listOf(text(kModuleStream)),
                "Module streams that are enabled before packages are chosen (EL 8 and 9); only "
                "with release.")
      .optional(
          "selinux", &ImageBuild::selinux, choice({"permissive", "enforcing", "disabled"}),
          "What SELinux does on the node. enforcing: all files are labelled when the image is "
          "built, and once more when it is written; only with release.")
      .printsAlways({"suite", "packages", "mirror"})
      .check(checkImageBuild)
      .spec();
}
MUSTER_SPEC(imageBuildSpec)

void checkImportFile(Image& image, const Value& map, Reader& reader) {
  const auto* import = std::get_if<ImageImport>(&image.source);
  std::error_code ignored;
  if (!import && image.kind == ImageKind::Disk)
    reader.error(place(map, "kind"), "what muster builds is a root file system",
                 "write rootfs or live, or import a disk image");
  if (import && !std::filesystem::exists(import->path, ignored))
    reader.warning(place(map, "import"),
                   fmt::format("{} does not exist yet", import->path.string()),
                   "it must be there before a node is imaged");
}

void checkImage(Image& image, const Value& map, Reader& reader) {
  const auto* build = std::get_if<ImageBuild>(&image.source);
  if (build && !build->release.empty() && image.arch != Architecture::Amd64)
    reader.error(place(map, "arch"), "muster builds systems of dnf for amd64 only",
                 "build it where such a machine is, and import it");
  if (build && build->selinux == SelinuxMode::Enforcing && image.kind == ImageKind::Live)
    reader.error(place(place(map, "build"), "selinux"),
                 "files that are written into a live image have no labels, so it cannot enforce",
                 "write permissive, or kind: rootfs");
  checkImportFile(image, map, reader);
}

ImageImport& importOf(Image& image) {
  if (!std::holds_alternative<ImageImport>(image.source)) image.source = ImageImport{};
  return std::get<ImageImport>(image.source);
}

ObjectSpec make_imageSpec() {
  return Table<Image>("image", "image",
                      "What a node runs: written to its disk, or live in its memory.")
      .custom("build", false, object(imageBuildSpec), "Build it from packages.",
              [](Image& image, const Value& value, const Shape&, Reader& reader) {
                ImageBuild build;
                if (readObject(&build, value, *imageBuildSpec(), reader))
                  image.source = std::move(build);
              })
      .prints([](const Image& image, const Printer& printer) -> Json {
        const auto* build = std::get_if<ImageBuild>(&image.source);
        return build ? printObject(build, *imageBuildSpec(), printer) : Json();
      })
      .custom("import", false, text(kPath), "Or take this disk image (raw, qcow2).",
              [](Image& image, const Value& value, const Shape& shape, Reader& reader) {
                readInto(importOf(image).path, value, shape, reader);
              })
      .prints([](const Image& image, const Printer& printer) -> Json {
        const auto* import = std::get_if<ImageImport>(&image.source);
        return import ? Json(printer.path(import->path)) : Json();
      })
      .custom("sha256", false, text(kSha256), "Digest of the imported file.",
              [](Image& image, const Value& value, const Shape& shape, Reader& reader) {
                readInto(importOf(image).sha256, value, shape, reader);
              })
      .prints([](const Image& image, const Printer&) -> Json {
        const auto* import = std::get_if<ImageImport>(&image.source);
        return import ? Json(import->sha256) : Json();
      })
      .optional("kind", &Image::kind, choice({"rootfs", "disk", "live"}),
                "rootfs: a root file system that muster partitions a disk for. disk (imports "
                "only): a whole disk with its own partitions and boot loader. "
                "live: it runs in memory, and no disk is written.")
      .optional("arch", &Image::arch, choice({"amd64", "arm64"}),
                "The processor of the nodes that it is for.")
      .optional("authorized_keys", &Image::authorized_keys, listOf(text(kSshKey)),
                "ssh public keys of root.")
      .printsAlways({"build", "import", "sha256", "authorized_keys"})
      .exactlyOne({"build", "import"})
      .needs("import", "sha256")
      .needs("sha256", "import")
      .check(checkImage)
      .spec();
}

constexpr TextFormat kKernelPackage{"a package of a kernel, with or without =version",
                                    "^linux-image-[a-z0-9][A-Za-z0-9+._-]*(=[A-Za-z0-9.+:~^_-]+)?$",
                                    "linux-image-amd64"};
constexpr TextFormat kModulePattern{"a shell pattern below the kernel's modules",
                                    "^[A-Za-z0-9_][A-Za-z0-9_.*/-]{0,199}$",
                                    "drivers/net/ethernet/ti/*"};

void checkRamOs(RamOsSpec& /*read*/, const Value& map, Reader& reader) {
  std::set<std::string> seen;
  for (const Value& item : place(map, "packages").items) {
    const auto name = item.text.substr(0, item.text.find_first_of(":="));
    if (name.starts_with("linux-image"))
      reader.error(item, "the RAM OS has one kernel, and it is named under kernel",
                   "write kernel: " + shorten(item.text));
    else if (!seen.insert(name).second)
      reader.error(item, shorten(name) + " is named twice", "keep one of the two");
  }
  for (const Value& item : place(map, "modules").items)
    if (item.text.contains(".."))
      reader.error(item, "the pattern leads out of the kernel's modules",
                   "write it as below /lib/modules/VERSION/kernel");
}

ObjectSpec make_ramOsSpec() {
  return Table<RamOsSpec>(
             "ram-os", "RAM OS",
             "What the RAM OS has beside muster's own list, for hardware that is newer "
             "than Debian's kernel or wants firmware from the disk.")
      .optional("kernel", &RamOsSpec::kernel, text(kKernelPackage),
                "The package of its kernel, instead of Debian's linux-image-amd64.")
      .optional("packages", &RamOsSpec::packages, listOf(text(kPackage)),
                "Further packages: firmware, tools.")
      .optional("modules", &RamOsSpec::modules, listOf(text(kModulePattern)),
                "Kernel modules that are kept beside muster's own list, as shell patterns below "
                "/lib/modules/VERSION/kernel.")
      .optional("archives", &RamOsSpec::archives, mapOf(object(archiveSpec), kEntryName),
                "Signed archives beside Debian's own: non-free firmware, backports.")
      .check(checkRamOs)
      .spec();
}

}  // namespace
MUSTER_SPEC(imageSpec)
MUSTER_SPEC(ramOsSpec)

}  // namespace muster::inventory
