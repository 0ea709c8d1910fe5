// SPDX-License-Identifier: Apache-2.0
#include "provision/images/agent_initrd.h"

#include "base/architecture.h"
#include "base/elf.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "wire/carried_libc.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <sstream>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxFileBytes = 256u << 20;
constexpr int kZstdLevel = 6;
constexpr std::size_t kMaxLibraries = 256;
constexpr std::string_view kFolder = wire::kProgramFolder;
/// The C library's own parts: they fit one loader only, and are carried together with it.
constexpr std::array<std::string_view, 8> kSystemLibraries{
    "ld-linux",      "libc.so",  "libm.so",      "libdl.so",
    "libpthread.so", "librt.so", "libresolv.so", "linux-vdso"};
/// All that a program, or a library that it opens on the node, may ask of a C library. Those that
/// are empty since glibc 2.34 too: an older system's would not fit the carried libc.so.6.
constexpr std::array<std::string_view, 12> kLibcParts{
    "libc.so.6",   "libm.so.6",         "libmvec.so.1",    "libdl.so.2",
    "librt.so.1",  "libpthread.so.0",   "libresolv.so.2",  "libutil.so.1",
    "libanl.so.1", "libnss_files.so.2", "libnss_dns.so.2", "libnss_compat.so.2"};

/// Programs that the agent starts, carried where they are built, and CUDA's parts of them. What
/// those need of CUDA is large and fits the node's driver: it comes with the image.
constexpr std::array<std::string_view, 3> kPrograms{"muster-peer", "muster-burn",
                                                    "muster-collective"};
constexpr std::array<std::string_view, 2> kCudaParts{"libmuster-burn-cuda.so",
                                                     "libmuster-collective-nccl.so"};

const char* nameOfMachine(std::uint16_t elf_machine) {
  const auto* traits = architectureOfElf(elf_machine);
  return traits ? traits->name : "(of an unknown processor)";
}

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
  void link(std::string_view name, std::string_view target) { entry(name, 0120777, target); }
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

/// For another processor than this machine's: its loader cannot be asked what it needs.
Result<bool> isForeign(const std::filesystem::path& program) {
  TRY(content, io::readFile(program, kMaxFileBytes));
  const auto elf = parseElf(content);
  return elf.has_value() && elf->machine != traitsOf(kBuiltFor).elf_machine;
}

Result<std::vector<std::filesystem::path>> librariesBeside(const std::filesystem::path& program) {
  std::error_code error;
  std::vector<std::filesystem::path> libraries;
  std::set<std::string> seen;
  std::deque<std::filesystem::path> left{program};
  const auto folder = program.parent_path();
  while (!left.empty() && seen.size() < kMaxLibraries) {
    const auto file = std::move(left.front());
    left.pop_front();
    TRY(content, io::readFile(file, kMaxFileBytes));
    auto elf = parseElf(content);
    if (!elf) return fail(std::move(elf).error().within(file.string()));
    for (const auto& name : elf->needed) {
      if (!seen.insert(name).second ||
          std::filesystem::exists(folder / wire::kCarriedLibcFolder / name, error))
        continue;
      if (!std::filesystem::exists(folder / name, error))
        return fail(ErrorCode::NotFound,
                    fmt::format("{} needs {}, which is not beside it: build it by `./run build {}`",
                                file.string(), name, nameOfMachine(elf->machine)));
      libraries.push_back(folder / name);
      left.push_back(folder / name);
    }
  }
  std::sort(libraries.begin(), libraries.end());
  return libraries;
}

/// A program and what it carries.
Result<std::vector<AgentFile>> programFiles(const std::filesystem::path& program,
                                            std::string_view name) {
  std::vector<AgentFile> files{{program, fmt::format("{}/{}", kFolder, name), false, {}}};
  TRY(foreign, isForeign(program));
  if (foreign) {
    files.front().program = true;
    TRY(beside, librariesBeside(program));
    for (const auto& library : beside)
      files.push_back(
          {library, fmt::format("{}/{}", kFolder, library.filename().string()), false, {}});
    return files;
  }
  TRY(listed, io::runBlocking(io::Command{.program = "ldd", .args = {program.string()}}));
  if (listed.code != 0) return files;  // linked statically
  files.front().program = true;
  TRY(libraries, librariesToCarry(listed.out));
  if (!libraries.empty()) {
    TRY(binary, io::readFile(program, kMaxFileBytes));
    if (binary.find("$ORIGIN:$ORIGIN/glibc") == std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is not linked with the RPATH $ORIGIN:$ORIGIN/glibc, so it would "
                              "not find its libraries on a node",
                              program.string()));
  }
  for (const auto& library : libraries)
    files.push_back(
        {library, fmt::format("{}/{}", kFolder, library.filename().string()), false, {}});
  return files;
}

/// The link that carried programs name as their loader.
AgentFile loaderLink(std::string_view loader) {
  return {{},
          fmt::format("{}/{}", kFolder, wire::kProgramLoaderName),
          false,
          fmt::format("{}/{}", wire::kCarriedLibcFolder, loader)};
}

/// Of another processor: what lies in glibc/ beside the agent.
Result<std::vector<AgentFile>> foreignLibcFiles(const std::filesystem::path& agent) {
  TRY(binary, io::readFile(agent, kMaxFileBytes));
  TRY(elf, parseElf(binary));
  const auto loader = std::filesystem::path(elf.interpreter).filename().string();
  const auto beside = agent.parent_path() / wire::kCarriedLibcFolder;
  std::error_code error;
  for (const auto& name : {loader, std::string(wire::kLibcName)})
    if (name.empty() || !std::filesystem::is_regular_file(beside / name, error))
      return fail(
          ErrorCode::NotFound,
          fmt::format("{} has no C library beside it ({}): build it by `./run build {}`",
                      agent.string(), (beside / name).string(), nameOfMachine(elf.machine)));
  const auto folder = fmt::format("{}/{}", kFolder, wire::kCarriedLibcFolder);
  std::vector<AgentFile> files{{beside / loader, fmt::format("{}/{}", folder, loader), false, {}}};
  for (const auto part : kLibcParts)
    if (std::filesystem::is_regular_file(beside / part, error))
      files.push_back({beside / part, fmt::format("{}/{}", folder, part), false, {}});
  files.push_back(loaderLink(loader));
  return files;
}

/// The C library that the agent was linked with, and the loader that goes with it.
Result<std::vector<AgentFile>> libcFiles(const std::filesystem::path& agent) {
  TRY(foreign, isForeign(agent));
  if (foreign) return foreignLibcFiles(agent);
  TRY(listed, io::runBlocking(io::Command{.program = "ldd", .args = {agent.string()}}));
  if (listed.code != 0) return std::vector<AgentFile>{};  // linked statically
  TRY(binary, io::readFile(agent, kMaxFileBytes));
  TRY(elf, parseElf(binary));
  const std::string mark = std::string(wire::kLibcName) + " => ";
  const auto at = listed.out.find(mark);
  if (at == std::string::npos || elf.interpreter.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} does not say which C library it needs", agent.string()));
  const auto from = at + mark.size();
  const std::filesystem::path libc = listed.out.substr(from, listed.out.find(" (", from) - from);
  const auto loader = std::filesystem::path(elf.interpreter).filename().string();
  const auto folder = fmt::format("{}/{}", kFolder, wire::kCarriedLibcFolder);
  std::vector<AgentFile> files{{elf.interpreter, fmt::format("{}/{}", folder, loader), false, {}}};
  std::error_code error;
  for (const auto part : kLibcParts)
    if (std::filesystem::is_regular_file(libc.parent_path() / part, error))
      files.push_back({libc.parent_path() / part, fmt::format("{}/{}", folder, part), false, {}});
  files.push_back(loaderLink(loader));
  return files;
}

}  // namespace

Result<std::string> withCarriedLoader(std::string program) {
  TRY(elf, parseElf(program));
  if (elf.interpreter.empty()) return program;  // linked statically
  const std::string_view loader = wire::kProgramLoader;
  if (elf.interpreter_length_bytes <= loader.size())
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("its loader is {}, whose place is too small for {}", elf.interpreter, loader));
  const auto place = program.begin() + static_cast<std::ptrdiff_t>(elf.interpreter_offset_bytes);
  std::fill_n(place, elf.interpreter_length_bytes, '\0');
  std::copy(loader.begin(), loader.end(), place);
  return program;
}

std::filesystem::path agentFor(const std::filesystem::path& agent_binary,
                               Architecture architecture) {
  if (architecture == kBuiltFor) return agent_binary;
  return agent_binary.parent_path() / traitsOf(architecture).name / agent_binary.filename();
}

Result<std::vector<AgentFile>> agentFiles(const std::filesystem::path& agent_binary) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(agent_binary, error)) {
    const auto folder = agent_binary.parent_path().filename();
    for (const auto& traits : kArchitectures)
      if (folder == traits.name)
        return fail(ErrorCode::NotFound,
                    fmt::format("there is no agent for {0} at {1}: install the package "
                                "muster-agent-{0}, or build it by `./run build {0}`",
                                traits.name, agent_binary.string()));
    return fail(ErrorCode::NotFound,
                fmt::format("there is no agent at {}: build muster first", agent_binary.string()));
  }
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
      files.push_back({folder / name, fmt::format("{}/{}", kFolder, name), false, {}});
  TRY(libc, libcFiles(agent_binary));
  std::move(libc.begin(), libc.end(), std::back_inserter(files));
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
    std::string content = "-> " + file.link;
    if (file.link.empty()) {
      TRY(sum, io::sha256File(file.source));
      content = file.program ? fmt::format("{} by {}", sum, wire::kProgramLoader) : sum;
    }
    const std::string line = file.target + " " + content + "\n";
    hash.update(line.data(), line.size());
  }
  return hash.finishHex();
}

Result<void> writeAgentInitrd(const std::vector<AgentFile>& files,
                              const std::filesystem::path& out) {
  Cpio archive;
  for (const char* folder : {"usr", "usr/lib", "usr/lib/muster", "usr/lib/muster/glibc"})
    archive.folder(folder);
  for (const AgentFile& file : files) {
    if (!file.link.empty()) {
      archive.link(file.target, file.link);
      continue;
    }
    TRY(content, io::readFile(file.source, kMaxFileBytes));
    if (file.program) {
      auto started = withCarriedLoader(std::move(content));
      if (!started) return fail(std::move(started).error().within(file.source.string()));
      content = std::move(*started);
    }
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
