// SPDX-License-Identifier: Apache-2.0
#include "api/static_files.h"

#include "base/embedded.h"
#include "base/io/crypto.h"
#include "base/io/gzip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace muster::api {

/// web/, by cmake/embed.cmake.
std::span<const EmbeddedFile> webFiles();

namespace {

struct File {
  std::string_view content;
  std::string_view type;
  std::string etag;
  std::string packed;  ///< gzip
  std::string policy;
};

struct TypeRow {
  std::string_view suffix, type;
};
constexpr std::array<TypeRow, 9> kTypes{{{".html", "text/html; charset=utf-8"},
                                         {".js", "text/javascript; charset=utf-8"},
                                         {".mjs", "text/javascript; charset=utf-8"},
                                         {".css", "text/css; charset=utf-8"},
                                         {".json", "application/json"},
                                         {".svg", "image/svg+xml"},
                                         {".png", "image/png"},
                                         {".ico", "image/x-icon"},
                                         {".txt", "text/plain; charset=utf-8"}}};

/// Nothing from elsewhere, no frame around it, nothing inline but the import map of index.html,
/// which is known by its digest.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'{}; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
constexpr std::string_view kImportMap = "<script type=\"importmap\">";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const auto here = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= here ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

/// The policy of a page (CSP 3, 2.3.1: hash-source): its import map is what was built in.
std::string policyOf(std::string_view page) {
  const auto begin = page.find(kImportMap);
  if (begin == std::string_view::npos) return fmt::format(kPolicy, "");
  const auto map = page.substr(begin + kImportMap.size());
  return fmt::format(
      kPolicy,
      fmt::format(" 'sha256-{}'", base64(io::sha256(map.substr(0, map.find("</script>"))))));
}

std::string_view typeOf(std::string_view name) {
  for (const auto& row : kTypes)
    if (name.ends_with(row.suffix)) return row.type;
  return "application/octet-stream";
}

std::map<std::string, File> makeFiles() {
  std::map<std::string, File> out;
  for (const auto& file : webFiles())
    out.emplace("/" + std::string(file.name),
                File{file.content, typeOf(file.name),
                     fmt::format("\"{}\"", io::sha256Hex(file.content).substr(0, 24)),
                     io::gzip(file.content).value_or(""),
                     policyOf(typeOf(file.name).starts_with("text/html") ? file.content : "")});
  return out;
}

}  // namespace

io::ServerResponse staticFile(const io::ServerRequest& request) {
  static const auto files = makeFiles();
  auto path = request.path();
  if (path == "/") path = "/index.html";
  const auto found = files.find(path);
  if (found == files.end()) return io::ServerResponse::text(404, "there is no such file\n");
  const auto& file = found->second;
  auto out = io::ServerResponse::text(200, "");
  out.headers = {{"Content-Type", std::string(file.type)},
                 {"ETag", file.etag},
                 {"Cache-Control", "no-cache"},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Vary", "Accept-Encoding"},
                 {"Content-Security-Policy", file.policy}};
  if (const auto known = request.headers.find("If-None-Match");
      known != request.headers.end() && known->second.find(file.etag) != std::string::npos) {
    out.status = 304;
    return out;
  }
  const auto takes = request.headers.find("Accept-Encoding");
  const bool packed = takes != request.headers.end() && io::acceptsGzip(takes->second) &&
                      !file.packed.empty() && file.packed.size() < file.content.size();
  if (packed) out.headers["Content-Encoding"] = "gzip";
  out.body = packed ? file.packed : std::string(file.content);
  return out;
}

}  // namespace muster::api
