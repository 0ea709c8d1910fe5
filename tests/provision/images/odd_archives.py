#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one odd archive of a tree that starts, by its name below: odd_archives.py CASE TREE.tar OUT. Headers by POSIX pax and GNU tar's manual,
OCI by image-spec; nothing of muster's."""
import gzip
import hashlib
import io
import json
import sys
import tarfile

BLOCK = 512


def padded(data):
    return data + b"\0" * (-len(data) % BLOCK)


def header(name, size, kind=b"0", link=b""):
    info = bytearray(BLOCK)
    for at, value in ((0, name), (100, b"0000644"), (108, b"0000000"), (116, b"0000000"), (124, b"%011o" % size), (136, b"00000000000"),
                      (148, b" " * 8), (156, kind), (157, link), (257, b"ustar\x0000")):
        info[at:at + len(value)] = value
    info[148:156] = b"%06o\0 " % sum(info)
    return bytes(info)


def record(key, value):
    length = len(key) + len(value) + 3
    while len(str(length)) + len(key) + len(value) + 3 != length:
        length = len(str(length)) + len(key) + len(value) + 3
    return b"%d %s=%s\n" % (length, key, value)


def pax(*records):
    body = b"".join(records)
    return header(b"PaxHeaders/x", len(body), b"x") + padded(body)


def file(name=b"etc/odd", data=b"x"):
    return header(name, len(data)) + padded(data)


def members(tar):
    """The archive without its end."""
    return padded(tar.rstrip(b"\0"))


def with_more(tar, more):
    return members(tar) + more + b"\0" * 1024


def long_name(length):
    parts = b"/".join([b"d" * 50] * (length // 51))
    return (parts + b"/" + b"e" * 200)[:length]


def layout(images, **index_more):
    """An OCI archive: images are (platform, tag, layers); a layer is (type, data)."""
    blobs, manifests = {}, []

    def blob(data, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"digest": "sha256:" + digest, "size": len(data), **more}

    for platform, tag, layers in images:
        manifest = {"schemaVersion": 2, "config": blob(b"{}"), "layers": [blob(data, mediaType=kind) for kind, data in layers]}
        entry = blob(json.dumps(manifest).encode(), mediaType="application/vnd.oci.image.manifest.v1+json")
        if platform:
            entry["platform"] = platform
        if tag:
            entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
        manifests.append({**entry, **index_more})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in (("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", json.dumps({"manifests": manifests}).encode()),
                           *(("blobs/sha256/" + digest, data) for digest, data in blobs.items())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


TAR = "application/vnd.oci.image.layer.v1.tar"
LINUX, WINDOWS = {"architecture": "amd64", "os": "linux"}, {"architecture": "amd64", "os": "windows"}


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:]


CASES = {
    "path-of-2040-bytes": lambda tar: with_more(tar, pax(record(b"path", long_name(2040))) + file()),
    "path-of-1900-bytes": lambda tar: with_more(tar, pax(record(b"path", long_name(1900))) + file()),
    "path-of-9000-bytes": lambda tar: with_more(tar, pax(record(b"path", b"/".join([b"d" * 250] * 36))) + file()),
    "folders-128-deep": lambda tar: with_more(tar, pax(record(b"path", b"d/" * 128 + b"f")) + file()),
    "link-to-5000-bytes": lambda tar: with_more(tar, pax(record(b"linkpath", b"t/" * 2500)) + header(b"etc/odd", 0, b"2")),
    "hard-link-to-5000-bytes": lambda tar: with_more(tar, pax(record(b"linkpath", b"t/" * 2500)) + header(b"etc/odd", 0, b"1")),
    "hard-link-to-itself": lambda tar: with_more(tar, header(b"etc/odd", 0, b"1", b"etc/odd")),
    "hard-link-given-twice": lambda tar: with_more(tar, file() + header(b"etc/odd", 0, b"1", b"etc/odd")),
    "hard-link-to-folder": lambda tar: with_more(tar, header(b"etc/odd", 0, b"1", b"usr")),
    "nul-in-path": lambda tar: with_more(tar, pax(record(b"path", b"etc/a\0b")) + file()),
    "nul-in-link": lambda tar: with_more(tar, pax(record(b"linkpath", b"host\0name")) + header(b"etc/odd", 0, b"2")),
    "record-damaged": lambda tar: with_more(tar, header(b"PaxHeaders/x", 20, b"x") + padded(b"99 path=etc/other12\n") + file()),
    "name-no-utf8": lambda tar: with_more(tar, pax(record(b"path", b"etc/caf\xe9")) + file() + file(b"etc/\xff\xfe")),
    "sparse-map-damaged": lambda tar: with_more(tar, pax(record(b"GNU.sparse.size", b"8192"), record(b"GNU.sparse.numblocks", b"9"),
                                                         record(b"GNU.sparse.map", b"4096,-4,,,")) + file(data=b"abcd")),
    "header-damaged": lambda tar: with_more(tar, b"\x07" * BLOCK + file()),
    "volume-continued": lambda tar: with_more(tar, header(b"etc/odd", 1, b"M") + padded(b"x")),
    "without-end": members,
    "two-archives": lambda tar: tar + tar,
    "access-list-too-long": lambda tar: with_more(
        tar, pax(record(b"SCHILY.acl.access", b"user::rw-,group::r--,other::r--,mask::rw-," + b",".join(b"user:%d:rw-" % i for i in range(900)))) + file()),
    "gzip": lambda tar: gzip.compress(tar, 1),
    "gzip-of-two-members": lambda tar: gzip.compress(tar[:100000], 1) + gzip.compress(tar[100000:], 1),
    # Stored, not packed: a bit is another bit of a file, and nothing but the checksum knows.
    "gzip-with-another-bit": lambda tar: flipped(gzip.compress(tar, 0)),
    "gzip-cut-behind-the-end": lambda tar: gzip.compress(tar, 1)[:-6],
    "gzip-and-more": lambda tar: gzip.compress(tar, 1) + b"more",
    "oci": lambda tar: layout([(LINUX, "", [(TAR, tar)])]),
    "oci-windows-first": lambda tar: layout([(WINDOWS, "", [(TAR, b"")]), (LINUX, "", [(TAR, tar)])]),
    "oci-windows": lambda tar: layout([(WINDOWS, "", [(TAR, tar)])]),
    "oci-two-images": lambda tar: layout([(LINUX, "v1", [(TAR, tar)]), (LINUX, "v2", [(TAR, tar), (TAR, tar)])]),
    "oci-one-image-twice": lambda tar: layout([(LINUX, "v1", [(TAR, tar)]), (LINUX, "latest", [(TAR, tar)])]),
    "oci-other-size": lambda tar: layout([(LINUX, "", [(TAR, tar)])], size=1),
    "oci-encrypted": lambda tar: layout([(LINUX, "", [(TAR, tar), (TAR + "+gzip+encrypted", b"secret")])]),
    "oci-type-of-kilobytes": lambda tar: layout([(LINUX, "", [("t" * 100000, tar)])]),
    "oci-layer-without-end": lambda tar: layout([(LINUX, "", [(TAR, members(tar))])]),
}

if __name__ == "__main__":
    case, source, target = sys.argv[1:]
    with open(source, "rb") as read, open(target, "wb") as write:
        write.write(CASES[case](read.read()))
