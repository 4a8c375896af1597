import { resolve } from 'node:path'
import { parseListenHost } from '../http/request/hosts.ts'
import { BOOLEANS, MAX_PORT, parsePort } from './parse.ts'
import type { Setting } from './setting.ts'

const LOG_FORMATS = ['pretty', 'json'] as const

/** What operators see: log, metrics, audit log. */
export const OBSERVE_SETTINGS = {
  /** Undefined: pretty on a terminal. */
  logFormat: {
    argument: '--log-format FORMAT',
    variable: 'LOG_FORMAT',
    parse: (text) => LOG_FORMATS.find((format) => format === text),
    words: LOG_FORMATS,
    mustBe: 'pretty or json',
    meaning: '`pretty` or `json`; without it pretty on a terminal, JSON otherwise'
  },
  metricsPort: {
    argument: '--metrics-port PORT',
    variable: 'METRICS_PORT',
    parse: parsePort,
    mustBe: `a whole number from 0 to ${MAX_PORT} (0 takes any free port)`,
    meaning: 'port of its own for Prometheus: `GET /metrics`; without it none',
    section: 'metrics'
  },
  metricsHost: {
    variable: 'METRICS_HOST',
    default: '127.0.0.1',
    parse: parseListenHost,
    mustBe: 'a host name or an IP address',
    meaning: 'name or address that `METRICS_PORT` listens on',
    section: 'metrics'
  },
  metricsReads: {
    variable: 'METRICS_READS',
    default: 'false',
    parse: (text) => BOOLEANS.get(text),
    mustBe: 'true, false, 1 or 0',
    meaning: '`true` counts reads by skill in the metrics, which then hold names of skills',
    section: 'metrics'
  },
  /** `stdout`, or an absolute path. */
  auditLog: {
    variable: 'AUDIT_LOG',
    parse: (text, cwd) => text === 'stdout' ? text : resolve(cwd, text),
    mustBe: 'a file, or stdout',
    meaning: 'file, or `stdout`, for one JSON line per read: who, what, which revision; without it none',
    section: 'audit-log'
  },
  auditSalt: {
    variable: 'AUDIT_SALT',
    parse: (text) => text.length >= 16 ? text : undefined,
    isSecret: true,
    mustBe: 'a text of at least 16 characters',
    meaning: 'a secret; names and addresses of callers are in the audit log as their HMAC with it, which stays equal for equal ones',
    section: 'audit-log'
  },
  auditRequired: {
    variable: 'AUDIT_REQUIRED',
    default: 'false',
    parse: (text) => BOOLEANS.get(text),
    mustBe: 'true, false, 1 or 0',
    meaning: '`true` refuses reads while the audit log cannot be written',
    section: 'audit-log'
  }
} as const satisfies Readonly<Record<string, Setting>>
