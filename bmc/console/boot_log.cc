// SPDX-License-Identifier: Apache-2.0
#include "bmc/console/boot_log.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace muster::bmc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAbout = "about.json";
const std::string kPiece = "bytes-";
constexpr std::size_t kPieceLimit = std::max(kHeadBytes, kTailBytes);
constexpr std::size_t kMaxAboutBytes = 16u << 10;

/// The numbers of the entries PREFIX+NUMBER that are there, in order.
Result<std::vector<int>> numbersIn(const fs::path& folder, const std::string& prefix = {}) {
  std::vector<int> numbers;
  std::error_code error;
  if (!fs::exists(folder, error)) return numbers;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    int number = 0;
    const auto [end, wrong] =
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    if (wrong == std::errc() && end == name.data() + name.size() && number >= 0)
      numbers.push_back(number);
  }
  if (error)
    return fail(ErrorCode::Unavailable, fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

KeptBoot aboutOf(const fs::path& folder, int number) {
  KeptBoot boot{number, {}, "unknown"};
  const auto text = io::readFile(folder / kAbout, kMaxAboutBytes);
  const auto json = text ? jsonOrNone(*text, kKeptJson) : nlohmann::json();
  if (!json.is_object()) return boot;
  if (const auto at = parseWallTime(json.value("began", ""))) boot.began = *at;
  boot.why = json.value("why", boot.why);
  return boot;
}

/// Where a piece begins, counted from the boot's first byte: those before it are full.
std::uint64_t beginOf(int piece) {
  return piece == 0 ? 0 : kHeadBytes + static_cast<std::uint64_t>(piece - 1) * kTailBytes;
}

}  // namespace

Result<void> BootLog::openNext() {
  const auto path = folder_ / (kPiece + std::to_string(next_));
  io::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid())
    return fail(ErrorCode::Unavailable, fmt::format("{}: {}", path.string(), std::strerror(errno)));
  file_ = std::move(file);
  room_ = next_ == 0 ? kHeadBytes : kTailBytes;
  std::error_code ignored;
  if (next_ > 2) fs::remove(folder_ / (kPiece + std::to_string(next_ - 2)), ignored);
  ++next_;
  return {};
}

Result<void> BootLog::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (room_ == 0) TRY_OK(openNext());
    const auto count = ::write(file_.get(), bytes.data(), std::min(bytes.size(), room_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return fail(ErrorCode::Unavailable, fmt::format("the console in {} cannot be kept: {}",
                                                      folder_.string(), std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(count));
    room_ -= static_cast<std::size_t>(count);
  }
  return {};
}

Result<BootLog> BootLogArchive::begin(WallTime now, const std::string& why) {
  TRY_OK(io::makeDirs(folder_, 0700));
  TRY(numbers, numbersIn(folder_));
  const int number = numbers.empty() ? 1 : numbers.back() + 1;
  const auto folder = folder_ / std::to_string(number);
  TRY_OK(io::makeDirs(folder, 0700));
  TRY_OK(io::writeFileAtomic(
      folder / kAbout, jsonText(nlohmann::json{{"began", toString(now)}, {"why", why}}), 0600));
  std::error_code ignored;
  for (std::size_t i = 0; i + kKeptBoots - 1 < numbers.size(); ++i)
    fs::remove_all(folder_ / std::to_string(numbers[i]), ignored);
  return BootLog(number, folder);
}

Result<std::vector<KeptBoot>> BootLogArchive::boots() const {
  TRY(numbers, numbersIn(folder_));
  std::vector<KeptBoot> out;
  for (const int number : numbers) out.push_back(aboutOf(folder_ / std::to_string(number), number));
  return out;
}

Result<std::string> BootLogArchive::read(int number) const {
  const auto folder = folder_ / std::to_string(number);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(ErrorCode::NotFound, fmt::format("no boot {} is kept", number));
  TRY(pieces, numbersIn(folder, kPiece));
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && pieces[i] != pieces[i - 1] + 1)
      out += "\r\n[muster: what came between is not kept]\r\n";
    out += io::readFile(folder / (kPiece + std::to_string(pieces[i])), kPieceLimit)
               .value_or(std::string());
  }
  return out;
}

Result<BootPart> BootLogArchive::readFrom(int number, std::uint64_t from, std::size_t limit) const {
  const auto folder = folder_ / std::to_string(number);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(ErrorCode::NotFound, fmt::format("no boot {} is kept", number));
  TRY(pieces, numbersIn(folder, kPiece));
  BootPart out{{}, from, from};
  for (const int piece : pieces) {
    const auto begin = beginOf(piece);
    const auto text = io::readFile(folder / (kPiece + std::to_string(piece)), kPieceLimit)
                          .value_or(std::string());
    if (begin + text.size() <= out.next) continue;
    if (begin > out.next) {
      if (!out.bytes.empty()) break;  // what comes behind a gap is another part
      out.from = out.next = begin;
    }
    const auto room = limit - out.bytes.size();
    const auto more = text.substr(static_cast<std::size_t>(out.next - begin), room);
    out.bytes += more;
    out.next += more.size();
    if (out.bytes.size() == limit) break;
  }
  return out;
}

}  // namespace muster::bmc
