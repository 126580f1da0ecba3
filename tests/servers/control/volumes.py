# SPDX-License-Identifier: Apache-2.0
"""Volumes: directories that outlive sandboxes and can be in several at once. Their content is reached through sandboxes."""
import os
import re
import secrets

from base import wire
from base.service import Problem
from control.templates import new_uuid


class Volume:
    def __init__(self, name, root):
        self.id, self.name, self.root, self.token = new_uuid(), name, root, secrets.token_hex(24)


class Volumes:
    def __init__(self, boxes, sandboxes):
        self.boxes, self.sandboxes, self.all = boxes, sandboxes, {}
        os.makedirs(f"{boxes.top}/volumes", exist_ok=True)

    def routes(self):
        return [("GET", "/volumes", self.list), ("POST", "/volumes", self.create), ("GET", "/volumes/{}", self.get),
                ("DELETE", "/volumes/{}", self.delete)]

    def find(self, name):
        if name not in self.all:
            raise Problem(404, f"Volume {name} not found")
        return self.all[name]

    def mounts(self, asked):
        """[directory, path inside] of each that a creation asks for; 400 where one is not there."""
        found = []
        for one in asked or []:
            volume = next((volume for volume in self.all.values() if volume.name == one["name"]), None)
            if volume is None or not one["path"].startswith("/"):
                raise Problem(400, f"volume '{one['name']}' not found, or its path is not absolute")
            found.append([volume.root, os.path.normpath(one["path"])])
        return found

    async def list(self, _request):
        return wire.json_answer(200, [{"volumeID": one.id, "name": one.name} for one in self.all.values()])

    async def create(self, request):
        name = (await request.json()).get("name")
        if not isinstance(name, str) or not re.fullmatch("[a-zA-Z0-9_-]+", name):
            raise Problem(400, "Invalid volume name")
        if any(one.name == name for one in self.all.values()):
            raise Problem(400, f"Volume with name '{name}' already exists")
        volume = Volume(name, f"{self.boxes.top}/volumes/{new_uuid()}")
        self.all[volume.id] = volume
        await self.boxes.ask("make", root=volume.root, bare=True)
        return wire.json_answer(201, self.whole(volume))

    @staticmethod
    def whole(volume):
        return {"volumeID": volume.id, "name": volume.name, "token": volume.token}

    async def get(self, _request, name):
        return wire.json_answer(200, self.whole(self.find(name)))

    async def delete(self, _request, name):
        volume = self.find(name)
        if any(volume.root == root for one in self.sandboxes.all.values() for root, _ in one.options.get("mounts", [])):
            raise Problem(400, f"Volume {name} is mounted")
        del self.all[volume.id]
        await self.boxes.ask("remove", root=volume.root)
        return wire.Answer(204)
