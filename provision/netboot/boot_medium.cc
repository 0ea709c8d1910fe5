// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/boot_medium.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/netboot/grub_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace muster::provision {

namespace {

namespace fs = std::filesystem;

constexpr const char* kShimAmd64 = "/usr/lib/shim/shimx64.efi.signed";
constexpr const char* kGrubAmd64 = "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed";
constexpr std::size_t kIdDigits = 32;
constexpr std::uint64_t kEspMinBytes = 8ull << 20, kEspSpareBytes = 2ull << 20, kSectorBytes = 512;
constexpr std::uint64_t kMaxLoaderBytes = 64ull << 20;
constexpr std::size_t kScanBytes = 1u << 20;
constexpr std::chrono::seconds kToolLimit{300};
/// Media of earlier RAM OSs that may still be inserted somewhere: one is as large as a RAM OS.
constexpr std::size_t kKeptMedia = 4;
/// Of another layout of the medium: one that was made before is not taken for one of today.
constexpr std::string_view kLayout = "1";

struct Loaders {
  Architecture architecture;
  const char *shim, *grub;  ///< names below EFI/BOOT: what firmware looks for, what shim asks for
};
/// Source: UEFI 2.10, 3.5.1.1 "Removable Media Boot Behavior"; shim's README
constexpr Loaders kLoaders[] = {{Architecture::Amd64, "BOOTX64.EFI", "grubx64.efi"},
                                {Architecture::Arm64, "BOOTAA64.EFI", "grubaa64.efi"}};

Result<void> run(const char* program, const char* package, std::vector<std::string> args) {
  io::Command command{.program = program, .args = std::move(args)};
  command.timeout = kToolLimit;
  auto done = io::runChecked(command);
  if (done) return {};
  if (done.error().code() == ErrorCode::NotFound)
    return fail(ErrorCode::NotFound,
                fmt::format("{} is missing; install the package {}", program, package));
  return fail(std::move(done).error());
}

/// GRUB looks for it where it was loaded from: of a CD that is the whole disc, of a stick the ESP.
std::string loaderScript(const std::string& id) {
  return fmt::format(
      "# Written by muster.\n"
      "search --no-floppy --file --set=root /muster/{}\n"
      "source /muster/node.cfg\n"
      "echo 'muster: this boot medium cannot be read any more'\n"
      "sleep 10\n"
      "reboot\n",
      id);
}

/// A medium that nobody has laid parameters into starts nothing.
std::string placeholder(const std::string& mark) {
  auto text = fmt::format(
      "# {}\necho 'muster: this boot medium has no parameters of a node'\nsleep 10\nreboot\n",
      mark);
  text.resize(kMediumParameterBytes, '\n');
  return text;
}

/// Where `text` begins. Errors: Internal (nowhere, or twice)
Result<std::uint64_t> offsetOf(const fs::path& file, const std::string& text) {
  std::optional<std::uint64_t> found;
  std::string window, piece(kScanBytes, '\0');
  std::uint64_t at = 0;  // of the window
  std::ifstream in(file, std::ios::binary);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    window.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    for (auto hit = window.find(text); hit != std::string::npos; hit = window.find(text, hit + 1)) {
      if (found && *found != at + hit)
        return fail(ErrorCode::Internal,
                    fmt::format("{} holds the parameters twice", file.string()));
      found = at + hit;
    }
    const auto drop = window.size() - std::min(window.size(), text.size());
    window.erase(0, drop);
    at += drop;
  }
  if (!found)
    return fail(ErrorCode::Internal, fmt::format("{} holds no parameters", file.string()));
  return *found;
}

Result<void> makeEsp(const fs::path& esp, const MediumParts& parts, const fs::path& config) {
  const auto& names = kLoaders[static_cast<std::size_t>(parts.architecture)];
  std::error_code error;
  const auto bytes = fs::file_size(parts.shim, error) + fs::file_size(parts.grub, error);
  if (error || bytes > kMaxLoaderBytes)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} and {} are no boot loaders: too large, or they cannot be read",
                            parts.shim.string(), parts.grub.string()));
  const auto size = std::max(kEspMinBytes, bytes + kEspSpareBytes);
  const auto image = esp.string();
  TRY_OK(run("mformat", "mtools",
             {"-C", "-i", image, "-T", std::to_string(size / kSectorBytes), "-v", "MUSTER", "::"}));
  TRY_OK(run("mmd", "mtools", {"-i", image, "::/EFI", "::/EFI/BOOT", "::/grub"}));
  const std::pair<fs::path, std::string> files[] = {
      {parts.shim, std::string("::/EFI/BOOT/") + names.shim},
      {parts.grub, std::string("::/EFI/BOOT/") + names.grub},
      {config, "::/grub/grub.cfg"}};
  for (const auto& [from, to] : files)
    TRY_OK(run("mcopy", "mtools", {"-i", image, from.string(), to}));
  return {};
}

}  // namespace

MediumParts mediumParts(Architecture architecture, const RamOs& ram_os, const PackedImage* live) {
  MediumParts parts{architecture, ram_os.shim, ram_os.grub, "", {}};
  if (parts.shim.empty()) {
    parts.shim = kShimAmd64;
    parts.grub = kGrubAmd64;
    parts.loaders_package = "shim-signed and grub-efi-amd64-signed";
  }
  const auto name = [](const std::string& folder, const char* file) { return folder + "/" + file; };
  parts.files = {{name(kRamOsFolder, "vmlinuz"), ram_os.kernel},
                 {name(kRamOsFolder, "initrd.img"), ram_os.initrd},
                 {name(kRamOsFolder, "agent.img"), ram_os.agent_initrd}};
  if (live) {
    parts.files.emplace_back(name(liveFolder(live->digest), "vmlinuz"), live->kernel);
    parts.files.emplace_back(name(liveFolder(live->digest), "modules.img"), live->modules);
  }
  return parts;
}

Result<io::FileOverlay> mediumParameters(const BootMedium& medium, const std::string& script) {
  if (script.size() > kMediumParameterBytes)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("the boot parameters have {} bytes, more than the {} that a boot medium "
                    "has room for; shorten kernel_args",
                    script.size(), kMediumParameterBytes));
  io::FileOverlay overlay{medium.parameters_at, script};
  overlay.bytes.resize(kMediumParameterBytes, '\n');
  return overlay;
}

Result<std::string> BootMedia::idOf(const MediumParts& parts) {
  std::string all = fmt::format("{}\n{}\n", kLayout, traitsOf(parts.architecture).name);
  for (const auto& loader : {parts.shim, parts.grub}) {
    auto digest = digests_.sha256(loader);
    if (!digest && digest.error().code() == ErrorCode::NotFound && !parts.loaders_package.empty())
      return fail(ErrorCode::NotFound, fmt::format("{} is missing; install the packages {}",
                                                   loader.string(), parts.loaders_package));
    if (!digest) return fail(std::move(digest).error());
    all += *digest + "\n";
  }
  for (const auto& [name, file] : parts.files) {
    TRY(digest, digests_.sha256(file));
    all += fmt::format("{} {}\n", name, digest);
  }
  return io::sha256Hex(all).substr(0, kIdDigits);
}

/// The record beside it: the digest of what was made, a blank, and where its parameters are.
Result<BootMedium> BootMedia::kept(const std::string& id) {
  BootMedium medium{folder_ / (id + ".iso"), 0};
  constexpr std::size_t kMaxRecordBytes = 256;
  TRY(record, io::readFile(folder_ / (id + ".made"), kMaxRecordBytes));
  const auto blank = std::min(record.find(' '), record.size());
  const auto* end = record.data() + record.size();
  const auto number = std::from_chars(record.data() + std::min(blank + 1, record.size()), end,
                                      medium.parameters_at);
  TRY(digest, digests_.sha256(medium.image));
  if (number.ec != std::errc() || record.substr(0, blank) != digest)
    return fail(ErrorCode::Corrupt, fmt::format("{} is not what was made", medium.image.string()));
  return medium;
}

Result<BootMedium> BootMedia::make(const MediumParts& parts) {
  const std::lock_guard lock(mutex_);
  TRY(id, idOf(parts));
  if (auto there = kept(id)) return there;
  TRY(made, build(id, parts));
  forgetOthers(id);
  return made;
}

Result<BootMedium> BootMedia::build(const std::string& id, const MediumParts& parts) {
  const auto work = folder_ / (id + ".new"), tree = work / "tree", iso = work / "medium.iso",
             esp = work / "esp.img";
  std::error_code error;
  fs::remove_all(work, error);
  TRY_OK(io::makeDirs(tree / "muster"));
  TRY_OK(io::makeDirs(tree / "grub"));
  const auto mark = io::sha256Hex(io::randomToken());
  TRY_OK(io::writeFileAtomic(tree / "muster" / id, id + "\n"));
  TRY_OK(io::writeFileAtomic(tree / "muster/node.cfg", placeholder(mark)));
  TRY_OK(io::writeFileAtomic(tree / "grub/grub.cfg", loaderScript(id)));
  for (const auto& [name, file] : parts.files) {
    TRY_OK(io::makeDirs((tree / name).parent_path()));
    fs::create_symlink(fs::absolute(file), tree / name, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot write {}: {}", (tree / name).string(), error.message()));
  }
  TRY_OK(makeEsp(esp, parts, tree / "grub/grub.cfg"));
  // Behind the ISO file system, where both El Torito (a CD) and the partition table (a stick) name
  // it.
  TRY_OK(run("xorriso", "xorriso",
             {"-as", "mkisofs", "-quiet", "-f", "-r", "-J", "-V", "MUSTER", "-o", iso.string(),
              "-e", "--interval:appended_partition_2:all::", "-no-emul-boot", "-append_partition",
              "2", "0xef", esp.string(), "-appended_part_as_gpt", tree.string()}));
  TRY(at, offsetOf(iso, placeholder(mark)));
  TRY(after, idOf(parts));
  if (after != id)
    return fail(ErrorCode::Corrupt,
                "the RAM OS has changed while its boot medium was made (is muster image build at "
                "work?); try again");
  TRY(digest, io::sha256File(iso));
  BootMedium medium{folder_ / (id + ".iso"), at};
  fs::remove(folder_ / (id + ".made"), error);
  fs::rename(iso, medium.image, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot write {}: {}", medium.image.string(), error.message()));
  TRY_OK(io::writeFileAtomic(folder_ / (id + ".made"), fmt::format("{} {}\n", digest, at)));
  fs::remove_all(work, error);
  return medium;
}

void BootMedia::forgetOthers(const std::string& id) {
  std::error_code error;
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() == ".new") {  // of one that was killed
      fs::remove_all(entry.path(), error);
    } else if (entry.path().extension() == ".iso" && entry.path().stem() != id) {
      others.emplace_back(entry.last_write_time(error), entry.path());
    }
  }
  std::ranges::sort(others, std::ranges::greater());
  for (std::size_t i = kKeptMedia - 1; i < others.size(); ++i) {
    fs::remove(others[i].second, error);
    fs::remove(fs::path(others[i].second).replace_extension(".made"), error);
  }
  digests_.dropMissing();
}

}  // namespace muster::provision
