import { printable } from '../../core/shared/text.ts'
import type { ReporterFactory } from './reporter.ts'

/** For programs: one JSON object, the skills in the shape of `POST /validate`. */
export const jsonReporter: ReporterFactory = ({ print }) => {
  let isFirst = true
  print('{"skills":[')
  return {
    skill ({ path, skill: { name, valid }, revision, verdicts, findings, tokens }) {
      const entry = { path, skill_name: name, revision, valid, tokens: tokens(), targets: verdicts, findings }
      print(`${isFirst ? '' : ','}\n${printable(JSON.stringify(entry))}`)
      isFirst = false
    },
    end ({ skills, error, warning, info, accepted }) {
      const totals = { skills, errors: error, warnings: warning, infos: info, accepted }
      print(`\n],"totals":${JSON.stringify(totals)}}\n`)
    }
  }
}
