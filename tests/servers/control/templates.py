# SPDX-License-Identifier: Apache-2.0
"""Templates and snapshots: what sandboxes begin as copies of. A template has builds, and tags that name them."""
import os

from base.service import Problem
from control.sandboxes import new_id


class Build:
    """status: waiting, building, ready or error. @root: its files; None: those of every new box."""

    def __init__(self, root, now, status="ready", cpu=2, memory=512):
        self.id, self.root, self.status, self.created, self.updated = new_uuid(), root, status, now, now
        self.cpu, self.memory, self.disk, self.entries, self.reason = cpu, memory, 1024, [], None
        self.envs, self.workdir, self.user, self.start = {}, "", "user", None


def new_uuid():
    text = os.urandom(16).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Template:
    """A template, or a snapshot of the sandbox @source. builds: the newest last."""

    def __init__(self, name, build, now, source=None):
        self.id, self.names, self.started, self.updated, self.source = name, [], now, now, source
        self.builds, self.tags, self.public, self.spawned, self.last_spawned = [build], {}, False, 0, None
        if build.status == "ready":
            self.tags["default"] = build

    @property
    def build(self):
        return self.tags.get("default", self.builds[-1])


class Templates:
    def __init__(self, boxes, sandboxes, clock):
        self.boxes, self.sandboxes, self.clock, self.all = boxes, sandboxes, clock, {}
        os.makedirs(f"{boxes.top}/templates", exist_ok=True)
        base = Template("base", Build(None, clock.now()), clock.now())
        base.names = ["base"]
        self.all["base"] = base

    def new_root(self):
        return f"{self.boxes.top}/templates/{new_id('r')}"

    def find(self, text):
        """By id, alias or team/alias. Returns it and the build that the reference's tag names (default). 404."""
        if text in self.all:
            return self.all[text], self.all[text].build
        name, _, tag = text.partition(":")
        for template in self.all.values():
            if name in {template.id, template.id.partition(":")[0], *template.names, *(f"team/{one}" for one in template.names)}:
                build = template.tags.get(tag or "default")
                if build is None and tag:
                    raise Problem(404, f"tag '{tag}' of template '{name}' not found")
                return template, build or template.build
        raise Problem(404, f"template '{text}' not found")

    def to_start(self, text):
        """What a sandbox can be made of."""
        template, build = self.find(text)
        if build.status != "ready":
            raise Problem(404, f"template '{text}' has no finished build")
        template.spawned, template.last_spawned = template.spawned + 1, self.clock.now()
        return template, build

    async def snapshot(self, sandbox, name):
        """A snapshot of a sandbox's files; the same name again is a new build of the same snapshot."""
        key = f"team/{name}:default" if name else f"{new_id('', 20)}:default"
        build = Build(self.new_root(), self.clock.now())
        build.envs, build.workdir, build.user = sandbox.build.envs, sandbox.build.workdir, sandbox.build.user
        await self.sandboxes.copy_files(sandbox, build.root)
        template = self.all.get(key)
        if template is None:
            template = self.all[key] = Template(key, build, self.clock.now(), sandbox.id)
            template.names = [name] if name else []
        else:
            template.builds.append(build)
            template.tags["default"] = build
            template.started = self.clock.now()
        return template

    def snapshots(self):
        return [one for one in self.all.values() if one.source]

    async def delete(self, text):
        template, _ = self.find(text)
        if template.id == "base" or any(one.template is template for one in self.sandboxes.all.values()):
            raise Problem(400, f"cannot delete template '{text}' because there are sandboxes of it")
        del self.all[template.id]
        await self.remove_files(template)

    async def remove_files(self, template):
        for build in template.builds:
            if build.root and os.path.exists(build.root):
                await self.boxes.ask("remove", root=build.root)
