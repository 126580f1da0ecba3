// SPDX-License-Identifier: Apache-2.0
// Checks of the proofs, and the running of their parts: every part has its own sandbox or none, and they run side by side.
import assert from 'node:assert/strict'

export { assert }

export async function rejects(promise, ErrorClass, text) {
  try {
    await promise
  } catch (error) {
    assert.ok(error instanceof ErrorClass, `${error.constructor.name}, expected ${ErrorClass.name}: ${error.message}`)
    if (text) assert.match(error.message, text)
    return error
  }
  assert.fail(`nothing was thrown, expected ${ErrorClass.name}`)
}

export async function until(what, seconds = 20) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const value = await what()
    if (value) return value
    assert.ok(Date.now() < end, `waited in vain for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

// Parts: {name: async function}. Ends the process, with 1 if one of them failed.
export async function run(parts) {
  const wanted = process.argv.slice(2)
  const names = Object.keys(parts).filter((name) => wanted.length === 0 || wanted.includes(name))
  let failed = 0
  let next = 0
  async function worker() {
    while (next < names.length) {
      const name = names[next++]
      const began = Date.now()
      try {
        await parts[name]()
        console.log(`ok ${name} (${Date.now() - began} ms)`)
      } catch (error) {
        failed++
        console.log(`FAILED ${name}: ${error.message}\n${error.stack}`)
      }
    }
  }
  await Promise.all(Array.from({ length: 4 }, worker))
  console.log(`${names.length - failed} passed, ${failed} failed`)
  process.exit(failed || names.length === 0 ? 1 : 0)
}
