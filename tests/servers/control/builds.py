# SPDX-License-Identifier: Apache-2.0
"""Calls about templates and their builds. Steps are really done, in a box; an image's name stands for what every box begins
with, since none can be pulled."""
import asyncio
import os
import re
import secrets
import shlex

from base import boxes, wire
from base.service import Problem
from control import inside, listing
from control.sandboxes import ENVD_VERSION, Sandbox, new_id, rfc3339
from control.templates import Build, Template

ENTRIES = 100


class Builds:
    def __init__(self, sandboxes, templates, clock):
        self.sandboxes, self.templates, self.clock, self.files, self.tickets = sandboxes, templates, clock, {}, {}

    def routes(self):
        one, build = "/templates/{}", "/templates/{}/builds/{}"
        return [
            ("POST", "/v3/templates", self.request), ("GET", "/v2/templates", self.list), ("GET", "/templates", self.list),
            ("GET", one + "/files/{}", self.file), ("POST", "/v2" + build, self.start), ("GET", build + "/status", self.status),
            ("GET", "/templates/aliases/{}", self.alias), ("POST", "/templates/tags", self.tag),
            ("DELETE", "/templates/tags", self.untag), ("GET", one + "/tags", self.tags), ("GET", one, self.get),
            ("DELETE", one, self.delete), ("PATCH", "/v2" + one, self.update)]

    # ---- a build ----

    async def request(self, request):
        asked = await request.json()
        name, _, tag = (asked.get("name") or asked.get("alias") or "").partition(":")
        if not re.fullmatch(r"(team/)?[a-z0-9_-]{1,128}", name):
            raise Problem(400, f"Invalid template name: '{name}'")
        name = name.removeprefix("team/")
        if asked.get("memoryMB", 512) < 128 or asked.get("cpuCount", 2) < 1:
            raise Problem(400, "validation error: cpuCount and memoryMB are too small")
        build = Build(None, self.clock.now(), "waiting", asked.get("cpuCount", 2), asked.get("memoryMB", 512))
        build.tags = [word for word in (tag, *(asked.get("tags") or [])) if word] or ["default"]
        template = next((one for one in self.templates.all.values() if name in one.names and not one.source), None)
        if template is None:
            template = Template(new_id("", 20), build, self.clock.now())
            template.names = [name]
            self.templates.all[template.id] = template
        else:
            template.builds.append(build)
        return wire.json_answer(202, {"templateID": template.id, "buildID": build.id, "public": False, "aliases": template.names,
                                      "names": [f"team/{one}" for one in template.names], "tags": build.tags})

    def one(self, name, build_id):
        template, _ = self.templates.find(name)
        build = next((one for one in template.builds if one.id == build_id), None)
        if build is None:
            raise Problem(404, f"build {build_id} not found")
        return template, build

    async def file(self, _request, name, digest):
        template, _ = self.templates.find(name)
        present = (template.id, digest) in self.files
        value = {"present": present}
        if not present:
            ticket = secrets.token_hex(16)
            self.tickets[ticket] = (template.id, digest)
            value["url"] = f"http://{_request.headers['host']}/_upload/{ticket}"
        return wire.json_answer(201, value)

    async def upload(self, request, ticket):
        """PUT of a tar at an address that was given for it: no key, and a length that is known."""
        if "content-length" not in request.headers:
            raise Problem(411, "Length Required")
        if ticket not in self.tickets:
            raise Problem(403, "Forbidden")
        self.files[self.tickets.pop(ticket)] = await request.body()
        return wire.Answer(200)

    async def start(self, request, name, build_id):
        template, build = self.one(name, build_id)
        if build.status != "waiting":
            raise Problem(400, f"build is not in waiting state: {build.status}")
        asked, parent = await request.json(), None
        if asked.get("fromTemplate"):
            parent = self.templates.to_start(asked["fromTemplate"])[1]
        elif not asked.get("fromImage"):
            raise Problem(400, "fromImage or fromTemplate is needed")
        build.status = "building"
        build.start = asked.get("startCmd") or (parent.start if parent else None)
        build.work = asyncio.ensure_future(self.work(template, build, parent, asked.get("steps") or []))
        return wire.Answer(202)

    def say(self, build, message, step=None, level="info"):
        build.entries.append({"timestamp": rfc3339(self.clock.now()), "level": level, "message": message}
                             | ({"step": step} if step else {}))

    async def work(self, template, build, parent, steps):
        """All of a build; its end is in its status."""
        box = Sandbox(template, build, {"timeout": 1, "secure": False}, self.clock.now())
        root, step = self.sandboxes.path(box, "root"), "base"
        if parent:
            build.envs, build.workdir, build.user = dict(parent.envs), parent.workdir, parent.user
        try:
            self.say(build, "Building template", step)
            await self.templates.boxes.ask("make", root=root, copy=parent.root if parent else None)
            await self.sandboxes.start_box(box)
            for number, one in enumerate(steps, 1):
                step = str(number)
                self.say(build, f"[builder {number}/{len(steps)}] {one['type']} {' '.join(one.get('args', []))}", step)
                await STEPS[one["type"]](self, box, template, build, one, step)
            await self.sandboxes.stop(box)
            build.root = self.templates.new_root()
            os.rename(root, build.root)
            build.status = "ready"
            template.tags |= {tag: build for tag in build.tags}
            self.say(build, "Build finished")
        except (boxes.Failed, KeyError, IndexError, ValueError, OSError) as error:
            build.reason = {"message": str(error) if not isinstance(error, KeyError) else f"unknown step {error}", "step": step}
            self.say(build, build.reason["message"], step, "error")
            await self.sandboxes.stop(box)
            if os.path.exists(root):
                await self.templates.boxes.ask("remove", root=root)
            build.status = "error"
        self.sandboxes.remove_sockets(box)
        build.updated = self.clock.now()

    async def run(self, box, build, text, user, step):
        code, lines = await inside.run(await self.sandboxes.connect(box), None, text, user, build.workdir or "", build.envs)
        for line in lines:
            self.say(build, line, step)
        if code != 0:
            raise ValueError(f"failed to run command '{text}': exit status {code}")

    async def do_run(self, box, _template, build, one, step):
        await self.run(box, build, one["args"][0], (one["args"][1:] or [""])[0] or build.user, step)

    async def do_env(self, _box, _template, build, one, _step):
        build.envs |= dict(zip(one["args"][::2], one["args"][1::2]))

    async def do_workdir(self, box, _template, build, one, step):
        path = shlex.quote(one["args"][0])
        await self.run(box, build, f"mkdir -p {path} && chown {shlex.quote(build.user)}: {path}", "root", step)
        build.workdir = one["args"][0]

    async def do_user(self, _box, _template, build, one, _step):
        build.user = one["args"][0]

    async def do_copy(self, box, template, build, one, step):
        source, to, user, mode = (one["args"] + [""] * 4)[:4]
        data = self.files.get((template.id, one.get("filesHash")))
        if data is None:
            raise ValueError(f"files with the hash {one.get('filesHash')} were not uploaded")
        await inside.put(await self.sandboxes.connect(box), None, "/tmp/.copied.tar", data)
        user, to = user or build.user, os.path.join(build.workdir or f"/home/{build.user}", to) + ("/" if to.endswith("/") else "")
        # One file for a name without a slash at its end is that name; else it is a directory to put things into.
        text = f"""set -e; mkdir /tmp/.copied; cd /tmp/.copied; tar -xf ../.copied.tar
            chown -R {shlex.quote(user)}: .; {f"chmod -R {shlex.quote(mode)} {source};" if mode else ""} to={shlex.quote(to)}
            if [ -f {shlex.quote(source)} ] && [ "$to" = "${{to%/}}" ] && [ ! -d "$to" ]; then
                mkdir -p "$(dirname "$to")"; cp -a {shlex.quote(source)} "$to"
            else mkdir -p "$to"; for one in {source}; do if [ -d "$one" ]; then cp -a "$one/." "$to"; else cp -a "$one" "$to"; fi; done
            fi; cd /; rm -r /tmp/.copied /tmp/.copied.tar"""
        code, lines = await inside.run(await self.sandboxes.connect(box), None, text)
        if code != 0:
            raise ValueError(f"failed to copy '{source}': {' '.join(lines)}")

    # ---- looking ----

    async def status(self, request, name, build_id):
        template, build = self.one(name, build_id)
        query = request.query
        offset = listing.number(query, "logsOffset", 0, 0, 1 << 40)
        limit = listing.number(query, "limit", ENTRIES, 0, ENTRIES)
        levels = ["debug", "info", "warn", "error"]
        least = levels.index(query.get("level", "debug"))
        entries = [one for one in build.entries if levels.index(one["level"]) >= least][offset:offset + limit]
        value = {"templateID": template.id, "buildID": build.id, "status": build.status, "logEntries": entries,
                 "logs": [one["message"] for one in entries]}
        return wire.json_answer(200, value | ({"reason": build.reason} if build.reason else {}))

    @staticmethod
    def common(template):
        return {"templateID": template.id, "public": template.public, "aliases": template.names,
                "names": [f"team/{one}" for one in template.names], "createdAt": rfc3339(template.builds[0].created),
                "updatedAt": rfc3339(template.builds[-1].updated), "spawnCount": template.spawned,
                "lastSpawnedAt": rfc3339(template.last_spawned) if template.last_spawned else None}

    async def list(self, request):
        found = [one for one in self.templates.all.values() if not one.source]
        items, headers = listing.page(found, request.query)
        return wire.json_answer(200, [self.common(one) | {
            "buildID": one.build.id, "cpuCount": one.build.cpu, "memoryMB": one.build.memory, "diskSizeMB": one.build.disk,
            "createdBy": None, "buildCount": len(one.builds), "envdVersion": ENVD_VERSION, "buildStatus": one.build.status,
        } for one in items], headers)

    async def get(self, _request, name):
        template, _ = self.templates.find(name)
        return wire.json_answer(200, self.common(template) | {"builds": [
            {"buildID": one.id, "status": one.status, "createdAt": rfc3339(one.created), "updatedAt": rfc3339(one.updated),
             "cpuCount": one.cpu, "memoryMB": one.memory, "diskSizeMB": one.disk, "envdVersion": ENVD_VERSION}
            for one in reversed(template.builds)]})

    async def alias(self, _request, name):
        template, _ = self.templates.find(name)
        return wire.json_answer(200, {"templateID": template.id, "public": template.public})

    async def update(self, request, name):
        template, _ = self.templates.find(name)
        template.public = bool((await request.json()).get("public", template.public))
        return wire.json_answer(200, {"names": [f"team/{one}" for one in template.names]})

    async def delete(self, _request, name):
        await self.templates.delete(name)
        return wire.Answer(204)

    # ---- tags ----

    async def tag(self, request):
        asked = await request.json()
        template, build = self.templates.find(asked["target"])
        template.tags |= {tag: build for tag in asked["tags"]}
        return wire.json_answer(201, {"tags": asked["tags"], "buildID": build.id})

    async def untag(self, request):
        asked = await request.json()
        template, _ = self.templates.find(asked["name"])
        for tag in asked["tags"]:
            if template.tags.pop(tag, None) is None:
                raise Problem(404, f"tag '{tag}' not found")
        return wire.Answer(204)

    async def tags(self, _request, name):
        template, _ = self.templates.find(name)
        return wire.json_answer(200, [{"tag": tag, "buildID": one.id, "createdAt": rfc3339(one.created)}
                                      for tag, one in template.tags.items()])


STEPS = {"RUN": Builds.do_run, "ENV": Builds.do_env, "WORKDIR": Builds.do_workdir, "USER": Builds.do_user, "COPY": Builds.do_copy}
