// SPDX-License-Identifier: Apache-2.0
// Secrets: where they come from. Files and variables are looked at when the inventory is read,
// commands run only at the moment of use.
#include "base/io/regular_file.h"
#include "inventory/model/credentials.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <cstdlib>

namespace muster::inventory {

namespace {
constexpr std::size_t kMaxSecretBytes = 64u << 10;
}

void checkSecretFile(const std::filesystem::path& path, const Value& where, Reader& reader) {
  if (!reader.sees_secrets) return;
  std::string shown = path.lexically_relative(reader.folder).string();
  if (shown.empty() || shown.starts_with("..")) shown = path.string();
  auto error = [&](std::string_view what, std::string hint) {
    reader.error(where, fmt::format("the secret's file {} {}", shown, what), std::move(hint));
  };
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return error("does not exist", fmt::format("make it: (umask 077; mkdir -p {}; cat > {})",
                                               path.parent_path().string(), path.string()));
  if (!S_ISREG(status.st_mode))
    return error("is not a regular file", "name a file that holds the secret in one line");
  const auto content = io::readRegularFile(path, kMaxSecretBytes);
  if (!content && content.error().code() == ErrorCode::InvalidInput)
    return error(fmt::format("has more than {} KiB", kMaxSecretBytes >> 10),
                 "name a file that holds the secret in one line");
  if (!content)
    return error("cannot be read",
                 fmt::format("give it to the user that runs muster: chown … {}", path.string()));
  const auto line = content->substr(0, content->find('\n'));
  if (line.empty() || line == "\r") return error("is empty", "write the secret into it");
  if (status.st_mode & S_IROTH)
    reader.warning(where,
                   fmt::format("everybody on this machine can read the secret's file {}", shown),
                   fmt::format("chmod 600 {}", path.string()));
}

namespace {

using Json = nlohmann::json;

ObjectSpec make_secretSpec() {
  return Table<SecretRef>(
             "secret", "secret",
             "Where a secret comes from. A secret itself never stands in the inventory.")
      .custom("file", false, text(kPath), "A file; its content without the line end at its end.",
              [](SecretRef& secret, const Value& value, const Shape& shape, Reader& reader) {
                std::filesystem::path path;
                readInto(path, value, shape, reader);
                if (path.empty()) return;
                checkSecretFile(path, value, reader);
                secret.source = std::move(path);
              })
      .prints([](const SecretRef& secret, const Printer& printer) -> Json {
        const auto* file = std::get_if<std::filesystem::path>(&secret.source);
        return file ? Json(printer.path(*file)) : Json();
      })
      .custom("env", false, text(kEnvName), "An environment variable of muster's process.",
              [](SecretRef& secret, const Value& value, const Shape& shape, Reader& reader) {
                readInto(secret.env, value, shape, reader);
                if (secret.env.empty() || !reader.sees_secrets) return;
                const char* content = std::getenv(secret.env.c_str());
                if (!content || !*content)
                  reader.error(value,
                               fmt::format("the environment variable {} is {}", secret.env,
                                           content ? "empty" : "not set"),
                               fmt::format("export {}=… before muster starts", secret.env));
              })
      .prints([](const SecretRef& secret, const Printer&) -> Json { return secret.env; })
      .custom("command", false, text(kCommand),
              "A command line for sh; the first line that it prints is the secret. Run only when "
              "the secret is needed.",
              [](SecretRef& secret, const Value& value, const Shape& shape, Reader& reader) {
                std::string command;
                readInto(command, value, shape, reader);
                if (!command.empty()) secret.source = std::move(command);
              })
      .prints([](const SecretRef& secret, const Printer&) -> Json {
        // Of a command only the program: its arguments may hold anything.
        const auto* line = std::get_if<std::string>(&secret.source);
        return line ? Json(line->substr(0, line->find(' '))) : Json();
      })
      .exactlyOne({"file", "env", "command"})
      .secret()
      .spec();
}

}  // namespace

MUSTER_SPEC(secretSpec)

}  // namespace muster::inventory
