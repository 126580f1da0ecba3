// SPDX-License-Identifier: Apache-2.0
// The official client against tests/servers/opensandbox.py: its own calls, each result checked.
// SERVICE_URL and SERVICE_KEY say where.
import { ConnectionConfig, Sandbox, SandboxApiException, SandboxManager } from '@alibaba-group/opensandbox'

import { assert, rejects, run, until } from './checks.mjs'

const domain = process.env.SERVICE_URL.replace('http://', '')
const connect = (options = {}) => new ConnectionConfig({ domain, protocol: 'http', apiKey: process.env.SERVICE_KEY, ...options })

async function withSandbox(then, options = {}, config = {}) {
  const sandbox = await Sandbox.create({ connectionConfig: connect(config), image: 'debian', ...options })
  try {
    await then(sandbox)
  } finally {
    await sandbox.kill().catch(() => {})
    await sandbox.close()
  }
}

const text = (execution) => execution.logs.stdout.map((one) => one.text).join('\n')

const parts = {
  commands: () => withSandbox(async ({ commands }) => {
    const hello = await commands.run("echo 'Hello Sandbox!'; echo oops >&2")
    assert.equal(text(hello), 'Hello Sandbox!')
    assert.equal(hello.logs.stderr[0].text, 'oops')
    assert.equal(hello.exitCode, 0)
    const failed = await commands.run('exit 7')
    assert.deepEqual([failed.error.name, failed.error.value], ['CommandExecError', '7'])
    assert.equal(text(await commands.run('pwd; echo $MINE; id -u', { workingDirectory: '/tmp', envs: { MINE: 'x' }, uid: 1000 })), '/tmp\nx\n1000')
    const late = await commands.run('echo begun; sleep 100', { timeoutSeconds: 1 })
    assert.deepEqual([text(late), late.error.value], ['begun', '-1'])
    assert.equal((await commands.run('seq 20000')).logs.stdout.length, 20000)
  }),

  background: () => withSandbox(async ({ commands }) => {
    const started = await commands.run('echo one; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo two >&2; exit 4', { background: true })
    await until(async () => (await commands.getBackgroundCommandLogs(started.id)).content === 'one\n')
    const { cursor } = await commands.getBackgroundCommandLogs(started.id)
    assert.equal((await commands.getCommandStatus(started.id)).running, true)
    await commands.run('touch /tmp/go')
    await until(async () => !(await commands.getCommandStatus(started.id)).running)
    assert.equal((await commands.getCommandStatus(started.id)).exitCode, 4)
    assert.equal((await commands.getBackgroundCommandLogs(started.id, cursor)).content, 'two\n')
    const endless = await commands.run('sleep 1000', { background: true })
    await commands.interrupt(endless.id)
    await until(async () => !(await commands.getCommandStatus(endless.id)).running)
    await rejects(commands.getCommandStatus('none'), SandboxApiException)
  }),

  sessions: () => withSandbox(async ({ commands }) => {
    const session = await commands.createSession({ workingDirectory: '/tmp' })
    await commands.runInSession(session, 'export KEPT="it is"; mkdir -p deep; cd deep')
    assert.equal(text(await commands.runInSession(session, 'echo $KEPT; pwd; echo err >&2')), 'it is\n/tmp/deep\nerr')
    assert.equal((await commands.runInSession(session, 'exit 3')).error.value, '3')
    await commands.deleteSession(session)
    await rejects(commands.runInSession(session, 'true'), SandboxApiException)
  }),

  files: () => withSandbox(async ({ files, commands }) => {
    await files.createDirectories([{ path: '/tmp/d/e', mode: 750 }])
    const bytes = new Uint8Array(100000).map((_, i) => i * 7)
    await files.writeFiles([{ path: '/tmp/d/a.txt', data: 'hällo\n', mode: 600 }, { path: '/tmp/d/bin', data: bytes, owner: 'user', group: 'user', mode: 644 }])
    assert.equal(await files.readFile('/tmp/d/a.txt'), 'hällo\n')
    assert.deepEqual(await files.readBytes('/tmp/d/bin'), bytes)
    assert.deepEqual(await files.readBytes('/tmp/d/bin', { range: 'bytes=10-19' }), bytes.slice(10, 20))
    const about = (await files.getFileInfo(['/tmp/d/bin']))['/tmp/d/bin']
    assert.deepEqual([about.size, about.mode, about.owner, about.type], [100000, 644, 'user', 'file'])
    assert.deepEqual((await files.listDirectory({ path: '/tmp/d' })).map((one) => `${one.path} ${one.type}`),
      ['/tmp/d/a.txt file', '/tmp/d/bin file', '/tmp/d/e directory'])
    assert.equal(text(await commands.run('stat -c %a /tmp/d/e /tmp/d/a.txt')), '750\n600')
    await files.setPermissions([{ path: '/tmp/d/a.txt', mode: 640 }])
    assert.equal((await files.search({ path: '/tmp/d', pattern: '*.txt' }))[0].mode, 640)
    await files.moveFiles([{ src: '/tmp/d/a.txt', dest: '/tmp/d/e/b.txt' }])
    assert.deepEqual((await files.replaceContentsDetailed([{ path: '/tmp/d/e/b.txt', oldContent: 'l', newContent: 'L' }]))[0].replacedCount, 2)
    assert.equal(await files.readFile('/tmp/d/e/b.txt'), 'häLLo\n')
    await rejects(files.moveFiles([{ src: '/tmp/d/bin', dest: '/tmp/d/e/b.txt' }]), SandboxApiException)
    await files.deleteFiles(['/tmp/d/e/b.txt'])
    await rejects(files.readFile('/tmp/d/e/b.txt'), SandboxApiException)
    await files.deleteDirectories(['/tmp/d'])
    await rejects(files.getFileInfo(['/tmp/d']), SandboxApiException)
  }),

  life: () => withSandbox(async (sandbox) => {
    const info = await sandbox.getInfo()
    assert.equal(info.status.state, 'Running')
    assert.equal(text(await sandbox.commands.run('echo $A')), '1')
    assert.ok((await sandbox.getMetrics()).memoryTotalMiB > 0)
    await sandbox.patchMetadata({ test: null, other: 'x' })
    assert.deepEqual((await sandbox.getInfo()).metadata, { other: 'x' })
    await sandbox.renew(3000)
    assert.ok((await sandbox.getInfo()).expiresAt - info.expiresAt > 1000000)
    const behind = await sandbox.commands.run('while :; do echo x; sleep 0.02; done', { background: true })
    await sandbox.pause()
    await until(async () => (await sandbox.getInfo()).status.state === 'Paused')
    const again = await sandbox.resume()
    assert.equal((await again.commands.getCommandStatus(behind.id)).running, true)
    await rejects(again.sandboxes.resumeSandbox(again.id), SandboxApiException)
    await again.close()
  }, { env: { A: '1' }, metadata: { test: 'life' }, timeoutSeconds: 600 }),

  snapshots: () => withSandbox(async (sandbox) => {
    await sandbox.files.writeFiles([{ path: '/workspace/state', data: 'first' }])
    const snapshot = await sandbox.sandboxes.createSnapshot(sandbox.id, { name: 'kept' })
    await sandbox.files.writeFiles([{ path: '/workspace/state', data: 'second' }])
    const found = await sandbox.sandboxes.listSnapshots({ sandboxId: sandbox.id })
    assert.deepEqual(found.items.map((one) => [one.id, one.status.state]), [[snapshot.id, 'Ready']])
    await withSandbox(async (copy) => assert.equal(await copy.files.readFile('/workspace/state'), 'first'),
      { image: undefined, snapshotId: snapshot.id, entrypoint: undefined })
    await sandbox.sandboxes.deleteSnapshot(snapshot.id)
    await rejects(sandbox.sandboxes.getSnapshot(snapshot.id), SandboxApiException)
  }),

  lists: async () => {
    const mark = `${Math.random()}`
    const manager = SandboxManager.create({ connectionConfig: connect() })
    await withSandbox((first) => withSandbox(async (second) => {
      const found = await manager.listSandboxInfos({ metadata: { mark }, pageSize: 1 })
      assert.deepEqual([found.items.map((one) => one.id), found.pagination.totalItems, found.pagination.hasNextPage], [[second.id], 2, true])
      await first.kill()
      await rejects(first.getInfo(), SandboxApiException)
      assert.equal((await manager.listSandboxInfos({ metadata: { mark }, states: ['Running'] })).items.length, 1)
    }, { metadata: { mark } }), { metadata: { mark } })
  },

  proxied: () => withSandbox(async (sandbox) => {
    assert.equal(text(await sandbox.commands.run('echo through')), 'through')
    await sandbox.files.writeFiles([{ path: '/workspace/site/index.html', data: 'served' }])
    await sandbox.commands.run('python3 -m http.server 8000 --directory /workspace/site', { background: true })
    const url = await sandbox.getEndpointUrl(8000)
    await until(async () => (await fetch(url)).status === 200)
    assert.equal(await (await fetch(`${url}/index.html`)).text(), 'served')
  }, { secureAccess: true }, { useServerProxy: true }),

  refusals: async () => {
    await rejects(Sandbox.create({ connectionConfig: connect({ apiKey: 'wrong' }), image: 'x' }), SandboxApiException)
    await rejects(Sandbox.create({ connectionConfig: connect(), image: 'x', timeoutSeconds: 5 }), SandboxApiException)
  },
}

await run(parts)
