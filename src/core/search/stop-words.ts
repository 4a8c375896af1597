/**
 * English words that say nothing of what a skill is for: articles, pronouns, prepositions, auxiliary verbs, and what a
 * question begins with. None is left out of the index, only out of a query that has other words.
 */
const STOP_WORDS: ReadonlySet<string> = new Set((
  'a about above after again against all also am an and any are aren as at be because been before being below between both but by can cannot ' +
  'could couldn d did didn do does doesn doing don down each few for from had hadn has hasn have haven having he her ' +
  'here hers herself him himself his how i if in into is isn it its itself just let ll may me more most much must ' +
  'my myself need needs no nor not now of off on once one only or other our ours ourselves out over own per please s shall she should ' +
  'shouldn so some such t than that the their theirs them themselves then there these they this those through to too under until up us used uses using ve ' +
  'very want wants was wasn we were weren what when where whether which while who whom whose why will with won would wouldn you your yours ' +
  'yourself yourselves').split(' '))

export function isStopWord (word: string): boolean {
  return STOP_WORDS.has(word)
}
