// SPDX-License-Identifier: Apache-2.0
#include "api/static_files.h"

#include "base/embedded.h"
#include "base/io/crypto.h"
#include "base/io/gzip.h"

#include <fmt/format.h>

#include <array>
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

/// Nothing from elsewhere, nothing inline, no frame around it.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

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
                     io::gzip(file.content).value_or("")});
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
                 {"Content-Security-Policy", std::string(kPolicy)}};
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
