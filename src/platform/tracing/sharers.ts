import { type Context, context, createContextKey, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api';
import type { SharerTracer } from '../database/sharing/sharers.js';

/** Spans on whose behalf the work of a context is done, if there are several. */
const SHARERS = createContextKey('petstore.sharers');

/** The spans that share the work of a context; none if it is the work of one. */
export function sharersOf(active: Context): readonly Span[] {
  return (active.getValue(SHARERS) as readonly Span[] | undefined) ?? [];
}

/**
 * What several requests share is a child of the first of them, so that their sampling decides about it and it has a place in
 * one trace, with links to all of them.
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
