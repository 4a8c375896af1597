import { printable } from '../../core/shared/text.ts'
import { type ReporterFactory, type SkillReport, type Totals } from './reporter.ts'

/** For programs: one JSON object, the skills in the shape of `POST /validate`. */
export const jsonReporter: ReporterFactory = ({ print }) => {
  let isFirst = true
  return {
    begin () { print('{"skills":[') },
    skill (report) {
      print(`${isFirst ? '' : ','}\n${printable(JSON.stringify(toJson(report)))}`)
      isFirst = false
    },
    end (totals) { print(`\n],"totals":${JSON.stringify(namesOf(totals))}}\n`) }
  }
}

function toJson ({ path, skill: { name, valid }, revision, verdicts, findings, tokens }: SkillReport): object {
  return { path, skill_name: name, revision, valid, tokens: tokens(), targets: verdicts, findings }
}

function namesOf ({ skills, error, warning, info, accepted }: Totals): object {
  return { skills, errors: error, warnings: warning, infos: info, accepted }
}
