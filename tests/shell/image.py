# SPDX-License-Identifier: Apache-2.0
"""Images for tests: image.py DIR makes, of the file DIR/busybox, OCI layouts, archives of them and of what
docker save writes, good and bad ones."""
import copy
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import sys
import tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386"}.get(platform.machine(), platform.machine())
TOP = sys.argv[1]


def member(name, data=None, kind=tarfile.REGTYPE, link="", mode=0o755, uid=0):
    m = tarfile.TarInfo(name)
    m.type, m.linkname, m.mode, m.uid = kind, link, mode, uid
    return m, data


def directory(name):
    return member(name, kind=tarfile.DIRTYPE)


def symlink(name, to):
    return member(name, kind=tarfile.SYMTYPE, link=to)


def layer(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for m, data in members:
            m.size = len(data) if data is not None else 0
            t.addfile(m, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def sha(data):
    return hashlib.sha256(data).hexdigest()


BUSYBOX = open(f"{TOP}/busybox", "rb").read()
APPLETS = [symlink(f"bin/{n}", "busybox") for n in ("sh", "cat", "ls", "echo", "id", "pwd", "env", "stat", "sleep", "rm", "mkdir")]
BASE = [directory("bin"), member("bin/busybox", BUSYBOX), *APPLETS, directory("etc"),
        member("etc/passwd", b"root:x:0:0::/root:/bin/sh\n", mode=0o644), member("etc/name", b"below\n", mode=0o644),
        member("gone", b"1"), directory("opaque"), member("opaque/old", b"1"), directory("was-dir"),
        member("was-dir/inside", b"1"), member("was-file", b"1"), directory("usr"), directory("usr/lib"),
        symlink("lib", "/usr/lib"), member("kept", b"kept\n", mode=0o640, uid=1000)]
NEXT = [member("etc/name", b"tiny\n", mode=0o644), member(".wh.gone", b""), directory("opaque"),
        member("opaque/new", b"new\n"), member("opaque/.wh..wh..opq", b""), member("was-dir", b"file now\n"),
        directory("was-file"), member("was-file/inside", b"dir now\n"), member("lib/through", b"through\n"),
        member(".wh..wh.plnk", b"")]
CONFIG = {"architecture": ARCH, "os": "linux",
          "config": {"Env": ["PATH=/bin", "GREETING=hello there", "not a variable"], "WorkingDir": "/srv", "User": "1000:1000",
                     "Entrypoint": ["/bin/sh"], "Cmd": ["-c", "true"]}, "rootfs": {"type": "layers", "diff_ids": []}}


class Oci:
    def __init__(self, name):
        self.path = f"{TOP}/{name}"
        os.makedirs(f"{self.path}/blobs/sha256")
        self.write("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')

    def write(self, name, data):
        with open(f"{self.path}/{name}", "wb") as f:
            f.write(data)

    def blob(self, data, **more):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.write(f"blobs/sha256/{sha(data)}", data)
        return {"digest": f"sha256:{sha(data)}", "size": len(data), **more}

    def manifest(self, layers, config=CONFIG, pack=gzip.compress):
        config = copy.deepcopy(config)
        config["rootfs"]["diff_ids"] = [f"sha256:{sha(x)}" for x in layers]
        return {"schemaVersion": 2, "config": self.blob(config), "layers": [self.blob(pack(x)) for x in layers]}

    def index(self, *descriptors):
        self.write("index.json", json.dumps({"schemaVersion": 2, "manifests": list(descriptors)}).encode())
        return self

    def archive(self, name):
        with tarfile.open(f"{TOP}/{name}", "w") as t:
            t.add(self.path, ".")


def oci(name, *layers, config=CONFIG):
    image = Oci(name)
    return image.index(image.blob(image.manifest(list(layers), config)))


def docker(name, layers, config=CONFIG, lie=False):
    config = copy.deepcopy(config)
    config["rootfs"]["diff_ids"] = [f"sha256:{sha(x)}" for x in layers]
    text = json.dumps(config).encode()
    files = {f"{sha(text)}.json": text}
    for n, x in enumerate(layers):
        files[f"layer{n}/layer.tar"] = x + (b"\0" * 512 if lie else b"")
    files["manifest.json"] = json.dumps([{"Config": f"{sha(text)}.json", "RepoTags": ["t:1"],
                                          "Layers": [f"layer{n}/layer.tar" for n in range(len(layers))]}]).encode()
    with tarfile.open(f"{TOP}/{name}", "w") as t:
        for path, data in files.items():
            m = tarfile.TarInfo(path)
            m.size = len(data)
            t.addfile(m, io.BytesIO(data))


base, above = layer(*BASE), layer(*NEXT)
oci("good", base, above).archive("good.tar")
docker("saved.tar", [base, above])

# an index in an index, with one for another machine and one that is no image
nested = Oci("nested")
other = nested.blob(b"{}", platform={"os": "linux", "architecture": "pdp11"})
right = nested.blob(nested.manifest([base, above]), platform={"os": "linux", "architecture": ARCH})
nested.index(nested.blob({"manifests": [nested.blob(b"[]", platform={"os": "unknown", "architecture": "unknown"}), other, right]}))

# ---- bad ones ----
bad = oci("bad-blob", base)
for name in os.listdir(f"{bad.path}/blobs/sha256"):
    if os.path.getsize(f"{bad.path}/blobs/sha256/{name}") > 4096:
        with open(f"{bad.path}/blobs/sha256/{name}", "r+b") as f:
            f.seek(100)
            f.write(b"X")
missing = oci("bad-missing", base)
for name in os.listdir(f"{missing.path}/blobs/sha256"):
    if os.path.getsize(f"{missing.path}/blobs/sha256/{name}") > 4096:
        os.unlink(f"{missing.path}/blobs/sha256/{name}")
size = Oci("bad-size")
lie = size.blob(size.manifest([base]))
lie["size"] += 1
size.index(lie)
Oci("bad-digest").index({"digest": "sha256:../../../../etc/passwd", "size": 1})
Oci("bad-kind").index({"digest": "md5:" + "0" * 64, "size": 1})
link = Oci("bad-link")
os.symlink("/etc/passwd", f"{link.path}/blobs/sha256/{'0' * 64}")
link.index({"digest": "sha256:" + "0" * 64, "size": os.path.getsize("/etc/passwd")})
loop = Oci("bad-loop")
deep = loop.blob({"manifests": []})
for _ in range(8):
    deep = loop.blob({"manifests": [deep]})
loop.index(deep)
Oci("bad-json").write("index.json", b"{" * 100000)
alien = Oci("bad-machine")
alien.index(alien.blob(b"{}", platform={"os": "linux", "architecture": "pdp11"}))
oci("bad-os", base, config={**CONFIG, "os": "windows"})
oci("bad-empty")
oci("bad-escape", base, layer(member("../outside", b"bad")))
oci("bad-dotdot", base, layer(member(".wh...", b"")))
oci("bad-device", base, layer(member("null", kind=tarfile.CHRTYPE)))
oci("bad-hard", base, layer(member("h", kind=tarfile.LNKTYPE, link="../../../../../../etc/passwd")))
oci("bad-cut", base[: len(base) // 2])
docker("bad-lie.tar", [base], lie=True)

# ---- hostile, and harmless: links out mean what they mean inside ----
outside = f"{TOP}/outside"
oci("inside", layer(*BASE, symlink("out", "/"), symlink("up", "../../../../.."), symlink("here", "here")),
    layer(member("out/etc/through", b"in\n"), member("up/etc/up", b"in\n"), member("out/.wh.gone", b"")))
shutil.copy(f"{TOP}/good.tar", f"{TOP}/again.tar")
