/** Questions in everyday words, each with its obvious skill: bundled, or among 10,200 that differ in one word. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'

export const QUESTIONS: ReadonlyArray<readonly [text: string, skill: string]> = [
  ['Will it rain in Oslo tomorrow?', 'weather'], ['drafting a contract at a law firm', 'draft-contracts-law-firms'],
  ['What is 17.5 percent of 2340?', 'calculator'], ['par quoi remplacer un ingrédient qui manque', 'recettes-maison'],
  ['what should I wear outdoors on Saturday', 'weather'], ['I need the Northlight logo as a file', 'brand-assets'],
  ['I need the exact sum of these numbers', 'calculator'],
  ['How do I put our brand colours on a slide?', 'brand-assets'],
  ['archive old invoices of a hotel', 'archive-invoices-hotels'],
  ['Que cuisiner ce soir pour six convives ?', 'recettes-maison'],
  ['write a post-mortem about last night\'s outage', 'incident-report'],
  ['Print labels for parcels of a pharmacy', 'label-parcels-pharmacies'],
  ['anonymize a survey of a university', 'anonymize-surveys-universities'],
  ['which timetable fits an airline? plan one', 'plan-timetables-airlines'],
  ['validate the tax return of a startup', 'validate-tax-returns-startups'],
  ['my call to the skillserve server returned an error', 'using-skillserve'],
  ['please summarize the minutes of our school', 'summarize-minutes-schools'],
  ['merging the address lists of a charity', 'merge-address-lists-charities'],
  ['our library needs its shift rota scheduled', 'schedule-shift-rotas-libraries'],
  ['classify customer complaints of a bank', 'classify-customer-complaints-banks'],
  ['compare two insurance policies for a farm', 'compare-insurance-policies-farms'],
  ['I want to convert a spreadsheet for the bakery', 'convert-spreadsheets-bakeries'],
  ['Can you proofread the newsletter of the museum?', 'proofread-newsletters-museums'],
  ['How do I translate a lab report for a hospital?', 'translate-lab-reports-hospitals'],
  ['How would I illustrate a user manual for a theatre?', 'illustrate-user-manuals-theatres'],
  ['estimate a construction budget for a city council', 'estimate-construction-budgets-city-councils']
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
