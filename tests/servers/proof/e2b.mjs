// SPDX-License-Identifier: Apache-2.0
// The official client against tests/servers/e2b.py: its own calls, each result checked.
// E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY say where; SDK is the package's name (e2b, or an older line of it).
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
}

export { Sandbox, sdk, withSandbox }
await run(parts)
