// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/printable.h"

#include <openssl/crypto.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <sys/stat.h>

#include <cstdio>
#include <iostream>
#include <mutex>

namespace muster {

namespace {

constexpr std::size_t kMaxFileBytes = 32u << 20;
constexpr std::size_t kOldFiles = 4;  ///< muster.1.log … muster.4.log

spdlog::level::level_enum levelOf(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::sink_ptr openSink(const std::filesystem::path& file) {
  if (file.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  // A FIFO would hold whoever opens it up until somebody reads, for ever.
  if (struct stat status{}; ::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    std::cerr << "muster: " << file.string()
              << " is no regular file, so the log goes to stderr; remove it\n";
    return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  try {
    spdlog::file_event_handlers own;
    own.after_open = [](const spdlog::filename_t&, std::FILE* opened) {
      (void)::fchmod(::fileno(opened), 0600);
    };
    return std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file.string(), kMaxFileBytes,
                                                                  kOldFiles, false, own);
  } catch (const spdlog::spdlog_ex&) {
    return std::make_shared<spdlog::sinks::stderr_sink_mt>();  // a log on stderr is better than
                                                               // none
  }
}

}  // namespace

void startLog(const std::filesystem::path& file, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("muster", openSink(file));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  logger->set_level(levelOf(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void logText(LogLevel level, std::string_view area, std::string_view text) {
  // Before startLog only problems are shown: a library must not chatter on the stdout of a program
  // that did not ask for it.
  static std::once_flag quiet;
  std::call_once(quiet, [] {
    if (spdlog::default_logger()->name().empty()) startLog({}, LogLevel::Warning);
  });
  spdlog::default_logger_raw()->log(levelOf(level), "{}: {}", area,
                                    printable(text));  // one record is one line, whoever spoke
}

Secret::~Secret() { OPENSSL_cleanse(value_.data(), value_.capacity()); }

}  // namespace muster
