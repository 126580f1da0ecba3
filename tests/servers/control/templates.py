# SPDX-License-Identifier: Apache-2.0
"""Templates and snapshots: directories that sandboxes begin as copies of."""
import os

from control.sandboxes import Problem, new_id


class Template:
    """A template, or a snapshot of a sandbox. @root: its files; None: those of every new box."""

    def __init__(self, name, root, now, source=None):
        self.id, self.names, self.root, self.started, self.source = name, [], root, now, source
        self.tags, self.builds, self.public, self.updated, self.spawned = {}, [], False, now, 0
        self.cpu, self.memory, self.disk = 2, 512, 1024


class Templates:
    def __init__(self, boxes, sandboxes, clock):
        self.boxes, self.sandboxes, self.clock, self.all = boxes, sandboxes, clock, {}
        os.makedirs(f"{boxes.top}/templates", exist_ok=True)
        base = Template("base", None, clock.now())
        base.names = ["base"]
        self.all["base"] = base

    def find(self, text):
        """By id, alias or team/alias, each with or without a tag. 404."""
        name, _, tag = text.partition(":")
        for template in self.all.values():
            names = {template.id, *template.names} | {f"team/{one}" for one in template.names}
            if text in names or (name in names and (not tag or tag == "default" or tag in template.tags)):
                return template
        raise Problem(404, f"template '{text}' not found")

    async def snapshot(self, sandbox, name):
        """A snapshot of a sandbox's files; the same name again replaces what it had."""
        key = f"team/{name}:default" if name else None
        template = self.all.get(key) if key else None
        identity = key or f"{new_id('', 20)}:default"
        root = f"{self.boxes.top}/templates/{new_id('s')}"
        await self.sandboxes.copy_files(sandbox, root)
        if template is None:
            template = self.all[identity] = Template(identity, root, self.clock.now(), sandbox.id)
            template.names = [name] if name else []
        else:
            template.root, template.started = root, self.clock.now()
        return template

    def snapshots(self):
        return [one for one in self.all.values() if one.source]

    async def delete(self, text):
        template = self.find(text)
        if template.id == "base" or any(one.template is template for one in self.sandboxes.all.values()):
            raise Problem(400, f"cannot delete template '{text}' because there are sandboxes of it")
        del self.all[template.id]
        if template.root:
            await self.boxes.ask("remove", root=template.root)
