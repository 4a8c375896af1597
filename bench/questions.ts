/**
 * Questions of a person or a model, each with its obvious skill: some are bundled, most are among 10,200 that differ
 * from their neighbours in one word. They have everyday words: singular instead of plural, another form of the verb.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

export const QUESTIONS: ReadonlyArray<readonly [text: string, skill: string]> = [
  ['What is 17.5 percent of 2340?', 'calculator'],
  ['Will it rain in Oslo tomorrow?', 'weather'],
  ['write a post-mortem about last night\'s outage', 'incident-report'],
  ['How do I put our brand colours on a slide?', 'brand-assets'],
  ['I need the Northlight logo as a file', 'brand-assets'],
  ['Que cuisiner ce soir pour six convives ?', 'recettes-maison'],
  ['my call to the skillserve server returned an error', 'using-skillserve'],
  ['How do I translate a lab report for a hospital?', 'translate-lab-reports-hospitals'],
  ['compare two insurance policies for a farm', 'compare-insurance-policies-farms'],
  ['Can you proofread the newsletter of the museum?', 'proofread-newsletters-museums'],
  ['I want to convert a spreadsheet for the bakery', 'convert-spreadsheets-bakeries'],
  ['How would I illustrate a user manual for a theatre?', 'illustrate-user-manuals-theatres'],
  ['estimate a construction budget for a city council', 'estimate-construction-budgets-city-councils'],
  ['Print labels for parcels of a pharmacy', 'label-parcels-pharmacies']
]

const VERBS = [
  'translate', 'summarize', 'draft', 'archive', 'compare', 'proofread', 'anonymize', 'convert', 'plan', 'validate',
  'illustrate', 'schedule', 'classify', 'estimate', 'merge', 'label', 'price', 'negotiate', 'visualize', 'sign'
]

const OBJECTS = [
  'lab reports', 'minutes', 'contracts', 'invoices', 'insurance policies', 'newsletters', 'surveys', 'spreadsheets',
  'timetables', 'tax returns', 'user manuals', 'shift rotas', 'customer complaints', 'construction budgets',
  'address lists', 'parcels', 'job offers', 'floor plans', 'menus', 'catalogues', 'press releases', 'speeches',
  'grant applications', 'inventories', 'purchase orders', 'delivery notes', 'training courses', 'safety briefings',
  'audit trails', 'photographs'
]

const PLACES = [
  'hospitals', 'schools', 'law firms', 'hotels', 'farms', 'museums', 'universities', 'bakeries', 'airlines',
  'startups', 'theatres', 'libraries', 'banks', 'city councils', 'charities', 'pharmacies', 'breweries'
]

/** Queries of one to four words, for the time that a search takes. */
export const QUERIES = Array.from({ length: 1_000 }, (_, index) => {
  const [verb, object, place] = [VERBS, OBJECTS, PLACES].map((words) => words[index % words.length] ?? '')
  const queries = [place, `${verb} ${object}`, `${object} ${place}`, verb?.slice(0, 3), `I have to ${verb} ${object}`]
  return queries[index % queries.length] ?? ''
})

/** Writes 10,200 skills: every verb with every object in every place. */
export async function makeSkillsInWords (root: string): Promise<number> {
  for (const verb of VERBS) {
    await nextTurn()
    for (const object of OBJECTS) {
      for (const place of PLACES) {
        const name = `${verb}-${object}-${place}`.replaceAll(' ', '-')
        mkdirSync(join(root, name), { recursive: true })
        writeFileSync(join(root, name, 'SKILL.md'), `---
name: ${name}
description: To ${verb} ${object} of ${place}. Use when somebody has to ${verb} ${object}, or asks how that is done.
---

# ${verb} ${object} for ${place}

## Before you ${verb}

Read what was agreed with the ${place}.
`)
      }
    }
  }
  return VERBS.length * OBJECTS.length * PLACES.length
}
