/** The package has no types of its own. */
declare module 'parse-prometheus-text-format' {
  export default function parsePrometheusTextFormat (text: string): ReadonlyArray<{
    readonly name: string
    readonly help: string
    readonly type: string
    readonly metrics: readonly unknown[]
  }>
}
