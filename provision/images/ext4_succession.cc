// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext4_succession.h"

#include "base/io/process.h"
#include "provision/images/disk_check.h"
#include "provision/images/ext_edit.h"
#include "provision/images/ext_tree.h"
#include "provision/images/system_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace muster::provision {

namespace {

constexpr std::uint64_t kGrowStepBlocks = 4096;  ///< 16 MiB, as makeExt4 rounds
constexpr std::uint64_t kExtentRoomBlocks =
    64;                                      ///< for extents of files in more pieces than before
constexpr std::uint64_t kFreeInodes = 1024;  ///< for what a node adds
constexpr std::chrono::minutes kResizeLimit{10};

std::unexpected<Error> layOutAnew(std::string why) {
  return fail(ErrorCode::Conflict, std::move(why));
}

/// Both by makeExt4, by the same parameters, and never mounted: then nothing is in them that this
/// code does not know (indexes of folders, unwritten extents, shared attributes).
Result<void> expectOurs(ext2_filsys image, ext2_filsys fresh) {
  const auto& a = *image->super;
  const auto& b = *fresh->super;
  if (std::memcmp(a.s_uuid, b.s_uuid, sizeof a.s_uuid) != 0 || !hasImageUuid(a.s_uuid) ||
      image->blocksize != fresh->blocksize || EXT2_INODE_SIZE(&a) != EXT2_INODE_SIZE(&b) ||
      a.s_feature_compat != b.s_feature_compat || a.s_feature_incompat != b.s_feature_incompat ||
      a.s_feature_ro_compat != b.s_feature_ro_compat)
    return layOutAnew("the file system of one of them was not made by muster, or by another one");
  if (a.s_mtime != 0 || b.s_mtime != 0 || (a.s_state & EXT2_VALID_FS) == 0)
    return layOutAnew("the file system has been mounted");
  return {};
}

/// What becomes of an inode of the fresh tree.
struct Target {
  const ExtNode* before = nullptr;  ///< in the predecessor; none: it is new
  bool same_content = false, same_attributes = false, same_inode = false;
};

struct Plan {
  std::map<ext2_ino_t, Target> targets;  ///< by inode of the fresh tree
  std::set<ext2_ino_t> removed;          ///< of the predecessor
  std::uint64_t content_blocks = 0, new_blocks = 0, freed_blocks = 0;
  std::uint64_t new_inodes = 0;
};

int typeOf(const ExtNode& node) { return node.inode().i_mode & LINUX_S_IFMT; }

/// The inode of the predecessor that a file goes on in: the one of the same name and type.
const ExtNode* byName(const ExtTree& before, const ExtNode& node,
                      const std::set<ext2_ino_t>& taken) {
  for (const auto& path : node.paths) {
    const ExtNode* found = before.find(path);
    if (found != nullptr && typeOf(*found) == typeOf(node) && !taken.contains(found->number))
      return found;
  }
  return nullptr;
}

/// Files that were renamed keep their blocks: by size and SHA-256 among what has no other use.
Result<void> matchRenamed(const ExtTree& before, const ExtTree& fresh, std::set<ext2_ino_t>& taken,
                          Plan& plan) {
  std::multimap<std::uint64_t, const ExtNode*> left;  // by size
  for (const auto& [number, node] : before.nodes())
    if (node.isRegular() && node.sizeBytes() > 0 && !taken.contains(number))
      left.emplace(node.sizeBytes(), &node);
  std::map<ext2_ino_t, std::string> digests;
  for (auto& [number, target] : plan.targets) {
    const ExtNode& node = fresh.node(number);
    const auto [first, last] = left.equal_range(node.sizeBytes());
    if (target.before != nullptr || !node.isRegular() || first == last) continue;
    TRY(wanted, fresh.digest(node));
    for (auto it = first; it != last; ++it) {
      auto known = digests.find(it->second->number);
      if (known == digests.end()) {
        TRY(digest, before.digest(*it->second));
        known = digests.emplace(it->second->number, digest).first;
      }
      if (known->second != wanted) continue;
      target.before = it->second;
      taken.insert(it->second->number);
      left.erase(it);
      break;
    }
  }
  return {};
}

/// Whether a folder names the same inodes of the predecessor under the same names. One that does
/// not is written anew, beside other new content: its block mostly lies among files that stay.
bool keepsEntries(const ExtNode& node, const ExtNode& before,
                  const std::map<ext2_ino_t, Target>& targets) {
  return std::equal(node.entries.begin(), node.entries.end(), before.entries.begin(),
                    before.entries.end(), [&targets](const ExtEntry& now, const ExtEntry& was) {
                      const ExtNode* target = targets.at(now.inode).before;
                      return now.name == was.name && now.type == was.type && target != nullptr &&
                             target->number == was.inode;
                    });
}

Result<bool> keepsContent(const ExtTree& fresh, const ExtNode& node, const ExtTree& before,
                          const std::map<ext2_ino_t, Target>& targets) {
  const ExtNode& old = *targets.at(node.number).before;
  if (node.isFolder()) return keepsEntries(node, old, targets);
  if (fresh.hasBlocks(node) != before.hasBlocks(old)) return false;  // a link that was long
  return sameContent(fresh, node, before, old);
}

Result<Plan> planSuccession(const ExtTree& before, const ExtTree& fresh) {
  Plan plan;
  std::set<ext2_ino_t> taken;
  for (const auto& [path, number] : fresh.paths()) {
    const ExtNode& node = fresh.node(number);
    if (node.paths.front() != path) continue;
    Target& target = plan.targets[number];
    target.before = byName(before, node, taken);
    if (target.before != nullptr) taken.insert(target.before->number);
  }
  TRY_OK(matchRenamed(before, fresh, taken, plan));
  for (auto& [number, target] : plan.targets) {
    const ExtNode& node = fresh.node(number);
    plan.content_blocks += fresh.blocks(node);
    if (target.before == nullptr) {
      ++plan.new_inodes;
      plan.new_blocks += fresh.blocks(node);
      continue;
    }
    TRY(same_content, keepsContent(fresh, node, before, plan.targets));
    TRY(same_attributes, sameAttributeBlock(fresh, node, before, *target.before));
    target.same_content = same_content;
    target.same_attributes = same_attributes;
    target.same_inode = sameInode(fresh, node, before, *target.before);
    if (!target.same_content || !same_attributes) {
      plan.new_blocks += fresh.blocks(node);
      plan.freed_blocks += before.blocks(*target.before);
    }
  }
  for (const auto& [number, node] : before.nodes())
    if (!taken.contains(number)) {
      plan.removed.insert(number);
      plan.freed_blocks += before.blocks(node);
    }
  return plan;
}

std::uint64_t totalBlocks(ext2_filsys fs) { return ext2fs_blocks_count(fs->super); }
std::uint64_t freeBlocks(ext2_filsys fs) { return ext2fs_free_blocks_count(fs->super); }

std::uint64_t times(std::uint64_t count, double factor) {
  return static_cast<std::uint64_t>(static_cast<double>(count) * factor);
}

/// Blocks that the file system must have; at least those that it has.
Result<std::uint64_t> blocksNeeded(ext2_filsys image, ext2_filsys fresh, const Plan& plan,
                                   std::uint64_t empty_chunk_blocks) {
  const std::uint64_t has = totalBlocks(image), as_fresh = totalBlocks(fresh);
  if (has > times(as_fresh, kMaxKeptSize))
    return layOutAnew(fmt::format("the predecessor has {} MiB, a fresh file system {} MiB",
                                  has >> 8, as_fresh >> 8));
  if (plan.new_blocks > times(plan.content_blocks, kMaxNewShare))
    return layOutAnew(fmt::format("{} of {} blocks are new", plan.new_blocks, plan.content_blocks));
  if (image->super->s_free_inodes_count + plan.removed.size() < plan.new_inodes + kFreeInodes)
    return layOutAnew("the predecessor has too few inodes");
  const std::uint64_t wanted = plan.new_blocks + kExtentRoomBlocks;
  const std::uint64_t free_after = freeBlocks(image) + plan.freed_blocks;
  const std::uint64_t room = std::max(freeBlocks(fresh), kExtentRoomBlocks) + plan.new_blocks;
  const auto missing = [](std::uint64_t need, std::uint64_t there) {
    return need > there ? need - there : 0;
  };
  const auto rounded = [](std::uint64_t blocks) {
    return (blocks + kGrowStepBlocks - 1) / kGrowStepBlocks * kGrowStepBlocks;
  };
  const std::uint64_t must = has + rounded(missing(room, free_after)),
                      should = has + rounded(std::max(missing(wanted, empty_chunk_blocks),
                                                      missing(room, free_after)));
  const std::uint64_t limit = std::max(has, times(as_fresh, kMaxGrownSize));
  if (must > std::max(limit, as_fresh + kGrowStepBlocks))
    return layOutAnew(fmt::format("the file system would need {} MiB, a fresh one {} MiB",
                                  must >> 8, as_fresh >> 8));
  return std::max(must, std::min(should, limit / kGrowStepBlocks * kGrowStepBlocks));
}

Result<void> grow(const std::filesystem::path& image, std::uint64_t blocks,
                  std::uint32_t block_bytes) {
  io::Command command{
      .program = "resize2fs",
      .args = {"-f", image.string(), fmt::format("{}k", blocks * (block_bytes / 1024))}};
  command.env = {{"E2FSPROGS_FAKE_TIME", std::to_string(kImageEpochSeconds)}, {"LC_ALL", "C"}};
  command.timeout = kResizeLimit;
  auto done = io::runChecked(command);
  if (!done) return fail(std::move(done).error().within("enlarging the file system"));
  return {};
}

/// Gives back what the new tree does not need.
Result<void> release(ExtEditor& editor, const ExtTree& before, const Plan& plan) {
  for (const auto& [number, target] : plan.targets) {
    if (target.before == nullptr) continue;
    if (!target.same_content) TRY_OK(editor.releaseContent(*target.before));
    if (!target.same_attributes) TRY_OK(editor.releaseAttributes(*target.before));
    if (!target.same_content || !target.same_attributes || !target.same_inode)
      editor.noteChanged(target.before->number);
  }
  for (const ext2_ino_t number : plan.removed) {
    TRY_OK(editor.releaseContent(before.node(number)));
    TRY_OK(editor.releaseAttributes(before.node(number)));
    TRY_OK(editor.releaseInode(before.node(number)));
  }
  return {};
}

/// Writes what is new or has changed, in the order of names.
Result<void> write(ExtEditor& editor, const ExtTree& fresh, const Plan& plan) {
  InodeMap numbers;
  for (const auto& [path, number] : fresh.paths()) {
    if (numbers.contains(number)) continue;
    const Target& target = plan.targets.at(number);
    if (target.before != nullptr) {
      numbers[number] = target.before->number;
      continue;
    }
    TRY(taken, editor.takeInode(fresh.node(number).isFolder()));
    numbers[number] = taken;
  }
  for (const auto& [path, number] : fresh.paths()) {
    const ExtNode& node = fresh.node(number);
    if (node.paths.front() != path) continue;
    const Target& target = plan.targets.at(number);
    if (target.before != nullptr && target.same_content && target.same_attributes &&
        target.same_inode)
      continue;
    TRY_OK(editor.writeInode(fresh, node, numbers.at(number),
                             target.same_content ? target.before : nullptr,
                             target.before != nullptr && target.same_attributes, numbers));
  }
  return {};
}

Result<void> verify(const std::filesystem::path& image, const ExtTree& fresh) {
  TRY_OK(checkExtFileSystem(image, 0));
  TRY(written, openExt(image, false));
  TRY(tree, ExtTree::read(written.get()));
  return expectSameTree(fresh, tree);
}

}  // namespace

Result<Succession> layOutOver(const std::filesystem::path& image,
                              const std::filesystem::path& fresh, std::uint64_t chunk_bytes) {
  TRY(before_sums, chunkSums(image, chunk_bytes));
  TRY(fresh_fs, openExt(fresh, false));
  TRY(fresh_tree, ExtTree::read(fresh_fs.get()));
  TRY(before_fs, openExt(image, false));
  TRY_OK(expectOurs(before_fs.get(), fresh_fs.get()));
  TRY(before, ExtTree::read(before_fs.get()));
  TRY(plan, planSuccession(before, fresh_tree));
  const std::uint64_t had_blocks = totalBlocks(before_fs.get());
  std::uint64_t empty_blocks = 0;
  {
    // What will be free, on the bitmap in memory alone.
    TRY(rehearsal, openExt(image, false));
    if (const auto code = ext2fs_read_bitmaps(rehearsal.get()))
      return extError("its bitmaps cannot be read", code);
    const auto give_back = [&](const ExtNode& node) -> Result<void> {
      TRY(runs, before.runs(node));
      for (const ExtRun& run : runs)
        ext2fs_unmark_block_bitmap_range2(rehearsal->block_map, run.physical,
                                          static_cast<unsigned>(run.count));
      return {};
    };
    for (const auto& [number, target] : plan.targets)
      if (target.before != nullptr && !target.same_content) TRY_OK(give_back(*target.before));
    for (const ext2_ino_t number : plan.removed) TRY_OK(give_back(before.node(number)));
    empty_blocks = ChunkAllocator(rehearsal.get(), chunk_bytes).emptyChunkBlocks();
  }
  TRY(blocks, blocksNeeded(before_fs.get(), fresh_fs.get(), plan, empty_blocks));
  const std::uint32_t block_bytes = before_fs->blocksize;
  if (blocks > had_blocks) TRY_OK(grow(image, blocks, block_bytes));

  TRY(fs, openExt(image, true));
  {
    TRY(editor, ExtEditor::open(fs.get(), chunk_bytes));
    TRY_OK(release(editor, before, plan));
    editor.beginAllocation();
    TRY_OK(write(editor, fresh_tree, plan));
    TRY_OK(editor.flush(kImageEpochSeconds));
  }
  TRY(dead, clearDeadBlocks(fs.get(), image, before_sums, chunk_bytes,
                            times(plan.content_blocks, kMaxDeadShare)));
  fs.reset();
  if (auto same = verify(image, fresh_tree); !same)
    return fail(std::move(same).error().within("checking the new layout"));

  Succession done;
  done.chunks = (blocks * block_bytes + chunk_bytes - 1) / chunk_bytes;
  done.changed_chunks = dead.changed_chunks;
  done.new_files = plan.new_inodes;
  done.kept_files = plan.targets.size() - plan.new_inodes;
  done.removed_files = plan.removed.size();
  done.new_bytes = plan.new_blocks * block_bytes;
  done.dead_bytes = dead.kept_blocks * block_bytes;
  done.grown_bytes = (blocks - had_blocks) * block_bytes;
  return done;
}

}  // namespace muster::provision
