#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A WebSocket through an exposed port: a server inside, a client here, with the word in the address or a header.
. "$(dirname "$0")/lib.sh"
require python3
PYTHON=/usr/bin/python3 # Debian's, which is there inside too
"$PYTHON" -c 'import websockets' 2>/dev/null || skip 'python3-websockets is not installed'
start_cubefs
sandbox dev
P=$MNT/dev/ports
cat >"$MNT/dev/workspace/serve.py" <<'PY'
import asyncio, websockets
async def echo(ws, path=None):
    await ws.send('at ' + ws.path)
    async for message in ws: await ws.send(message)
async def main():
    async with websockets.serve(echo, '127.0.0.1', 8765, max_size=None): await asyncio.Future()
asyncio.run(main())
PY
mkdir "$MNT/dev/jobs/serve" "$P/8765"
put "$MNT/dev/jobs/serve/cmd" "exec $PYTHON /workspace/serve.py"
url=$(timeout 60 cat <>"$P/8765/url")
cat >"$WORK/client.py" <<'PY'
import asyncio, sys, websockets
async def main(url, word):
    headers = {'X-Cubefs-Token': word} if word else {}
    async with websockets.connect(url, extra_headers=headers, max_size=None) as ws:
        first = await ws.recv()
        await ws.send('text'); text = await ws.recv()
        data = bytes(range(256)) * 8192
        await ws.send(data); same = await ws.recv() == data
        print(first, text, same)
try: asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
except websockets.exceptions.InvalidStatusCode as e: print(e.status_code)
PY
ws=ws${url#http}
check_eq "$("$PYTHON" "$WORK/client.py" "${ws%%\?*}chat?room=1&${ws#*\?}")" 'at /chat?room=1 text True'
check_eq "$("$PYTHON" "$WORK/client.py" "${ws%%\?*}" "$(field "$P/8765/status" token)")" 'at / text True'
check_eq "$("$PYTHON" "$WORK/client.py" "${ws%%\?*}")" 401
check_eq "$("$PYTHON" "$WORK/client.py" "${ws%%\?*}" wrong)" 401
