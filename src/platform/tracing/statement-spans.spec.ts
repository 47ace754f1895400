import { context, type Link, ROOT_CONTEXT, type Span, trace, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AlwaysOnSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import type pg from 'pg';
import { Sharers } from './sharers.js';
import { StatementSpans } from './statement-spans.js';

beforeAll(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());

test('a statement for many requests has at most 128 links, and spans without addLink do not fail', () => {
  const tracer = new TracerProvider({ sampler: new AlwaysOnSampler() }).getTracer('test');
  const links: (readonly Link[] | undefined)[] = [];
  const observed: Pick<Tracer, 'startSpan'> = {
    startSpan: (name, options, active) => {
      links.push(options?.links);
      return tracer.startSpan(name, options, active);
    },
  };
  const spans = new StatementSpans(observed as Tracer);
  const sharers = Array.from({ length: 200 }, (): Span => {
    // Spans of older versions of the API lack addLink.
    return Object.assign(tracer.startSpan('GET'), { addLink: undefined });
  });
  new Sharers().runFor(
    sharers.map((sharer) => trace.setSpan(ROOT_CONTEXT, sharer)),
    () => spans.begin('SELECT 1', {} as pg.Client)?.(),
  );
  expect(links[0]?.map(({ context: { spanId } }) => spanId)).toEqual(
    sharers.slice(0, 128).map((sharer) => sharer.spanContext().spanId),
  );
});
