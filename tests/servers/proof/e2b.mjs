// SPDX-License-Identifier: Apache-2.0
// The official client against tests/servers/e2b.py: its own calls, each result checked.
// E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY say where; SDK is the package's name (e2b, or an older line of it).
import { writeFile } from 'node:fs/promises'

import { assert, rejects, run, until } from './checks.mjs'

const sdk = await import(process.env.SDK ?? 'e2b')
const { Sandbox, CommandExitError, NotFoundError, InvalidArgumentError, TimeoutError, AuthenticationError } = sdk

async function withSandbox(then, options = {}) {
  const sandbox = await Sandbox.create(options)
  try {
    await then(sandbox)
  } finally {
    await sandbox.kill().catch(() => {})
  }
}

const parts = {
  start: () => withSandbox(async (sandbox) => {
    const result = await sandbox.commands.run('echo "Hello from E2B!"')
    assert.equal(result.stdout, 'Hello from E2B!\n')
    assert.equal(result.exitCode, 0)
    assert.equal(await sandbox.isRunning(), true)
  }),

  commands: () => withSandbox(async (sandbox) => {
    const out = []
    const result = await sandbox.commands.run('echo out; echo err >&2; pwd; id -un; echo $MINE', {
      envs: { MINE: 'x y' }, onStdout: (text) => out.push(text),
    })
    assert.equal(result.stdout, 'out\n/home/user\nuser\nx y\n')
    assert.equal(result.stderr, 'err\n')
    assert.equal(out.join(''), result.stdout)
    const failure = await rejects(sandbox.commands.run('echo oops >&2; exit 7'), CommandExitError)
    assert.equal(failure.exitCode, 7)
    assert.equal(failure.stderr, 'oops\n')
    assert.equal((await sandbox.commands.run('id -un; pwd', { user: 'root' })).stdout, 'root\n/root\n')
    assert.equal((await sandbox.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
    await rejects(sandbox.commands.run('true', { cwd: '/nowhere' }), InvalidArgumentError, /nowhere/)
    await rejects(sandbox.commands.run('true', { user: 'nosuch' }), AuthenticationError)
    const big = await sandbox.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')
    assert.equal(big.stdout.length, 3000000)
    assert.equal((await sandbox.commands.run('printf "aäöü€%.0s" $(seq 20000)')).stdout, 'aäöü€'.repeat(20000))
  }, { envs: { SHARED: 'yes' } }),

  background: () => withSandbox(async (sandbox) => {
    assert.equal((await sandbox.commands.run('echo $SHARED')).stdout, 'yes\n')
    const command = await sandbox.commands.run('cat; echo done', { background: true, stdin: true })
    const listed = await sandbox.commands.list()
    assert.deepEqual(listed.map((one) => one.pid), [command.pid])
    assert.deepEqual(listed[0].args, ['-l', '-c', 'cat; echo done'])
    await sandbox.commands.sendStdin(command.pid, 'line\n')
    await sandbox.commands.closeStdin(command.pid)
    assert.equal((await command.wait()).stdout, 'line\ndone\n')
    const sleeper = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    assert.equal(await sandbox.commands.kill(sleeper.pid), true)
    const ended = await rejects(sleeper.wait(), CommandExitError)
    assert.equal(ended.exitCode, -1)
    assert.equal(await sandbox.commands.kill(sleeper.pid), false)
    await rejects(sandbox.commands.run('sleep 100', { timeoutMs: 400 }), TimeoutError)
    await until(async () => (await sandbox.commands.list()).length === 0)
  }, { envs: { SHARED: 'yes' } }),

  connect: () => withSandbox(async (sandbox) => {
    const first = await sandbox.commands.run('read x; echo got $x', { background: true, stdin: true })
    await first.disconnect()
    const again = await sandbox.commands.connect(first.pid)
    await sandbox.commands.sendStdin(first.pid, 'it\n')
    assert.equal((await again.wait()).stdout, 'got it\n')
    await rejects(sandbox.commands.connect(999999), NotFoundError)
  }),

  files: () => withSandbox(async (sandbox) => {
    const { files } = sandbox
    assert.equal((await files.write('a/b/hello.txt', 'hällo')).path, '/home/user/a/b/hello.txt')
    assert.equal(await files.read('a/b/hello.txt'), 'hällo')
    assert.equal(await files.read('/home/user/a/b/hello.txt'), 'hällo')
    const bytes = new Uint8Array(1 << 20).map((_, i) => (i * 7) ^ (i >> 8))
    await files.write('/tmp/bin', bytes.buffer)
    assert.deepEqual(await files.read('/tmp/bin', { format: 'bytes' }), bytes)
    await files.write('/tmp/blob', new Blob([bytes]))
    assert.equal((await (await files.read('/tmp/blob', { format: 'blob' })).arrayBuffer()).byteLength, bytes.length)
    const many = await files.write([{ path: '/tmp/one', data: '1' }, { path: 'two', data: '22' }])
    assert.deepEqual(many.map((one) => one.path), ['/tmp/one', '/home/user/two'])
    await files.write('/tmp/empty', '')
    assert.equal(await files.read('/tmp/empty'), '')
    await rejects(files.read('/tmp/none'), NotFoundError)
    await rejects(files.read('/tmp'), InvalidArgumentError)
    const info = await files.getInfo('/tmp/bin')
    assert.equal(info.size, bytes.length)
    assert.equal(info.type, 'file')
    assert.equal(info.owner, 'user')
    assert.equal(info.permissions, '-rw-r--r--')
    assert.equal(info.mode, 0o644)
    assert.ok(Math.abs(Date.now() - info.modifiedTime.getTime()) < 120000)
    assert.equal((await sandbox.commands.run('stat -c %U:%a a a/b a/b/hello.txt')).stdout, 'user:755\nuser:755\nuser:644\n')
  }),

  directories: () => withSandbox(async (sandbox) => {
    const { files, commands } = sandbox
    assert.equal(await files.makeDir('d/e/f'), true)
    assert.equal(await files.makeDir('d/e/f'), false)
    await files.write('d/z', 'z')
    await commands.run('ln -s z d/link; ln -s nowhere d/dangling; mkfifo d/pipe')
    assert.deepEqual((await files.list('d')).map((one) => `${one.name} ${one.type} ${one.path}`),
      ['e dir /home/user/d/e', 'link file /home/user/d/link', 'z file /home/user/d/z'])
    const link = (await files.list('d')).find((one) => one.name === 'link')
    assert.equal(link.symlinkTarget, '/home/user/d/z')
    assert.equal(link.permissions, 'Lrwxrwxrwx')
    assert.deepEqual((await files.list('d', { depth: 3 })).map((one) => one.name), ['e', 'f', 'link', 'z'])
    await rejects(files.list('none'), NotFoundError)
    await rejects(files.list('d/z'), InvalidArgumentError)
    assert.equal(await files.exists('d/z'), true)
    assert.equal((await files.rename('d/z', 'new/y')).path, '/home/user/new/y')
    assert.equal(await files.exists('d/z'), false)
    await rejects(files.rename('d/z', 'd/q'), NotFoundError)
    await files.remove('d')
    await files.remove('d')
    assert.equal(await files.exists('d'), false)
    assert.equal(await files.read('new/y'), 'z')
  }),

  metadataOfFiles: () => withSandbox(async (sandbox) => {
    await sandbox.files.write('m', 'x', { metadata: { colour: 'red and blue' } })
    assert.deepEqual((await sandbox.files.getInfo('m')).metadata, { colour: 'red and blue' })
    await sandbox.files.write('m', 'x')
    assert.deepEqual((await sandbox.files.getInfo('m')).metadata ?? {}, {})
  }),

  streams: () => withSandbox(async (sandbox) => {
    const source = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 100; i++) controller.enqueue(new TextEncoder().encode(`${i}`.padEnd(10000, '.')))
        controller.close()
      },
    })
    await sandbox.files.write('stream', source, { useOctetStream: true })
    assert.equal((await sandbox.files.getInfo('stream')).size, 1000000)
    let size = 0
    for await (const piece of await sandbox.files.read('stream', { format: 'stream' })) size += piece.length
    assert.equal(size, 1000000)
    await sandbox.files.write('zip', 'a'.repeat(100000), { gzip: true, useOctetStream: true })
    assert.equal((await sandbox.files.read('zip', { gzip: true })).length, 100000)
  }),

  watch: () => withSandbox(async (sandbox) => {
    const events = []
    await sandbox.files.makeDir('w/sub')
    const handle = await sandbox.files.watchDir('w', (event) => { events.push(`${event.type} ${event.name}`) }, { recursive: true })
    await sandbox.commands.run('echo x > w/f; chmod 600 w/f; mv w/f w/g; rm w/g; echo y > w/sub/h; mkdir w/new')
    await until(() => events.includes('create new'))
    assert.deepEqual(events.filter((one) => !one.startsWith('write')),
      ['create f', 'chmod f', 'rename f', 'create g', 'remove g', 'create sub/h', 'create new'])
    assert.ok(events.includes('write f') && events.includes('write sub/h'))
    await handle.stop()
    await rejects(sandbox.files.watchDir('none', () => {}), NotFoundError)
  }),

  terminal: () => withSandbox(async (sandbox) => {
    let text = ''
    const terminal = await sandbox.pty.create({
      cols: 91, rows: 33, onData: (data) => { text += new TextDecoder().decode(data) }, timeoutMs: 0,
    })
    const say = (line) => sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode(line))
    await say('stty size; echo $TERM; tty\n')
    await until(() => /33 91\r\nxterm-256color\r\n\/dev\/pts\/\d/.test(text))
    await sandbox.pty.resize(terminal.pid, { cols: 50, rows: 20 })
    await say('stty size\n')
    await until(() => /20 50\r\n/.test(text))
    await say('exit 3\n')
    assert.equal((await rejects(terminal.wait(), CommandExitError)).exitCode, 3)
    const other = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} })
    assert.equal(await sandbox.pty.kill(other.pid), true)
  }),

  life: async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 100000, metadata: { test: 'life' }, envs: { A: '1' } })
    const info = await sandbox.getInfo()
    assert.equal(info.sandboxId, sandbox.sandboxId)
    assert.equal(info.state, 'running')
    assert.deepEqual(info.metadata, { test: 'life' })
    assert.ok(Math.abs(info.endAt - info.startedAt - 100000) < 2000)
    await sandbox.setTimeout(500000)
    assert.ok((await sandbox.getInfo()).endAt - info.startedAt > 400000)
    const other = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await other.commands.run('echo $A')).stdout, '1\n')
    assert.equal((await sandbox.getMetrics()).length, 1)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
    assert.equal(await sandbox.isRunning(), false)
    const gone = await sandbox.commands.run('true').then(() => null, (error) => error)
    assert.ok(gone instanceof NotFoundError || gone instanceof TimeoutError, String(gone))
    await rejects(Sandbox.connect(sandbox.sandboxId), NotFoundError)
    const short = await Sandbox.create({ timeoutMs: 100000 })
    await short.setTimeout(1000)
    await until(() => Sandbox.getInfo(short.sandboxId).then(() => false, (error) => error instanceof NotFoundError))
  },

  pause: () => withSandbox(async (sandbox) => {
    const counter = await sandbox.commands.run('while :; do echo >> count; sleep 0.02; done', { background: true, timeoutMs: 0 })
    await until(() => sandbox.files.exists('count'))
    assert.notEqual(await sandbox.pause(), false)
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).state, 'paused')
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.deepEqual((await again.commands.list()).map((one) => one.pid), [counter.pid])
    const size = (await again.files.getInfo('count')).size
    await until(async () => (await again.files.getInfo('count')).size > size)
    assert.equal(await again.commands.kill(counter.pid), true)
    await counter.wait().catch(() => {})
  }),

  autoPause: async () => {
    const sandbox = await Sandbox.create({ timeoutMs: 100000, lifecycle: { onTimeout: 'pause', autoResume: true } })
    await sandbox.files.write('kept', 'yes')
    await sandbox.setTimeout(1000)
    await until(async () => (await Sandbox.getInfo(sandbox.sandboxId)).state === 'paused')
    assert.equal(await sandbox.files.read('kept'), 'yes') // which resumed it
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).state, 'running')
    await sandbox.kill()
  },

  snapshots: () => withSandbox(async (sandbox) => {
    await sandbox.files.write('state', 'first')
    const snapshot = await sandbox.createSnapshot()
    await sandbox.files.write('state', 'second')
    const page = await sandbox.listSnapshots().nextItems()
    assert.deepEqual(page.map((one) => one.snapshotId), [snapshot.snapshotId])
    const copy = await Sandbox.create(snapshot.snapshotId)
    assert.equal(await copy.files.read('state'), 'first')
    assert.equal(await sandbox.files.read('state'), 'second')
    await copy.kill()
    const forks = await sandbox.fork({ count: 2 })
    for (const one of forks) {
      assert.equal(await one.files.read('state'), 'second')
      await one.files.write('state', 'third')
      await one.kill()
    }
    assert.equal(await sandbox.files.read('state'), 'second')
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
  }),

  lists: async () => {
    const mark = `${Math.random()}`
    const made = []
    for (let i = 0; i < 3; i++) made.push(await Sandbox.create({ metadata: { mark, 'k ey': `v&${i % 2}` } }))
    const ids = (items) => items.map((one) => one.sandboxId)
    const paginator = Sandbox.list({ query: { metadata: { mark } }, limit: 2 })
    const first = await paginator.nextItems()
    assert.deepEqual(ids(first), ids([made[2], made[1]]))
    assert.equal(paginator.hasNext, true)
    assert.deepEqual(ids(await paginator.nextItems()), ids([made[0]]))
    assert.equal(paginator.hasNext, false)
    assert.deepEqual(ids(await Sandbox.list({ query: { metadata: { mark, 'k ey': 'v&1' } } }).nextItems()), ids([made[1]]))
    await made[0].pause()
    assert.deepEqual(ids(await Sandbox.list({ query: { metadata: { mark }, state: ['paused'] } }).nextItems()), ids([made[0]]))
    for (const one of made) assert.equal(await one.kill(), true)
    assert.deepEqual(await Sandbox.list({ query: { metadata: { mark } } }).nextItems(), [])
  },

  signed: () => withSandbox(async (sandbox) => {
    const here = (url) => url.replace(/^https?:\/\/[^/]*/, process.env.E2B_SANDBOX_URL)
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' }
    const upload = await sandbox.uploadUrl('up.txt', { useSignatureExpiration: 60 })
    const form = new FormData()
    form.append('file', new Blob(['signed']), 'up.txt')
    assert.equal((await fetch(here(upload), { method: 'POST', body: form, headers })).status, 200)
    const url = here(await sandbox.downloadUrl('up.txt'))
    const whole = await fetch(url, { headers: { ...headers, 'Accept-Encoding': 'identity' } })
    assert.equal(await whole.text(), 'signed')
    const part = await fetch(url, { headers: { ...headers, Range: 'bytes=2-3', 'Accept-Encoding': 'identity' } })
    assert.deepEqual([part.status, await part.text(), part.headers.get('content-range')], [206, 'gn', 'bytes 2-3/6'])
    assert.equal((await fetch(url, { headers: { ...headers, Range: 'bytes=9-', 'Accept-Encoding': 'identity' } })).status, 416)
    assert.equal((await fetch(url.replace('up.txt', 'other'), { headers })).status, 401)
    assert.equal((await fetch(`${process.env.E2B_SANDBOX_URL}/files?path=up.txt`, { headers })).status, 401)
    const late = here(await sandbox.downloadUrl('up.txt', { useSignatureExpiration: -10 }))
    assert.equal((await fetch(late, { headers })).status, 401)
  }),

  ports: () => withSandbox(async (sandbox) => {
    assert.match(sandbox.getHost(8000), new RegExp(`^8000-${sandbox.sandboxId}\\.`))
    await sandbox.files.write('site/index.html', 'served')
    await sandbox.commands.run('python3 -m http.server 8000 --directory site', { background: true, timeoutMs: 0 })
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
    await until(async () => (await fetch(process.env.E2B_SANDBOX_URL, { headers })).status === 200)
    assert.equal(await (await fetch(`${process.env.E2B_SANDBOX_URL}/index.html`, { headers })).text(), 'served')
    const closed = await fetch(process.env.E2B_SANDBOX_URL, { headers: { ...headers, 'E2b-Sandbox-Port': '9' } })
    assert.deepEqual([closed.status, (await closed.json()).port], [502, 9])
  }),

  templates: async () => {
    const { Template } = sdk
    const name = `built-${process.pid}`
    await writeFile('page.txt', 'copied')
    const lines = []
    const template = Template({ fileContextPath: process.cwd() }).fromBaseImage().setEnvs({ COLOUR: 'red' }).setWorkdir('/opt/app')
      .copy('page.txt', 'pages/').runCmd('echo made > made.txt; echo $COLOUR', { user: 'root' })
      .setStartCmd('touch /tmp/started; sleep 1000', 'true')
    const built = await Template.build(template, name, { cpuCount: 1, memoryMB: 256, onBuildLogs: (entry) => lines.push(entry.message) })
    assert.ok(lines.includes('red'), lines.join('\n'))
    assert.equal(await (Template.exists ?? Template.aliasExists)(name), true)
    const sandbox = await Sandbox.create(name)
    assert.equal((await sandbox.commands.run('pwd; cat made.txt pages/page.txt; echo; echo $COLOUR')).stdout, '/opt/app\nmade\ncopied\nred\n')
    await until(() => sandbox.files.exists('/tmp/started'))
    assert.deepEqual([(await sandbox.getInfo()).cpuCount, (await sandbox.getInfo()).memoryMB], [1, 256])
    await sandbox.kill()
    await Template.assignTags(`${name}:default`, 'good')
    assert.deepEqual((await Template.getTags(built.templateId)).map((one) => one.tag).sort(), ['default', 'good'])
    await (await Sandbox.create(`${name}:good`)).kill()
    await Template.removeTags(name, 'good')
    await rejects(Sandbox.create(`${name}:good`), sdk.SandboxError, /404/)
    await rejects(Template.build(Template().fromBaseImage().runCmd('exit 5'), `${name}-bad`), sdk.BuildError, /exit status 5/)
  },

  volumes: async () => {
    const { Volume } = sdk
    const name = `kept-${process.pid}`
    const volume = await Volume.create(name)
    await rejects(Volume.create(name), sdk.VolumeError ?? Error)
    await withSandbox(async (first) => {
      await first.files.write('/mnt/shared/note', 'from the first')
      await withSandbox(async (second) => {
        assert.equal(await second.files.read('/data/deep/note'), 'from the first')
        await second.commands.run('echo more >> /data/deep/note')
      }, { volumeMounts: { '/data/deep': volume } })
      assert.equal(await first.files.read('/mnt/shared/note'), 'from the firstmore\n')
      assert.deepEqual((await first.getInfo()).volumeMounts, [{ name, path: '/mnt/shared' }])
    }, { volumeMounts: { '/mnt/shared': name } })
    assert.ok((await Volume.list()).some((one) => one.volumeId === volume.volumeId))
    assert.equal(await Volume.destroy(volume.volumeId), true)
    assert.equal(await Volume.destroy(volume.volumeId), false)
  },

  keys: async () => {
    await rejects(Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
    await rejects(Sandbox.create('no-such-template'), sdk.SandboxError, /404/)
  },
}

await run(parts)
