// SPDX-License-Identifier: Apache-2.0
#include "provision/images/agent_initrd.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxFileBytes = 256u << 20;
constexpr int kZstdLevel = 6;
constexpr std::string_view kFolder = "usr/lib/muster";
/// The C library's own parts: they fit the kernel's loader of the system, and must come from there.
constexpr std::array<std::string_view, 8> kSystemLibraries{
    "ld-linux",      "libc.so",  "libm.so",      "libdl.so",
    "libpthread.so", "librt.so", "libresolv.so", "linux-vdso"};

/// Programs that the agent starts, carried where they are built, and CUDA's parts of them. What
/// those need of CUDA is large and fits the node's driver: it comes with the image.
constexpr std::array<std::string_view, 3> kPrograms{"muster-peer", "muster-burn",
                                                    "muster-collective"};
constexpr std::array<std::string_view, 2> kCudaParts{"libmuster-burn-cuda.so",
                                                     "libmuster-collective-nccl.so"};

bool isSystemLibrary(std::string_view name) {
  return std::any_of(kSystemLibraries.begin(), kSystemLibraries.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// One newc header, its name and content, each padded to four bytes
/// (Documentation/driver-api/early-userspace/buffer-format).
class Cpio {
 public:
  void folder(std::string_view name) { entry(name, 040755, {}); }
  void file(std::string_view name, std::string_view content) { entry(name, 0100755, content); }
  std::string finish() {
    entry("TRAILER!!!", 0, {});
    return std::move(out_);
  }

 private:
  void entry(std::string_view name, unsigned mode, std::string_view content) {
    const unsigned links = (mode & 040000) != 0 ? 2 : 1;
    out_ += fmt::format(
        "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
        ++inode_, mode, 0, 0, links, 0, content.size(), 0, 0, 0, 0, name.size() + 1, 0);
    out_.append(name);
    out_.push_back('\0');
    pad();
    out_.append(content);
    pad();
  }
  void pad() { out_.resize((out_.size() + 3) / 4 * 4, '\0'); }

  std::string out_;
  unsigned inode_ = 0;
};

}  // namespace

Result<std::vector<std::filesystem::path>> librariesToCarry(std::string_view ldd_output) {
  std::vector<std::filesystem::path> libraries;
  std::istringstream stream{std::string(ldd_output)};
  for (std::string line; std::getline(stream, line);) {
    const auto start = line.find_first_not_of(" \t");
    const auto arrow = line.find(" => ");
    if (start == std::string::npos || arrow == std::string::npos) continue;
    const std::string name = line.substr(start, arrow - start);
    std::string path = line.substr(arrow + 4);
    if (path.starts_with("not found"))
      return fail(ErrorCode::NotFound,
                  fmt::format("the agent needs {}, which is not installed here", name));
    path = path.substr(0, path.find(" ("));
    if (!isSystemLibrary(name)) libraries.emplace_back(path);
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

namespace {

/// A program and what it carries.
Result<std::vector<AgentFile>> programFiles(const std::filesystem::path& program,
                                            std::string_view name) {
  std::vector<AgentFile> files{{program, fmt::format("{}/{}", kFolder, name)}};
  TRY(listed, io::runBlocking(io::Command{.program = "ldd", .args = {program.string()}}));
  if (listed.code != 0) return files;  // linked statically
  TRY(libraries, librariesToCarry(listed.out));
  if (!libraries.empty()) {
    TRY(binary, io::readFile(program, kMaxFileBytes));
    if (binary.find("$ORIGIN") == std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is not linked with the RPATH $ORIGIN, so it would not find its "
                              "libraries on a node",
                              program.string()));
  }
  for (const auto& library : libraries)
    files.push_back({library, fmt::format("{}/{}", kFolder, library.filename().string())});
  return files;
}

}  // namespace

Result<std::vector<AgentFile>> agentFiles(const std::filesystem::path& agent_binary) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(agent_binary, error))
    return fail(ErrorCode::NotFound,
                fmt::format("there is no agent at {}: build muster first", agent_binary.string()));
  TRY(files, programFiles(agent_binary, "muster-agent"));
  const auto folder = agent_binary.parent_path();
  for (const auto name : kPrograms) {
    if (!std::filesystem::is_regular_file(folder / name, error)) continue;
    TRY(more, programFiles(folder / name, name));
    for (auto& file : more) {
      const bool there = std::any_of(files.begin(), files.end(), [&file](const AgentFile& known) {
        return known.target == file.target;
      });
      if (!there) files.push_back(std::move(file));
    }
  }
  for (const auto name : kCudaParts)
    if (std::filesystem::is_regular_file(folder / name, error))
      files.push_back({folder / name, fmt::format("{}/{}", kFolder, name)});
  return files;
}

std::vector<std::filesystem::path> agentPrograms(const std::filesystem::path& agent_binary) {
  std::vector<std::filesystem::path> programs;
  for (const auto name : kPrograms) programs.push_back(agent_binary.parent_path() / name);
  for (const auto name : kCudaParts) programs.push_back(agent_binary.parent_path() / name);
  return programs;
}

Result<std::string> agentFilesDigest(const std::vector<AgentFile>& files) {
  io::Sha256 hash;
  for (const AgentFile& file : files) {
    TRY(content, io::sha256File(file.source));
    const std::string line = file.target + " " + content + "\n";
    hash.update(line.data(), line.size());
  }
  return hash.finishHex();
}

Result<void> writeAgentInitrd(const std::vector<AgentFile>& files,
                              const std::filesystem::path& out) {
  Cpio archive;
  for (const char* folder : {"usr", "usr/lib", "usr/lib/muster"}) archive.folder(folder);
  for (const AgentFile& file : files) {
    TRY(content, io::readFile(file.source, kMaxFileBytes));
    archive.file(file.target, content);
  }
  const std::string raw = archive.finish();
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kZstdLevel);
  if (ZSTD_isError(size))
    return fail(ErrorCode::Internal,
                fmt::format("cannot compress the agent: {}", ZSTD_getErrorName(size)));
  packed.resize(size);
  return io::writeFileAtomic(out, packed);
}

}  // namespace muster::provision
