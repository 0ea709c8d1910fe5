// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/merge.h"

#include "base/io/regular_file.h"
#include "base/utf8.h"
#include "inventory/parse/foreign_file.h"
#include "inventory/parse/paths.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::inventory {

namespace {

constexpr std::string_view kInclude = "include", kExtends = "extends", kProfiles = "profiles";

void stamp(Value& value, std::uint16_t file) {
  value.file = file;
  for (auto& item : value.items) stamp(item, file);
  for (auto& [key, inner] : value.entries) {
    stamp(key, file);
    stamp(inner, file);
  }
}

class Includes {
 public:
  Includes(Value& root, Reader& reader) : root_(root), reader_(reader) {}

  void run() {
    std::error_code ignored;
    const auto main = std::filesystem::weakly_canonical(
        std::filesystem::absolute(reader_.file, ignored), ignored);
    open_.push_back(main);
    read_.insert(main);
    const Value includes = taken(root_);
    follow(includes);
  }

 private:
  /// The value of `include`, out of the map.
  static Value taken(Value& map) {
    const auto at = std::ranges::find_if(
        map.entries, [](const auto& entry) { return entry.first.text == kInclude; });
    if (at == map.entries.end()) return {};
    Value out = std::move(at->second);
    map.entries.erase(at);
    return out;
  }

  void follow(const Value& includes) {
    if (includes.kind == Value::Kind::Null) return;
    if (includes.kind != Value::Kind::List) {
      reader_.error(includes, fmt::format("include is {}", includes.describe()),
                    "write a list of files: include: [racks.yaml, fabric.yaml]");
      return;
    }
    for (const auto& item : includes.items) {
      if (item.kind != Value::Kind::Scalar || item.text.empty())
        reader_.error(item, fmt::format("include names {}", item.describe()), "name a file");
      else
        add(item);
    }
  }

  void add(const Value& where) {
    const auto path = namedPath(where.text, where, reader_);
    if (!path) return;
    std::error_code ignored;
    const auto real = std::filesystem::weakly_canonical(*path, ignored);
    if (std::ranges::find(open_, real) != open_.end()) {
      std::vector<std::string> circle;
      for (auto at = std::ranges::find(open_, real); at != open_.end(); ++at)
        circle.push_back(at->filename().string());
      circle.push_back(real.filename().string());
      reader_.error(
          where, fmt::format("files include each other in a circle: {}", fmt::join(circle, " → ")),
          "remove one of them");
      return;
    }
    if (!read_.insert(real).second) return;
    if (read_.size() > kMaxIncludedFiles) {
      reader_.error(where, fmt::format("more than {} files are included", kMaxIncludedFiles),
                    "join some");
      return;
    }
    auto text = io::readRegularFile(*path, kMaxYamlBytes);
    if (!text) {
      reader_.error(where, fmt::format("cannot be read: {}", text.error().text()),
                    "name a file, relative to the inventory's folder");
      return;
    }
    bytes_ += text->size();
    if (bytes_ > kMaxIncludedBytes) {
      reader_.error(where, "the included files are larger than 64 MiB together",
                    "move nodes into a CSV");
      return;
    }
    parse(where, *text, real);
  }

  void parse(const Value& where, std::string_view text, const std::filesystem::path& real) {
    const auto shown = (std::filesystem::path(reader_.file).parent_path() / where.text).string();
    // A file that is something else is not quoted: it may hold a secret.
    Diagnostics own;
    auto part = parseYaml(text, shown, own);
    // Nothing of UTF-16 is quoted: that its form is wrong is all that is told.
    if (wideEncodingOf(text).empty() && !hasKeyOf(*clusterSpec(), part, text)) {
      reader_.error(where, fmt::format("{} is no part of an inventory", shorten(where.text)),
                    "it holds sections, as profiles: {…}");
      return;
    }
    for (const auto& one : own.all()) {
      reader_.errors += one.severity == Severity::Error;
      one.severity == Severity::Error
          ? reader_.diagnostics.error(one.where, one.text, one.suggestion)
          : reader_.diagnostics.warning(one.where, one.text, one.suggestion);
    }
    if (!part) return;
    const auto file = reader_.addFile(shown);
    stamp(*part, file);
    const Value includes = taken(*part);
    join(std::move(*part));
    open_.push_back(real);
    follow(includes);
    open_.pop_back();
  }

  void join(Value part) {
    for (auto& [key, value] : part.entries) {
      const auto known = std::ranges::find_if(
          root_.entries, [&key](const auto& entry) { return entry.first.text == key.text; });
      if (known == root_.entries.end())
        root_.entries.push_back({std::move(key), std::move(value)});
      else
        joinSection(known->second, key, std::move(value));
    }
  }

  void joinSection(Value& section, const Value& key, Value more) {
    if (section.kind == Value::Kind::List && more.kind == Value::Kind::List) {
      std::ranges::move(more.items, std::back_inserter(section.items));
      return;
    }
    if (section.kind != Value::Kind::Map || more.kind != Value::Kind::Map) {
      reader_.error(key,
                    fmt::format("\"{}\" is also declared at {}", shorten(key.text),
                                reader_.at(section).str()),
                    "keep one");
      return;
    }
    std::map<std::string_view, const Value*> known;
    for (const auto& [name, value] : section.entries) known.emplace(name.text, &name);
    std::vector<Value::Entry> added;
    for (auto& entry : more.entries) {
      if (const auto first = known.find(entry.first.text); first != known.end())
        reader_.error(entry.first,
                      fmt::format("{} of {} is also declared at {}", shorten(entry.first.text),
                                  shorten(key.text), reader_.at(*first->second).str()),
                      "keep one");
      else
        added.push_back(std::move(entry));
    }
    std::ranges::move(added, std::back_inserter(section.entries));
  }

  Value& root_;
  Reader& reader_;
  std::vector<std::filesystem::path> open_;  ///< from the inventory to the file that is read
  std::set<std::filesystem::path> read_;
  std::size_t bytes_ = 0;
};

class Extensions {
 public:
  Extensions(Value& profiles, Reader& reader) : profiles_(profiles), reader_(reader) {
    for (auto& [name, map] : profiles.entries) maps_.emplace(name.text, &map);
  }

  void run() {
    for (auto& [name, map] : profiles_.entries) resolve(name.text);
  }

 private:
  enum class State { Open, Done };

  /// Answers whether the profile has all its keys.
  bool resolve(const std::string& name) {
    Value& map = *maps_.at(name);
    const auto [state, is_new] = states_.emplace(name, State::Open);
    if (!is_new) return state->second == State::Done;
    const Value* base = map.kind == Value::Kind::Map ? map.find(kExtends) : nullptr;
    chain_.push_back(name);
    const bool is_whole = !base || extend(map, *base);
    chain_.pop_back();
    states_[name] = State::Done;
    return is_whole;
  }

  bool extend(Value& map, const Value& base) {
    if (base.kind != Value::Kind::Scalar) return false;  // said where the profile is read
    const auto known = maps_.find(base.text);
    if (known == maps_.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, value] : maps_) names.push_back(name);
      reader_.error(base, fmt::format("profile {} is not declared", shorten(base.text)),
                    didYouMean(base.text, names));
      return false;
    }
    if (const auto open = std::ranges::find(chain_, base.text); open != chain_.end()) {
      std::vector<std::string> circle(open, chain_.end());
      circle.push_back(base.text);
      reader_.error(
          base, fmt::format("profiles extend each other in a circle: {}", fmt::join(circle, " → ")),
          "remove one of them");
      return false;
    }
    if (!resolve(base.text) || known->second->kind != Value::Kind::Map) return false;
    std::vector<Value::Entry> inherited;
    for (const auto& entry : known->second->entries)
      if (entry.first.text != kExtends && !map.find(entry.first.text)) inherited.push_back(entry);
    std::ranges::move(inherited, std::back_inserter(map.entries));
    return true;
  }

  Value& profiles_;
  Reader& reader_;
  std::map<std::string, Value*, std::less<>> maps_;
  std::map<std::string, State> states_;
  std::vector<std::string> chain_;
};

}  // namespace

void includeFiles(Value& root, Reader& reader) { Includes(root, reader).run(); }

void extendProfiles(Value& root, Reader& reader) {
  for (auto& [key, value] : root.entries)
    if (key.text == kProfiles && value.kind == Value::Kind::Map) Extensions(value, reader).run();
}

}  // namespace muster::inventory
