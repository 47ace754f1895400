import { type Context, context, createContextKey, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import type { SharerTracer } from '../database/sharing/sharers.js';

/** The context key of the spans that share the work of a context, if there are several. */
const SHARERS = createContextKey('petstore.sharers');

/** The spans that share the work of a context; empty if it belongs to one span. */
export function sharersOf(active: Context): readonly Span[] {
  return (active.getValue(SHARERS) as readonly Span[] | undefined) ?? [];
}

/**
 * Work that several requests share becomes a child of the first sampled one, with links to all of them. So it is part of one
 * trace, and the requests' sampling applies to it.
 */
export class Sharers implements SharerTracer {
  current(): Context {
    return context.active();
  }

  runFor<Result>(callers: readonly Context[], run: () => Result): Result {
    return context.with(contextOf(callers), run);
  }
}

function contextOf(callers: readonly Context[]): Context {
  const [first] = callers;
  if (first !== undefined && callers.length === 1) return first;
  const spans = new Set<Span>();
  for (const caller of callers) {
    const shared = sharersOf(caller);
    const own = trace.getSpan(caller);
    for (const span of shared.length > 0 ? shared : own ? [own] : []) if (span.isRecording()) spans.add(span);
  }
  const [parent] = spans;
  if (parent === undefined) return ROOT_CONTEXT;
  const ofParent = trace.setSpan(ROOT_CONTEXT, parent);
  return spans.size === 1 ? ofParent : ofParent.setValue(SHARERS, [...spans]);
}
