import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { withSkills } from '../../src/cli/with-skills.ts'
import type { CoreLog } from '../../src/core/shared/log.ts'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { StateFolder } from '../../src/sources/publish/state-folder.ts'
import { TrustPolicy } from '../../src/trust/trust-policy.ts'
import { parseSigningKey, signSkills } from '../../src/trust/sign.ts'
import { createSigner, type Signer } from '../../src/trust/signers.ts'
import type { TrustFile } from '../../src/trust/trust-file.ts'
import { Trust } from '../../src/trust/trust.ts'
import { verifySkills } from '../../src/trust/verify.ts'
import type { OpenedSkills } from '../../src/validate/validate-skills.ts'
import { startManager } from './skills.ts'

export interface KeyPair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly privatePem: string
  readonly publicPem: string
}

export function makeKeyPair (namedCurve = 'P-256'): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
  return {
    privateKey,
    publicKey,
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicPem: publicKey.export({ type: 'spki', format: 'pem' }).toString()
  }
}

/** Signs the skills of a folder, or the folder itself if it is a skill. */
export async function sign (folder: string, { privatePem }: Pick<KeyPair, 'privatePem'>,
  chain?: string): Promise<void> {
  const key = parseSigningKey(privatePem, chain)
  await open(folder, ({ folder: path, skills, names }) => signSkills(path, skills, names, key))
}

/** Returns the verdicts of a policy on the skills of a folder, or on the folder itself. */
export async function verify (folder: string, policy: TrustPolicy) {
  const verdicts = await open(folder, ({ skills, names }) => verifySkills(skills, names, policy))
  return [...verdicts.values()].map((verdict) =>
    ({ ...verdict, problem: verdict.findings.map(({ message }) => message).join('; ') }))
}

async function open<T> (folder: string, use: (opened: OpenedSkills) => Promise<T>): Promise<T> {
  return await withSkills({ positionals: [folder], options: {} }, {
    env: {}, cwd: '/', warn () {}
  }, async ([opened]) => {
    if (opened === undefined) throw new Error(`${folder} has no skills`)
    return await use(opened)
  })
}

/** A trust file in memory that tests can replace. */
export function trustOf (signers: readonly Partial<Signer>[], rest: Partial<Omit<TrustFile, 'signers'>> = {}) {
  const make = (signers: readonly Partial<Signer>[], rest: Partial<Omit<TrustFile, 'signers'>>): TrustFile => ({
    signers: signers.map((signer) => createSigner({ name: 'acme', acceptsExpired: false, ...signer })),
    roots: new Map(),
    deny: new Set(),
    ...rest
  })
  const policy = new TrustPolicy({ trust: make(signers, rest) })
  return {
    policy,
    replace (signers: readonly Partial<Signer>[], rest: Partial<Omit<TrustFile, 'signers'>>) {
      policy.replace({ trust: make(signers, rest) })
    }
  }
}

/** Writes the statement of OpenSSF Model Signing about a folder, without code of the service. */
export function statementAbout (folder: string, change: (statement: StatementDraft) => void = () => {}): Buffer {
  const paths = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).filter((path) =>
      path !== 'skill.oms.sig').sort()
  const digestOf = (path: string): string =>
    createHash('sha256').update(fs.readFileSync(join(folder, path))).digest('hex')
  const statement: StatementDraft = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'model', digest: { sha256: 'informative' } }],
    predicateType: 'https://model_signing/signature/v1.0',
    predicate: {
      resources: paths.map((name) => ({ digest: digestOf(name), algorithm: 'sha256', name })),
      serialization: { method: 'files', hash_type: 'sha256', allow_symlinks: false, ignore_paths: ['.git'] }
    },
    unknown: true
  }
  change(statement)
  return Buffer.from(JSON.stringify(statement, undefined, 2))
}

export interface StatementDraft {
  _type: string
  subject: unknown
  predicateType: string
  predicate: {
    resources: Array<{ digest: string, algorithm: string, name: string }>
    serialization: Record<string, unknown>
  }
  unknown: boolean
}

/** Opens the skills of folders that a policy guards. */
export async function startGuarded (
  t: Test, bases: string | readonly string[], policy: TrustPolicy, stateName = 'state'
): Promise<{ readonly skills: SkillManager, readonly trust: Trust, readonly log: readonly string[] }> {
  const log: string[] = []
  const line = (details: object, message: string): void => { log.push(`${message} ${JSON.stringify(details)}`) }
  const logger: CoreLog = { info: line, warn: line }
  const folder = fs.mkdtempSync(join(tmpdir(), 'verified-'))
  t.teardown(() => { fs.rmSync(folder, { recursive: true, force: true }) })
  const state = new StateFolder(join(folder, stateName))
  const trust = new Trust({ policy, state, log: logger })
  t.teardown(() => trust.close())
  const guarded = trust.guard([bases].flat().map((path) => ({ path })))
  await trust.start()
  const skills = await startManager(t, guarded)
  return { skills, trust, log }
}
