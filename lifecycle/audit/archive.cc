// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/audit/archive.h"

#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "lifecycle/model/json.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace muster::lifecycle {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFormat = "muster-audit/1";
constexpr std::size_t kPageEntries = 10'000;

json markJson(const AuditMark& mark) { return {{"link", mark.link}, {"hash", mark.hash}}; }

std::string lineOf(const AuditEntry& entry) {
  const auto& event = entry.event;
  return jsonText(json{{"sequence", event.sequence},
                       {"link", entry.link},
                       {"at_ms", event.at.time_since_epoch().count()},
                       {"kind", toString(event.kind)},
                       {"subject", event.subject.str()},
                       {"action", event.action_id},
                       {"text", event.text},
                       {"hash", entry.hash}}) +
         "\n";
}

AuditEntry entryFrom(const json& line) {
  AuditEntry entry;
  entry.event.sequence = line.at("sequence").get<std::int64_t>();
  entry.event.at = WallTime(std::chrono::milliseconds(line.at("at_ms").get<std::int64_t>()));
  entry.event.kind = parseEventKind(line.at("kind").get<std::string>()).value_or(EventKind::Note);
  entry.event.subject = Subject::parse(line.at("subject").get<std::string>());
  entry.event.action_id = line.at("action").get<std::string>();
  entry.event.text = line.at("text").get<std::string>();
  entry.link = line.at("link").get<std::int64_t>();
  entry.hash = line.at("hash").get<std::string>();
  return entry;
}

AuditMark markFrom(const json& source) {
  return {source.at("link").get<std::int64_t>(), source.at("hash").get<std::string>()};
}

std::string noArchive(const fs::path& file) {
  return fmt::format(
      "{} is no archive of a log ({}): name a file that `muster audit archive` wrote",
      file.string(), kFormat);
}

std::string damaged(const fs::path& file, std::int64_t line) {
  return fmt::format("{}:{}: the line is damaged: it lacks a value, or one is of another kind",
                     file.string(), line);
}

/// A file that is there whole or not at all.
class WholeFile {
 public:
  explicit WholeFile(fs::path file) : file_(std::move(file)), part_(file_.string() + ".part") {}
  WholeFile(const WholeFile&) = delete;
  ~WholeFile() {
    std::error_code ignored;
    if (!done_) fs::remove(part_, ignored);
  }
  Result<void> open() {
    fd_ = io::Fd(::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    return fd_.valid() ? Result<void>() : trouble();
  }
  Result<void> write(std::string_view text) {
    while (!text.empty()) {
      const auto n = ::write(fd_.get(), text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return trouble();
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }
  /// On the disk, under its name. Never over another file.
  Result<void> finish() {
    if (::fsync(fd_.get()) != 0) return trouble();
    if (::link(part_.c_str(), file_.c_str()) != 0) return trouble();
    const auto parent = file_.parent_path();
    const io::Fd folder(
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid() || ::fsync(folder.get()) != 0) return trouble();
    std::error_code ignored;
    fs::remove(part_, ignored);
    done_ = true;
    return {};
  }

 private:
  std::unexpected<Error> trouble() const {
    return fail(errno == EEXIST ? ErrorCode::Conflict : ErrorCode::Unavailable,
                fmt::format("{}: {}", file_.string(), std::strerror(errno)));
  }
  const fs::path file_, part_;
  io::Fd fd_;
  bool done_ = false;
};

Result<AuditArchive> writeArchive(Store& store, const AuditEnds& ends, WallTime before,
                                  const fs::path& file) {
  AuditArchive out;
  out.after = out.end = ends.archived;
  WholeFile whole(file);
  TRY_OK(whole.open());
  TRY_OK(whole.write(jsonText(json{{"format", kFormat}, {"after", markJson(out.after)}}) + "\n"));
  bool more = true;
  for (std::int64_t after = ends.begins_after; more;) {
    TRY(page, store.auditTrail(after, kPageEntries));
    for (const auto& entry : page) {
      if (entry.link == 0) continue;
      if (entry.event.at >= before) {
        more = false;
        break;
      }
      TRY_OK(whole.write(lineOf(entry)));
      ++out.entries;
      out.end = {entry.link, entry.hash};
      out.last_sequence = entry.event.sequence;
    }
    if (page.size() < kPageEntries) break;
    after = page.back().event.sequence;
  }
  if (out.entries == 0)
    return fail(ErrorCode::NotFound,
                fmt::format("no entry of the log is older than {}", muster::toString(before)));
  const json end = {{"entries", out.entries},
                    {"link", out.end.link},
                    {"hash", out.end.hash},
                    {"sequence", out.last_sequence}};
  TRY_OK(whole.write(jsonText(json{{"end", end}}) + "\n"));
  TRY_OK(whole.finish());
  return out;
}

/// The archive that an earlier try has finished, but whose entries the store still has.
Result<AuditArchive> goOnWith(const AuditEnds& ends, const fs::path& file) {
  if (const auto kind = io::irregularKind(file); !kind.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {}, not a regular file; it was left as it is: take another name",
                            file.string(), kind));
  auto known = readArchive(file);
  const bool fits = known && known->ok() && known->entries > 0 &&
                    (known->after == ends.archived || known->end == ends.archived);
  if (!fits)
    return fail(ErrorCode::Conflict,
                file.string() + " exists, and is not the beginning of this log; take another name");
  return known;
}

}  // namespace

Result<AuditArchive> readArchive(const fs::path& file) {
  if (const auto kind = io::irregularKind(file); !kind.empty())  // may never end
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {}, not a regular file", file.string(), kind));
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(ErrorCode::NotFound, file.string() + " cannot be read");
  AuditArchive out;
  std::int64_t number = 0;
  bool ended = false;
  try {
    for (std::string text; std::getline(in, text);) {
      const auto line = jsonOrNone(text, kArchiveJson);
      if (!line.is_object())
        return fail(ErrorCode::Corrupt, number == 0 ? noArchive(file) : damaged(file, number + 1));
      if (ended)
        return fail(ErrorCode::Corrupt,
                    fmt::format("{}:{}: something follows the end", file.string(), number + 1));
      if (++number == 1) {
        if (line.value("format", "") != kFormat) return fail(ErrorCode::Corrupt, noArchive(file));
        out.after = out.end = markFrom(line.at("after"));
        continue;
      }
      if (line.contains("end")) {
        const auto& end = line["end"];
        ended = true;
        out.last_sequence = end.at("sequence").get<std::int64_t>();
        if (end.at("entries").get<std::int64_t>() != out.entries || markFrom(end) != out.end)
          out.problems.push_back(
              fmt::format("its end names {} entries and link {}, {} are there and the last is link "
                          "{}: some were removed",
                          end.at("entries").get<std::int64_t>(), end.at("link").get<std::int64_t>(),
                          out.entries, out.end.link));
        continue;
      }
      const auto entry = entryFrom(line);
      ++out.entries;
      const bool follows =
          entry.link == out.end.link + 1 && chainHash(out.end.hash, entry) == entry.hash;
      if (!follows && out.problems.size() < kMaxAuditProblems)
        out.problems.push_back(
            fmt::format("line {} (link {}, {}: '{}') does not follow from link {}: it was changed, "
                        "moved or inserted, or one before it was removed",
                        number, entry.link, muster::toString(entry.event.at),
                        cutToBytes(entry.event.text, 60), out.end.link));
      out.end = {entry.link, entry.hash};
    }
  } catch (const json::exception&) {
    return fail(ErrorCode::Corrupt, damaged(file, number));
  }
  if (!ended) return fail(ErrorCode::Corrupt, file.string() + " has no end: it was cut off");
  return out;
}

Result<AuditArchive> archiveAudit(Store& store, WallTime before, const fs::path& file) {
  TRY(report, verifyAudit(store, ""));
  if (!report.ok())
    return fail(ErrorCode::Conflict,
                "the chain is broken, so nothing is moved: " + report.problems.front());
  std::error_code ignored;
  auto made = fs::exists(file, ignored) ? goOnWith(report.ends, file)
                                        : writeArchive(store, report.ends, before, file);
  if (!made || made->end == report.ends.archived)
    return made;  // the latter: an earlier try has finished
  if (auto dropped = store.dropArchived(made->last_sequence, made->end); !dropped)
    return std::unexpected(std::move(dropped).error().within(
        fmt::format("{} is whole, but its {} entries are still in the store, too; give the same "
                    "command again once this is mended",
                    file.string(), made->entries)));
  return made;
}

}  // namespace muster::lifecycle
