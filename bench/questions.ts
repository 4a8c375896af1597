/**
 * Questions of a person or a model, each with its obvious skill. Some are about the bundled skills, most about 10,200 generated ones that
 * differ from their neighbours in one word. A question uses everyday words: singular instead of plural, another form of the verb, and
 * all the small words around them.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

export interface Question {
  readonly text: string
  /** Name of the skill. */
  readonly skill: string
}

export const QUESTIONS: readonly Question[] = [
  { text: 'What is 17.5 percent of 2340?', skill: 'calculator' },
  { text: 'I need the exact sum of these numbers', skill: 'calculator' },
  { text: 'Will it rain in Oslo tomorrow?', skill: 'weather' },
  { text: 'what should I wear outdoors on Saturday', skill: 'weather' },
  { text: 'write a post-mortem about last night\'s outage', skill: 'incident-report' },
  { text: 'How do I put our brand colours on a slide?', skill: 'brand-assets' },
  { text: 'I need the Northlight logo as a file', skill: 'brand-assets' },
  { text: 'Que cuisiner ce soir pour six convives ?', skill: 'recettes-maison' },
  { text: 'par quoi remplacer un ingrédient qui manque', skill: 'recettes-maison' },
  { text: 'my call to the skillserve server returned an error', skill: 'using-skillserve' },
  { text: 'How do I translate a lab report for a hospital?', skill: 'translate-lab-reports-hospitals' },
  { text: 'please summarize the minutes of our school', skill: 'summarize-minutes-schools' },
  { text: 'drafting a contract at a law firm', skill: 'draft-contracts-law-firms' },
  { text: 'archive old invoices of a hotel', skill: 'archive-invoices-hotels' },
  { text: 'compare two insurance policies for a farm', skill: 'compare-insurance-policies-farms' },
  { text: 'Can you proofread the newsletter of the museum?', skill: 'proofread-newsletters-museums' },
  { text: 'anonymize a survey of a university', skill: 'anonymize-surveys-universities' },
  { text: 'I want to convert a spreadsheet for the bakery', skill: 'convert-spreadsheets-bakeries' },
  { text: 'which timetable fits an airline? plan one', skill: 'plan-timetables-airlines' },
  { text: 'validate the tax return of a startup', skill: 'validate-tax-returns-startups' },
  { text: 'How would I illustrate a user manual for a theatre?', skill: 'illustrate-user-manuals-theatres' },
  { text: 'our library needs its shift rota scheduled', skill: 'schedule-shift-rotas-libraries' },
  { text: 'classify customer complaints of a bank', skill: 'classify-customer-complaints-banks' },
  { text: 'estimate a construction budget for a city council', skill: 'estimate-construction-budgets-city-councils' },
  { text: 'merging the address lists of a charity', skill: 'merge-address-lists-charities' },
  { text: 'Print labels for parcels of a pharmacy', skill: 'label-parcels-pharmacies' }
]

/** A verb, its form in a description, and the rest of that sentence. */
const ACTIONS: ReadonlyArray<readonly [verb: string, third: string, detail: string]> = [
  ['translate', 'Translates', 'into another language, with the terms of the trade kept apart'],
  ['summarize', 'Summarizes', 'on one page, the decisions first'],
  ['draft', 'Drafts', 'from notes, in the house style'],
  ['archive', 'Archives', 'by year and number, so that they can be found again'],
  ['compare', 'Compares', 'line by line, and says what has changed'],
  ['proofread', 'Proofreads', 'for spelling, grammar and tone'],
  ['anonymize', 'Anonymizes', 'so that nobody can be recognised from them'],
  ['convert', 'Converts', 'between file formats without losing a column'],
  ['plan', 'Plans', 'ahead for the coming season'],
  ['validate', 'Validates', 'against the rules in force, and lists what is wrong'],
  ['illustrate', 'Illustrates', 'with drawings and diagrams'],
  ['schedule', 'Schedules', 'around holidays and absences'],
  ['classify', 'Classifies', 'by subject and urgency'],
  ['estimate', 'Estimates', 'with a range and the assumptions behind it'],
  ['merge', 'Merges', 'without duplicates'],
  ['label', 'Labels', 'with printed stickers'],
  ['price', 'Prices', 'in three currencies'],
  ['negotiate', 'Negotiates', 'by letter, step by step'],
  ['visualize', 'Visualizes', 'as charts'],
  ['sign', 'Signs', 'digitally, with a timestamp']
]

const OBJECTS = [
  'lab reports', 'minutes', 'contracts', 'invoices', 'insurance policies', 'newsletters', 'surveys', 'spreadsheets', 'timetables', 'tax returns',
  'user manuals', 'shift rotas', 'customer complaints', 'construction budgets', 'address lists', 'parcels', 'job offers', 'floor plans', 'menus', 'catalogues',
  'press releases', 'speeches', 'grant applications', 'inventories', 'purchase orders', 'delivery notes', 'training courses', 'safety briefings', 'audit trails', 'photographs'
]

const PLACES = [
  'hospitals', 'schools', 'law firms', 'hotels', 'farms', 'museums', 'universities', 'bakeries', 'airlines', 'startups', 'theatres', 'libraries',
  'banks', 'city councils', 'charities', 'pharmacies', 'breweries'
]

const BODY_SENTENCES = 40

/** Writes 10,200 skills: every action on every object in every place. The bodies mention other actions, objects and places. */
export async function makeSkillsInWords (root: string): Promise<number> {
  let count = 0
  for (const [verb, third, detail] of ACTIONS) {
    for (const object of OBJECTS) {
      await nextTurn()
      for (const place of PLACES) {
        const name = `${verb}-${object}-${place}`.replaceAll(' ', '-')
        const folder = join(root, name)
        mkdirSync(folder, { recursive: true })
        writeFileSync(join(folder, 'SKILL.md'), `---
name: ${name}
description: ${third} ${object} of ${place} ${detail}. Use when somebody has to ${verb} ${object} for one of the ${place}, or asks how that is done.
---

# ${name.replaceAll('-', ' ')}

${bodyOf(count++)}
`)
      }
    }
  }
  return count
}

/** Text about other actions, objects and places, different for each number. */
function bodyOf (number: number): string {
  return Array.from({ length: BODY_SENTENCES }, (_, index) => {
    const mixed = Math.imul(number * BODY_SENTENCES + index + 1, 2_654_435_761) >>> 0
    const [verb = '', , detail = ''] = ACTIONS[mixed % ACTIONS.length] ?? []
    const object = OBJECTS[(mixed >>> 8) % OBJECTS.length] ?? ''
    const place = PLACES[(mixed >>> 16) % PLACES.length] ?? ''
    return `${index + 1}. Before you ${verb} ${object} in ${place}, read what was agreed, then go on ${detail}.`
  }).join('\n')
}
