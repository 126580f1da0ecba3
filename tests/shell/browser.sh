#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An exposed port in a browser: the address of `url`, typed in once, shows a page with all that belongs to it, and the
# word is nowhere that the page could see it. Where there is chromium; nothing installs it for this, since it is large.
. "$(dirname "$0")/lib.sh"
BROWSER=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip 'no chromium is installed'
require python3
start_cubefs
sandbox dev
D=$MNT/dev P=$MNT/dev/ports

# The server inside: a page whose script looks at what a browser does, and reports it.
cat >"$D/workspace/page.html" <<'HTML'
<!doctype html><title>proof</title><link rel="stylesheet" href="/style.css"><img id="i" src="/pic.svg"><script src="/script.js"></script>
<body><a href="/page.html?second=1" id="a">on</a><script>
const wait = f => new Promise((ok, no) => { f(ok); setTimeout(() => no('waited in vain'), 30000); });
async function look() {
  const say = [];
  say.push('href ' + location.pathname + location.search + location.hash);
  say.push('referrer [' + document.referrer + ']');
  say.push('cookie [' + document.cookie + ']');
  say.push('style ' + getComputedStyle(document.body).color);
  say.push('script ' + window.fromScript);
  say.push('image ' + (await wait(ok => { const i = document.getElementById('i'); i.complete ? ok() : i.onload = ok; }), document.getElementById('i').naturalWidth));
  say.push('fetch ' + await (await fetch('/data?x=1')).text());
  say.push('post ' + await (await fetch('/data', {method: 'POST', body: 'body'})).text());
  say.push('module ' + (await import('/module.js')).word);
  say.push('frame ' + await wait(ok => { const f = document.createElement('iframe'); f.src = '/frame.html'; f.onload = () => ok(f.contentDocument.body.textContent); document.body.append(f); }));
  say.push('worker ' + await wait(ok => { new Worker('/worker.js').onmessage = e => ok(e.data); }));
  say.push('events ' + await wait(ok => { const s = new EventSource('/events'); s.onmessage = e => { s.close(); ok(e.data); }; }));
  say.push('socket ' + await wait((ok) => { const w = new WebSocket('ws://' + location.host + '/ws'); w.onopen = () => w.send('hello'); w.onmessage = e => ok(e.data); w.onerror = () => ok('refused'); }));
  return say;
}
look().catch(e => ['failed ' + e]).then(async say => {
  await fetch('/report', {method: 'POST', body: say.join('\n') + '\n'});
  if (!location.search.includes('second')) document.getElementById('a').click();
});
</script>
HTML
cat >"$D/workspace/serve.py" <<'PY'
import base64, hashlib, http.server, os
FILES = {'/style.css': ('text/css', 'body { color: rgb(1, 2, 3) }'), '/script.js': ('text/javascript', 'window.fromScript = "ran"'),
         '/pic.svg': ('image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"/>'),
         '/module.js': ('text/javascript', 'export const word = "imported"'), '/frame.html': ('text/html', '<body>framed</body>'),
         '/worker.js': ('text/javascript', 'postMessage("worked")'), '/events': ('text/event-stream', 'data: came\n\n')}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def give(self, kind, data):
        data = data.encode()
        self.send_response(200); self.send_header('Content-Type', kind); self.send_header('Content-Length', str(len(data)))
        self.end_headers(); self.wfile.write(data)
    def socket(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.wfile.write(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: '
                         + base64.b64encode(hashlib.sha1(key.encode()).digest()) + b'\r\n\r\n')
        n = self.rfile.read(2)[1] & 127; mask = self.rfile.read(4)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
        self.wfile.write(b'\x81' + bytes([len(data)]) + data); self.close_connection = True
    def do_GET(self):
        with open('/workspace/seen', 'a') as f: f.write(self.requestline + '\n' + str(self.headers))
        path = self.path.split('?')[0]
        if self.headers.get('Upgrade', '').lower() == 'websocket': self.socket()
        elif path == '/data': self.give('text/plain', self.path)
        elif path in FILES: self.give(*FILES[path])
        else: self.give('text/html', open('/workspace/page.html').read())
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        if self.path == '/report':
            with open('/workspace/report.new', 'a') as f: f.write(body)
            if body.count('second'): os.rename('/workspace/report.new', '/workspace/report')
        self.give('text/plain', 'got ' + body[:10])
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
PY
mkdir "$D/jobs/serve" "$P/8000"
put "$D/jobs/serve/cmd" 'exec python3 /workspace/serve.py'
url=$(timeout 60 cat <>"$P/8000/url")

browse() { # ADDRESS
	"$BROWSER" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
		--user-data-dir="$WORK/profile" "$1" >"$WORK/browser" 2>&1 &
}
export HOME=$WORK/at-home XDG_RUNTIME_DIR=$WORK
mkdir "$HOME"
browse "$url"
browser=$!
over() { kill "$browser" 2>/dev/null || true; wait "$browser" 2>/dev/null || true; }
on_exit over
wait_for 200 test -e "$D/workspace/report"
over
page() { # ADDRESS REFERRER
	printf '%s\n' "href $1" "referrer [$2]" 'cookie []' 'style rgb(1, 2, 3)' 'script ran' 'image 7' 'fetch /data?x=1' 'post got body' \
		'module imported' 'frame framed' 'worker worked' 'events came' 'socket hello'
}
check_eq "$(cat "$D/workspace/report")" "$(page / ''; page '/page.html?second=1' "${url%%\?*}")"
# Nothing of it went in: neither the word nor the cookie, in no request of any kind.
check_not grep -qi cubefs "$D/workspace/seen"
check_eq "$(grep -c '^GET ' "$D/workspace/seen")" "$(grep -c '^Host: ' "$D/workspace/seen")"
check grep -q '^GET /ws ' "$D/workspace/seen"

# The word alone opens it: the same address without it shows the refusal to another browser.
timeout 100 "$BROWSER" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
	--user-data-dir="$WORK/other" --dump-dom "${url%%\?*}" >"$WORK/dom" 2>/dev/null || true
check grep -q 'this port wants its word' "$WORK/dom"
rm -rf "$WORK/profile" "$WORK/other"
