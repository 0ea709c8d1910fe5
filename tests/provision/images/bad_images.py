#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes archives and disk images that an import must refuse, gives each to import_image_tool in a process of its own, and checks the answer.

    bad_images.py TOOL COUNT [SEED]        exit 0: none taken wrongly, none crashed, all ended; 77: not root, or a tool is missing

Made by public tools (tar, mke2fs, mksquashfs, qemu-img, sfdisk, mtools), by Python's tarfile, and by mutation; what COUNT allows beyond the
constructions is mutated by chance (SEED). An input is taken wrongly when it is bad by construction, or when what came out of it breaks a rule of
the verifier. The verifier shares nothing with muster: e2fsck, debugfs, readelf, cpio, zstd, sfdisk and mtools look at the result.
Bounds: an import ends within 60 s, its files take less than 1 GiB (holes do not count), all in one folder that is removed after each case."""
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

LIMIT_S = 60
MAX_BYTES = 1 << 30
HERE = os.path.dirname(os.path.abspath(__file__))
NEEDED_TOOLS = ("tar", "mke2fs", "mksquashfs", "qemu-img", "sfdisk", "mcopy", "debugfs", "e2fsck", "readelf", "cpio", "zstd", "xz", "gzip")


def sh(script, cwd):  # slow machines pack a GiB in minutes
    subprocess.run(["sh", "-ec", script], cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)


def quiet(*command, **more):
    return subprocess.run(command, capture_output=True, timeout=60, **more)


# ---- the verifier

class Wrong(Exception):
    pass


def inside(root, path):
    """A path of the dumped tree without links, as a process in that root would follow it."""
    left, done, links = [part for part in path.split("/") if part], [], 0
    while left:
        part = left.pop(0)
        if part in (".", ".."):
            if part == "..":
                done[-1:] = []
            continue
        here = os.path.join(root, *done, part)
        if os.path.islink(here):
            links += 1
            if links > 40:
                raise Wrong(f"{path} is a circle of links")
            target = os.readlink(here)
            if target.startswith("/"):
                done = []
            left = [each for each in target.split("/") if each] + left
        elif os.path.lexists(here):
            done.append(part)
        else:
            raise Wrong(f"{path}: {'/'.join(done + [part])} is not there")
    return os.path.join(root, *done)


def regular(root, path):
    real = inside(root, path)
    if not os.path.isfile(real) or os.path.getsize(real) == 0:
        raise Wrong(f"{path} is no regular file with content")
    return real


def loads(path):
    """What the loader itself says. readelf also reads sections, which neither kernel nor loader looks at: damage there is damage of content, as
    in any other byte that has no checksum."""
    return quiet("/lib64/ld-linux-x86-64.so.2", "--verify", path).returncode in (0, 2)  # 2: without an interpreter, as libraries are


def elf(path):
    told = quiet("readelf", "-W", "-h", "-l", "-d", path)
    text = told.stdout.decode(errors="replace")
    words = told.stderr.decode(errors="replace")
    if "Machine:" not in text or (("Error" in words or "beyond" in words or "past end" in words) and not loads(path)):
        raise Wrong(f"{path}: readelf says {words[:200]}")
    if "X86-64" not in text:
        raise Wrong(f"{path} is for another machine")
    return text


def verify_kernel(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[0x202:0x206] != b"HdrS" or data[0x1fe:0x200] != b"\x55\xaa":
        raise Wrong(f"{path} is no bzImage")
    if len(data) < (data[0x1f1] + 1) * 512 + int.from_bytes(data[0x1f4:0x1f8], "little") * 16:
        raise Wrong(f"{path} is cut short")


def verify_initrd(path):
    with open(path, "rb") as file:
        head = file.read(8)
    if head.startswith(b"0707"):
        good = subprocess.run(["sh", "-c", 'cpio -t --quiet <"$1"', "sh", path], capture_output=True, timeout=60).returncode == 0
    else:
        tool = {b"\x28\xb5": "zstd", b"\xfd7": "xz", b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\x5d\x00": "xz"}.get(head[:2])
        if tool is None:
            raise Wrong(f"{path} is nothing that a kernel unpacks")
        good = quiet(tool, "-tq", path).returncode == 0
    if not good:
        raise Wrong(f"{path} does not unpack")


def verify_system(root, kernel=True):
    if kernel:
        verify_kernel(regular(root, "/vmlinuz"))
        verify_initrd(regular(root, "/initrd.img"))
    init = regular(root, "/sbin/init")
    if not init.endswith("/systemd/systemd"):
        raise Wrong(f"init is {init}")
    if not os.access(init, os.X_OK):
        raise Wrong("init may not be executed")
    text = elf(init)
    if "interpreter: " not in text:
        raise Wrong("init names no loader")
    elf(regular(root, text.split("interpreter: ")[1].split("]")[0]))
    for name in [line.split("[")[1].split("]")[0] for line in text.splitlines() if "(NEEDED)" in line]:
        for folder in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib"):
            try:
                library = regular(root, f"{folder}/{name}")
            except Wrong:
                continue
            elf(library)
            break
        else:
            raise Wrong(f"{name} is nowhere")


def verify_ext(image, folder, kernel=True):
    if quiet("e2fsck", "-f", "-n", image).returncode != 0:
        raise Wrong("e2fsck complains")
    root = os.path.join(folder, "dumped")
    os.makedirs(root)
    quiet("debugfs", "-R", f"rdump / {root}", image)
    verify_system(root, kernel)
    return root


def verify_disk(image, folder):
    table = json.loads(quiet("sfdisk", "--json", image).stdout or "{}").get("partitiontable", {})
    loader = system = False
    for part in table.get("partitions", []):
        start, size = part["start"] * 512, part["size"] * 512
        if start + size > os.path.getsize(image):
            raise Wrong("a partition ends behind the disk")
        piece = os.path.join(folder, "piece")
        sh(f"dd if='{image}' of='{piece}' bs=512 skip={part['start']} count={part['size']} conv=sparse status=none", folder)
        efi = os.path.join(folder, "efi")
        if quiet("mcopy", "-n", "-i", piece, "::EFI/BOOT/BOOTX64.EFI", efi).returncode == 0:
            with open(efi, "rb") as file:
                data = file.read()
            at = int.from_bytes(data[0x3c:0x40], "little")
            loader = loader or data[at:at + 6] == b"PE\0\0\x64\x86"
        with open(piece, "rb") as file:
            ext = file.read(1082)[1080:1082] == b"\x53\xef"
        if ext:
            root = verify_ext(piece, folder, kernel=False)
            system = system or os.path.exists(os.path.join(root, "etc/os-release"))
            names = [name for name in os.listdir(os.path.join(root, "boot")) if name.startswith("vmlinuz")]
            if not names:
                raise Wrong("no kernel")
            verify_kernel(os.path.join(root, "boot", names[0]))
    if not loader or not system:
        raise Wrong("no boot loader" if not loader else "no system")


# ---- how inputs are made: each function fills `folder` and answers (file, kind, bad by construction)

def base(folder):
    subprocess.run([os.path.join(HERE, "make_startable_tree.sh"), os.path.join(folder, "tree")], check=True)


def with_links(folder):
    base(folder)
    sh("ln -s boot/vmlinuz-6.1 tree/vmlinuz; ln -s boot/initrd.img-6.1 tree/initrd.img", folder)


def packed(folder, choice):
    """The tree as an archive of one of the kinds that are taken."""
    how = [("t.tar", "tar -C tree -cf t.tar ."), ("t.tgz", "tar -C tree -czf t.tgz ."), ("t.tzst", "tar -C tree -c . | zstd -q >t.tzst"),
           ("t.txz", "tar -C tree -c . | xz -0 >t.txz"), ("t.sqfs", "mksquashfs tree t.sqfs -quiet -no-progress"),
           ("t.old", "tar --format=ustar -C tree -cf t.old ."), ("t.pax", "tar --format=pax -C tree -cf t.pax .")]
    name, script = how[choice % len(how)]
    sh(script, folder)
    return name


# One thing wrong with a tree. Each is bad in every packing, and in an ext4 file system too unless it is of archives only.
BROKEN_TREES = [
    "rm tree/boot/vmlinuz-6.1", "rm tree/boot/initrd.img-6.1", "rm -r tree/boot", ": >tree/boot/vmlinuz-6.1", ": >tree/boot/initrd.img-6.1",
    "ln -sfn boot/vmlinuz-0 tree/vmlinuz", "ln -sfn /boot/nothing tree/initrd.img", "ln -sfn vmlinuz tree/vmlinuz", "rm -f tree/vmlinuz; mkfifo tree/vmlinuz",
    "rm -f tree/vmlinuz; mknod tree/vmlinuz b 7 0", "rm -f tree/vmlinuz; mkdir tree/vmlinuz", "rm tree/boot/*; mkfifo tree/boot/vmlinuz-6.1 tree/boot/initrd.img-6.1",
    "head -c 9000 /dev/urandom >tree/boot/vmlinuz-6.1", "truncate -s -1 tree/boot/vmlinuz-6.1", "truncate -s 515 tree/boot/vmlinuz-6.1",
    "printf 'ARMd' | dd of=tree/boot/vmlinuz-6.1 bs=1 seek=56 conv=notrunc status=none; printf XXXX | dd of=tree/boot/vmlinuz-6.1 bs=1 seek=514 conv=notrunc status=none",
    "cp tree/usr/lib/systemd/systemd tree/boot/vmlinuz-6.1", "truncate -s -5 tree/boot/initrd.img-6.1", "head -c 500 /dev/urandom >tree/boot/initrd.img-6.1",
    "truncate -s 5000 tree/boot/initrd.img-6.1; tr '\\0' x <tree/boot/initrd.img-6.1 >x; printf '070701' >tree/boot/initrd.img-6.1; cat x >>tree/boot/initrd.img-6.1",
    "head -c 3000 /dev/zero >tree/boot/initrd.img-6.1", "echo words | gzip >tree/boot/initrd.img-6.1",
    "rm tree/usr/sbin/init", "ln -sfn /nowhere tree/usr/sbin/init", "rm tree/usr/lib/systemd/systemd", "rm tree/sbin", "ln -sfn /sbin/init tree/usr/sbin/init",
    ": >tree/usr/lib/systemd/systemd", "printf '#!/bin/sh\\n' >tree/usr/lib/systemd/systemd", "truncate -s 12000 tree/usr/lib/systemd/systemd",
    "chmod 0 tree/usr/lib/systemd/systemd", "rm tree/usr/sbin/init; cp /usr/bin/cat tree/usr/sbin/init",
    "rm tree/usr/lib/systemd/systemd; mkfifo tree/usr/lib/systemd/systemd", "rm tree/usr/lib/systemd/systemd; mkdir tree/usr/lib/systemd/systemd",
    "printf '\\267' | dd of=tree/usr/lib/systemd/systemd bs=1 seek=18 conv=notrunc status=none",
    "printf '\\001' | dd of=tree/usr/lib/systemd/systemd bs=1 seek=4 conv=notrunc status=none",
    "printf '\\363' | dd of=tree/usr/lib64/ld-linux-x86-64.so.2 bs=1 seek=18 conv=notrunc status=none", "rm tree/usr/lib64/ld-linux-x86-64.so.2", "rm tree/lib64",
    "truncate -s 100000 tree/usr/lib64/ld-linux-x86-64.so.2", "rm tree/usr/lib/x86_64-linux-gnu/libc.so.6", "truncate -s 1000000 tree/usr/lib/x86_64-linux-gnu/libc.so.6",
    "ln -sfn libc-2.17.so tree/usr/lib/x86_64-linux-gnu/libc.so.6", "head -c 99 /dev/urandom >tree/usr/lib/x86_64-linux-gnu/libc.so.6",
    "sed -i 's/GLIBC_2\\.2[89]/GLIBC_2.17/g; s/GLIBC_2\\.3[0-9]/GLIBC_2.17/g' tree/usr/lib/x86_64-linux-gnu/libc.so.6",
    "rm -r tree/usr", "rm -r tree/*", "rm tree/lib64 tree/lib; mkdir tree/lib; ln -s usr/lib32 tree/lib64",
]


def broken_tree(folder, number, rng):
    base(folder)
    sh(BROKEN_TREES[number % len(BROKEN_TREES)], folder)
    return packed(folder, rng.randrange(7)), rng.choice(["rootfs", "rootfs", "rootfs", "disk"]), True


def broken_partition(folder, number, rng):
    with_links(folder)
    sh(BROKEN_TREES[number % len(BROKEN_TREES)], folder)
    sh("mke2fs -q -t ext4 -d tree raw 12M", folder)
    return disguised(folder, "raw", rng), "rootfs", True


def disguised(folder, raw, rng):
    """The same disk in another format."""
    choice = rng.randrange(6)
    if choice == 1:
        sh(f"gzip -1 -c {raw} >d.gz", folder)
        return "d.gz"
    if choice == 2:
        sh(f"zstd -q -1 {raw} -o d.zst", folder)
        return "d.zst"
    if choice in (3, 4, 5):
        name = ("qcow2", "vmdk", "vdi")[choice - 3]
        sh(f"qemu-img convert -f raw -O {name} {raw} d.{name}", folder)
        return f"d.{name}"
    return raw


def damaged_partition(folder, number, rng):
    with_links(folder)
    sh("mke2fs -q -t ext4 -d tree raw 12M", folder)
    scripts = ["debugfs -w -R 'clri /usr/lib' raw", "debugfs -w -R 'clri <2>' raw", "debugfs -w -R 'feature needs_recovery' raw",
               "debugfs -w -R 'set_super_value state 2' raw", "truncate -s 7M raw", "debugfs -w -R 'freei /etc/hostname' raw",
               "debugfs -w -R 'set_inode_field /usr/lib/systemd/systemd block[5] 0x7fffffff' raw", "dd if=/dev/urandom of=raw bs=4096 count=1 seek=1 conv=notrunc",
               "dd if=/dev/zero of=raw bs=1024 count=60 seek=2 conv=notrunc", "debugfs -w -R 'unlink /usr/lib/systemd/systemd' raw",
               "debugfs -w -R 'set_super_value inodes_count 4000000000' raw", "debugfs -w -R 'set_super_value blocks_count 3' raw"]
    sh(scripts[number % len(scripts)], folder)
    return disguised(folder, "raw", rng), "rootfs", True


# Sound to e2fsck, but GRUB reads none of the first three, no kernel with pages of 4 KiB mounts the next two, and nobody but root can use the others.
UNUSABLE = ["mke2fs -q -t ext4 -O inline_data -d tree raw 12M", "mke2fs -q -t ext4 -O ea_inode -d tree raw 12M", "mke2fs -q -t ext4 -O casefold -d tree raw 12M",
            "mke2fs -q -F -t ext4 -b 8192 -d tree raw 96M", "mke2fs -q -F -t ext4 -b 65536 -d tree raw 200M",
            "mke2fs -q -t ext4 -d tree raw 12M; debugfs -w -R 'sif / mode 040700' raw", "mke2fs -q -t ext4 -d tree raw 12M; debugfs -w -R 'sif /usr mode 040750' raw"]


def unusable(folder, number, rng):
    with_links(folder)
    sh(UNUSABLE[number % len(UNUSABLE)], folder)
    return disguised(folder, "raw", rng), "rootfs", True


def broken_disk(folder, number, rng):
    base(folder)
    make = f"'{HERE}/make_disk.sh' tree disk"
    esp = "dd if=disk.esp of=disk bs=512 seek=2048 conv=notrunc status=none"
    before = ["rm tree/boot/vmlinuz-6.1", "rm tree/boot/initrd.img-6.1", "rm tree/etc/os-release", "rm tree/usr/sbin/init", "rm tree/usr/lib64/ld-linux-x86-64.so.2",
              "printf '\\267' | dd of=tree/usr/lib/systemd/systemd bs=1 seek=18 conv=notrunc status=none", "rm tree/usr/lib/x86_64-linux-gnu/libc.so.6"]
    after = [f"mdel -i disk.esp ::EFI/BOOT/BOOTX64.EFI; {esp}", "dd if=/dev/zero of=disk bs=512 seek=2048 count=64 conv=notrunc",
             f"mdel -i disk.esp ::EFI/BOOT/BOOTX64.EFI; head -c 900 /dev/urandom >e; mcopy -i disk.esp e ::EFI/BOOT/BOOTX64.EFI; {esp}",
             f"mdel -i disk.esp ::EFI/BOOT/BOOTX64.EFI; printf '\\144\\252' | dd of=disk.efi bs=1 seek=68 conv=notrunc; mcopy -i disk.esp disk.efi ::EFI/BOOT/BOOTX64.EFI; {esp}",
             "truncate -s 20M disk", "truncate -s 1M disk", "dd if=/dev/zero of=disk bs=1M count=1 conv=notrunc; dd if=/dev/zero of=disk bs=1M seek=47 count=1 conv=notrunc",
             "dd if=/dev/zero of=disk bs=512 seek=18432 count=1000 conv=notrunc", "sfdisk -q --delete disk 2", "sfdisk -q --delete disk 1",
             "debugfs -w -R 'clri /usr/lib' disk.system; dd if=disk.system of=disk bs=512 seek=18432 conv=notrunc", "sfdisk -q --delete disk"]
    scripts = [f"{each}; {make}" for each in before] + [f"{make}; {each}" for each in after]
    sh(scripts[number % len(scripts)], folder)
    return disguised(folder, "disk", rng), "disk", True


def tar_of(folder, members, name="t.tar", start=None):
    """`start`: an archive that comes first, member by member. Members: (name, type, content or link)."""
    with tarfile.open(os.path.join(folder, name), "w", format=tarfile.GNU_FORMAT) as out:
        if start:
            with tarfile.open(os.path.join(folder, start)) as first:
                for member in first:
                    out.addfile(member, first.extractfile(member) if member.isreg() else None)
        for path, kind, content in members:
            info = tarfile.TarInfo(path)
            info.type, info.mode = kind, 0o755
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = content
                out.addfile(info)
            elif kind == tarfile.REGTYPE:
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
            else:
                info.devmajor, info.devminor = 1, 5
                out.addfile(info)


F, L, H, D, FIFO, CHR = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE
# Members behind a whole tree; None: the verifier alone says whether what comes out may be taken.
MEMBERS = [
    ([("lib/new", F, b"new")], None), ([("lib", D, ""), ("lib/new", F, b"new")], None), ([("./lib/x86_64-linux-gnu/new", F, b"new")], None),
    ([("sbin", D, ""), ("sbin/extra", F, b"x")], None), ([("bin/extra", H, "usr/lib/systemd/systemd")], None), ([("usr/lib/y", H, "lib/systemd/systemd")], None),
    ([("lib", F, b"a file in the place of a link")], None), ([("lib64", L, "usr/nothing")], True), ([("lib64", D, "")], None),
    ([("usr/sbin/init", F, b"#!/bin/sh")], True), ([("usr/sbin/init", FIFO, "")], True), ([("usr/lib/systemd/systemd", CHR, "")], True),
    ([("vmlinuz", FIFO, "")], True), ([("vmlinuz", CHR, "")], True), ([("vmlinuz", L, "boot/none")], True), ([("vmlinuz", L, "../../../etc/passwd")], True),
    ([("initrd.img", L, "/proc/kcore")], True), ([("initrd.img", L, "/dev/zero")], True), ([("../evil", F, b"x")], True), ([("a/../../evil", F, b"x")], True),
    ([("door", L, "/tmp"), ("door/evil", F, b"x")], None), ([("door", L, "/etc/.."), ("door/evil", F, b"x")], None), ([("door", L, "../../.."), ("door/evil", F, b"x")], True),
    ([("door", L, "nowhere"), ("door/evil", F, b"x")], True), ([("a", L, "b"), ("b", L, "a"), ("a/x", F, b"x")], True), ([("same", H, "../../etc/passwd")], True),
    ([("same", H, "not/there")], True), ([("/" * 30 + "etc/x", F, b"x")], None), (["deep"], True), ([("x" * 300, F, b"x")], True), ([("usr", L, "/")], None),
    ([("usr/lib/x86_64-linux-gnu/libc.so.6", L, "libc.so.6")], True), ([("usr/lib64/ld-linux-x86-64.so.2", L, "/etc/hostname")], True),
    ([("boot/vmlinuz-9", F, b"newer, and no kernel")], True), ([("boot/initrd.img-9", FIFO, "")], True), ([("boot/vmlinuz-9", D, "")], True),
]


def tar_members(folder, number, rng):
    base(folder)
    sh("tar -C tree -cf base.tar .", folder)
    members, bad = MEMBERS[number % len(MEMBERS)]
    if members == ["deep"]:
        members = [("/".join("d" for _ in range(500)), F, b"x")]
    tar_of(folder, members, start="base.tar")
    os.remove(os.path.join(folder, "base.tar"))
    return "t.tar", "rootfs", bad


def giant(folder, number, rng):
    base(folder)
    scripts = ["truncate -s 4T tree/var/giant; tar -C tree -cSf t .", "truncate -s 40G tree/var/giant; tar -C tree -cSf t .",
               "truncate -s 20G tree/var/giant; mksquashfs tree t -quiet -no-progress", "truncate -s 8E t", "truncate -s 3T t",
               "qemu-img create -q -f qcow2 t 63T", "qemu-img create -q -f qcow2 t 2P", "qemu-img create -q -f vmdk t 1500G", "head -c 512M /dev/zero | zstd -q >t",
               "head -c 256M /dev/zero | gzip -1 >t"]
    sh(scripts[number % len(scripts)] + " || truncate -s 1G t", folder)
    return "t", rng.choice(["rootfs", "disk"]), True


def oci(folder, number, rng):
    base(folder)
    sh("mkdir -p oci/blobs/sha256; tar -C tree -cf layer1 .", folder)

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(folder, "oci/blobs/sha256", digest), "wb") as out:
            out.write(data)
        return "sha256:" + digest

    def layer(members):
        tar_of(folder, members, "layer2")
        with open(os.path.join(folder, "layer2"), "rb") as file:
            return file.read()

    kind = "application/vnd.oci.image.layer.v1.tar"
    with open(os.path.join(folder, "layer1"), "rb") as file:
        first = {"mediaType": kind, "digest": blob(file.read())}
    deep = "[" * 200_000 + "]" * 200_000
    extra = [[(".wh..", F, b"")], [(".wh...", F, b"")], [(".wh.", F, b"")], [("usr/.wh..", F, b"")], [(".wh.usr", F, b"")], [("lib/.wh.systemd", F, b"")],
             [("sbin/.wh.init", F, b"")], [("usr/lib64/.wh..wh..opq", F, b"")], [("boot/.wh..wh..opq", F, b"")], [("door", L, "/"), ("door/.wh.usr", F, b"")],
             [("../.wh.x", F, b"")], [("lib/new", F, b"new"), (".wh.nothing", F, b"")]]
    number %= len(extra) + 12
    index, bad = None, True
    layers = [first]
    if number < len(extra):
        layers.append({"mediaType": kind, "digest": blob(layer(extra[number]))})
        bad = None if number in (9, 11) else True
        if number == 9:
            bad = None
    manifest = json.dumps({"layers": layers})
    entry = {"digest": blob(manifest.encode()), "platform": {"architecture": "amd64"}}
    which = number - len(extra)
    if which == 0:
        index = deep
    elif which == 1:
        entry = {"digest": blob(('{"layers":' + deep + "}").encode())}
    elif which == 2:
        entry["platform"]["architecture"] = "arm64"
    elif which == 3:
        entry["digest"] = "sha256:" + "0" * 64
    elif which == 4:
        entry["digest"] = "sha256:../../../../etc/passwd"
    elif which == 5:
        entry = {"digest": blob(json.dumps({"layers": [dict(first, mediaType="text/plain")]}).encode())}
    elif which == 6:
        entry = {"digest": blob(json.dumps({"layers": []}).encode())}
    elif which == 7:
        entry = {"digest": blob(json.dumps({"layers": [7, None, {"digest": 3}]}).encode())}
    elif which == 8:
        index = '{"manifests": {"a": 1}}'
    elif which == 9:
        index = json.dumps({"manifests": [{"digest": blob(json.dumps({"manifests": [entry]}).encode())}] * 9})
        bad = None
    path = os.path.join(folder, "oci/index.json")
    if which == 10:
        os.mkfifo(path)
    elif which == 11:
        os.symlink("/dev/zero", path)
    else:
        with open(path, "w") as out:
            out.write(index or json.dumps({"manifests": [entry]}))
    sh("echo '{}' >oci/oci-layout; tar -C oci -cf t.oci oci-layout index.json blobs", folder)
    return "t.oci", "rootfs", bad


def named_files(folder, number, rng):
    """Images that name files of this machine, or are no image."""
    scripts = ["qemu-img create -q -f raw b 8M; qemu-img create -q -f qcow2 -b \"$PWD/b\" -F raw t", "qemu-img create -q -f qcow2 -o data_file=\"$PWD/b\",data_file_raw=on t 8M",
               "head -c 100000 /dev/urandom >t", ": >t", "head -c 1 /dev/urandom >t", "head -c 2M /dev/zero >t", "echo words >t", "head -c 600 /dev/zero | tr '\\0' '\\377' >t",
               "truncate -s 30M t; mkfs.vfat t", "truncate -s 30M t; mke2fs -q -t ext4 t", "truncate -s 30M t; mke2fs -q -t ext2 t", "tar -cf t --files-from /dev/null",
               "mkdir x; tar -cf t x", "truncate -s 30M t; echo ',,L' | sfdisk -q t", "printf 'hsqs' >t; head -c 5000 /dev/urandom >>t", "printf 'QFI\\373' >t; head -c 900 /dev/urandom >>t",
               "printf 'KDMV' >t; head -c 5000 /dev/urandom >>t", "head -c 64 /dev/zero >t; printf '\\177\\020\\332\\276' >>t; head -c 900 /dev/urandom >>t",
               "printf '\\037\\213' >t; head -c 900 /dev/urandom >>t", "printf '\\050\\265\\057\\375' >t; head -c 900 /dev/urandom >>t", "mkfifo t", "ln -s /dev/zero t", "mkdir t"]
    sh(scripts[number % len(scripts)], folder)
    return "t", rng.choice(["rootfs", "rootfs", "disk", "live"]), True


def mutated(folder, number, rng):
    """A good input with a few bytes changed, cut out or cut off. Only the verifier knows whether it is still good."""
    kind = "rootfs"
    choice = number % 9
    if choice < 4:
        base(folder)
        name = packed(folder, (0, 1, 2, 4)[choice])
    elif choice < 7:
        with_links(folder)
        sh("mke2fs -q -t ext4 -d tree raw 8M", folder)
        name = ("raw", "d.qcow2", "d.vmdk")[choice - 4]
        if name != "raw":
            sh(f"qemu-img convert -f raw -O {name[2:]} raw {name}", folder)
    else:
        base(folder)
        sh(f"'{HERE}/make_disk.sh' tree disk", folder)
        name, kind = "disk", "disk"
        if choice == 8:
            sh("qemu-img convert -f raw -O vdi disk d.vdi", folder)
            name = "d.vdi"
    path = os.path.join(folder, name)
    size = os.path.getsize(path)
    way = rng.randrange(4)
    with open(path, "r+b") as file:
        if way == 0:
            file.truncate(rng.randrange(size))
        else:
            # Headers and tables matter more than content: half of the changes are in the first 64 KiB.
            for _ in range(rng.choice([1, 1, 2, 8, 64])):
                at = rng.randrange(min(size, 65536)) if rng.random() < 0.5 else rng.randrange(size)
                file.seek(at)
                if way == 1:
                    file.write(bytes([rng.randrange(256)]))
                elif way == 2:
                    file.write(b"\xff" * min(8, size - at))
                else:
                    file.write(bytes(min(512, size - at)))
    # Bytes behind the end of an archive, or between files, are nobody's: a cut is bad for certain where half is missing.
    return name, kind, True if way == 0 and os.path.getsize(path) < size // 2 else None


CONSTRUCTIONS = [(broken_tree, len(BROKEN_TREES)), (broken_partition, len(BROKEN_TREES)), (damaged_partition, 12), (unusable, len(UNUSABLE)), (broken_disk, 19), (tar_members, len(MEMBERS)),
                 (giant, 10), (oci, 24), (named_files, 23)]


def plan(count, seed):
    """Which cases, in which order: one of each family in turn, constructions first, then mutations."""
    cases = []
    for family, number in CONSTRUCTIONS:
        cases += [(family, i) for i in range(number)]
    random.Random(seed).shuffle(cases)
    if count < len(cases):
        return cases[:count * 3 // 4] + [(mutated, i) for i in range(count - count * 3 // 4)]
    extra = count - len(cases)
    return cases + [(mutated, i) for i in range(extra)]


def used_bytes(folder):
    return sum(os.lstat(os.path.join(place, name)).st_blocks * 512 for place, _, names in os.walk(folder) for name in names)


def run_case(tool, family, number, seed):
    """What is wrong with the answer (None: nothing), and how many seconds the import took; making the input and looking at the result are ours."""
    rng = random.Random(f"{seed}/{family.__name__}/{number}")
    with tempfile.TemporaryDirectory(prefix="muster-bad-") as folder:
        name, kind, bad = family(folder, number, rng)
        merged = family in (tar_members, oci)
        shutil.rmtree(os.path.join(folder, "tree"), ignore_errors=True)
        out, work = os.path.join(folder, "out"), os.path.join(folder, "work")
        start = time.monotonic()
        # A session of its own: what hangs is ended with all that it started.
        process = subprocess.Popen([tool, os.path.join(folder, name), kind, work, out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said = process.communicate(timeout=LIMIT_S)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return f"did not end within {LIMIT_S} s", float(LIMIT_S)
        seconds = time.monotonic() - start
        if used_bytes(folder) > MAX_BYTES:
            return "took more than 1 GiB", seconds
        if process.returncode == 3:
            return (f"unclear refusal: {said[:300]}" if said.lower().startswith("internal") else None), seconds
        if process.returncode != 0:
            return f"crashed ({process.returncode}): {said[-300:]}", seconds
        if bad:
            return "taken, and it is bad by construction", seconds
        try:
            if kind == "disk":
                verify_disk(out, folder)
            elif kind == "rootfs":
                root = verify_ext(out, folder)
                if merged and not all(os.path.islink(os.path.join(root, each)) for each in ("lib", "bin", "sbin", "lib64")):
                    return "taken, and a link of the merged /usr is gone", seconds
        except Wrong as why:
            return f"taken, and the verifier says: {why}", seconds
        return None, seconds


def main():
    tool, count = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    missing = [each for each in NEEDED_TOOLS if shutil.which(each, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin") is None]
    if os.geteuid() != 0 or missing:
        print("skipped:", "not root" if os.geteuid() != 0 else "missing: " + ", ".join(missing))
        sys.exit(77)
    os.environ["PATH"] += ":/sbin:/usr/sbin"
    failures, slowest = [], 0.0
    cases = plan(count, seed)
    for i, (family, number) in enumerate(cases):
        trouble, seconds = run_case(tool, family, number, seed)
        slowest = max(slowest, seconds)
        if trouble:
            failures.append(trouble)
            print(f"{family.__name__} {number} (seed {seed}): {trouble}", flush=True)
        if (i + 1) % 200 == 0:
            print(f"{i + 1} of {len(cases)}, {len(failures)} failures", flush=True)
    print(f"{len(cases)} inputs, {len(failures)} failures, the slowest import took {slowest:.1f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
