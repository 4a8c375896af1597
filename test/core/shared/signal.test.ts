import { once } from 'node:events'
import t from 'tap'
import { Signal } from '../../../src/core/shared/signal.ts'

t.test('each subscription gets each value until it ends, in order', async (t) => {
  const signal = new Signal<number>()
  const got: string[] = []
  const note = (value: number): void => { got.push(`a${value}`) }
  t.notOk(signal.hasListeners)
  const stops = [signal.subscribe(note), signal.subscribe(note), signal.subscribe((value) => { got.push(`b${value}`) })]
  signal.emit(1)
  stops[0]?.()
  stops[0]?.()
  signal.emit(2)
  t.ok(signal.hasListeners)
  signal.clear()
  signal.emit(3)
  t.strictSame(got, ['a1', 'a1', 'b1', 'a2', 'b2'])
  t.notOk(signal.hasListeners)
})

t.test('whoever leaves during an emission is not called, and whoever comes not yet', async (t) => {
  const signal = new Signal<number>()
  const got: string[] = []
  let stop = () => {}
  signal.subscribe((value) => {
    stop()
    if (value === 1) signal.subscribe((later) => { got.push(`late ${later}`) })
  })
  stop = signal.subscribe(() => { got.push('left') })
  signal.emit(1)
  t.strictSame(got, [])
  signal.emit(2)
  t.strictSame(got, ['late 2'])
})

t.test('a listener that throws stops nobody: its error is a warning', async (t) => {
  const signal = new Signal<number>()
  const got: number[] = []
  signal.subscribe(() => { throw new TypeError('a bug') })
  signal.subscribe((value) => { got.push(value) })
  const warned = once(process, 'warning')
  signal.emit(1)
  t.strictSame(got, [1])
  t.match(await warned, [{ name: 'TypeError', message: 'a bug' }])
})

t.test('what feeds a signal begins with the first listener and ends with the last, again and again', async (t) => {
  const steps: string[] = []
  const signal = new Signal<number>(() => {
    steps.push('begin')
    return () => { steps.push('end') }
  })
  const stops = [signal.subscribe(() => {}), signal.subscribe(() => {})]
  stops[0]?.()
  stops[0]?.()
  t.strictSame(steps, ['begin'])
  stops[1]?.()
  signal.clear()
  t.strictSame(steps, ['begin', 'end'])
  const stop = signal.subscribe(() => {})
  signal.clear()
  stop()
  t.strictSame(steps, ['begin', 'end', 'begin', 'end'])
})
