import { context, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { suppressTracing } from '@opentelemetry/core';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  type ReadableSpan,
  type Sampler,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Request } from 'express';
import { EventEmitter } from 'node:events';
import { RequestContext } from '../server/requests/request-context.js';
import { RequestSpans } from './request-spans.js';

/* Requests in a process with an SDK that the team has started, with and without an instrumentation of http. */

let ended: ReadableSpan[];
let draws: number;
const processor: SpanProcessor = {
  onStart: () => undefined,
  onEnd: (span) => ended.push(span),
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};

beforeAll(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
beforeEach(() => {
  ended = [];
  draws = 0;
});
afterAll(() => context.disable());

function tracerOf(decision: Sampler) {
  const sampler: Sampler = {
    shouldSample: (...parameters) => {
      draws++;
      return decision.shouldSample(...parameters);
    },
    toString: () => 'counted',
  };
  return new TracerProvider({ sampler, spanProcessors: [processor] }).getTracer('own');
}

function requestOf(url = '/v1/books'): Request {
  const res = Object.assign(new EventEmitter(), { headersSent: false, statusCode: 200, writableFinished: false });
  const request = {
    method: 'GET',
    url,
    baseUrl: '',
    httpVersion: '1.1',
    headers: {},
    route: { path: '/v1/books' },
    res,
  };
  return Object.assign(request, { context: new RequestContext('id'), socket: {} }) as unknown as Request;
}

const within = (span: Span, run: () => void): void => context.with(trace.setSpan(ROOT_CONTEXT, span), run);

test('the decision of the instrumentation not to sample a request is kept', () => {
  const tracer = tracerOf(new AlwaysOffSampler());
  const spans = new RequestSpans(tracer, true);
  const foreign = tracer.startSpan('GET', { kind: SpanKind.SERVER });
  const request = requestOf();
  within(foreign, () => spans.begin(request));
  expect(draws).toBe(1);
  expect(request.context.traceId).toBe(foreign.spanContext().traceId);
  spans.run(request, () => expect(trace.getActiveSpan()).toBe(foreign));
});

test('a request that the instrumentation ignores has no span', () => {
  const spans = new RequestSpans(tracerOf(new AlwaysOnSampler()), true);
  const request = requestOf();
  context.with(suppressTracing(ROOT_CONTEXT), () => {
    spans.begin(request);
    spans.run(request, () => expect(trace.getActiveSpan()).toBeUndefined());
  });
  spans.answered(request, request.res as never);
  expect([draws, ended]).toEqual([0, []]);
});

test.each([
  ['sampled', new AlwaysOnSampler()],
  ['not sampled', new AlwaysOffSampler()],
])('a request in the context of the previous one, which is %s, gets its own sampling decision', (_, sampler) => {
  const spans = new RequestSpans(tracerOf(sampler), true);
  const [first, second] = [requestOf(), requestOf()];
  spans.begin(first);
  spans.run(first, () => spans.begin(second));
  expect(draws).toBe(2);
  expect(second.context.traceId).not.toBe(first.context.traceId);
});

test('a request below the ended span of the previous one has its own span', () => {
  const tracer = tracerOf(new AlwaysOnSampler());
  const spans = new RequestSpans(tracer, true);
  const foreign = tracer.startSpan('GET');
  foreign.end();
  within(foreign, () => spans.begin(requestOf()));
  expect(draws).toBe(2);
});

test('the span of the instrumentation gets its attributes before it ends, also when the client disconnects', () => {
  const tracer = tracerOf(new AlwaysOnSampler());
  const spans = new RequestSpans(tracer, true);
  const foreign = tracer.startSpan('GET', { kind: SpanKind.SERVER });
  const request = requestOf();
  request.res?.on('close', () => foreign.end());
  within(foreign, () => spans.begin(request));
  request.res?.emit('close');
  expect(ended).toHaveLength(1);
  expect(ended[0]).toMatchObject({
    name: 'GET /v1/books',
    attributes: { 'http.route': '/v1/books', 'petstore.request_id': 'id', 'petstore.aborted': true },
  });
});

test.each([
  ['/v1/books?token=secret', '/v1/books'],
  ['http://user:secret@host.example/v1/books?a', '/v1/books'],
  ['http://user:secret@host.example', '/'],
  ['http://user:secret@host.example?secret', '/'],
  ['*', '*'],
])('the span of a request for %s has only the path', (target, path) => {
  const spans = new RequestSpans(tracerOf(new AlwaysOnSampler()), false);
  const request = requestOf(target);
  spans.begin(request);
  spans.answered(request, request.res as never);
  expect(ended[0]?.attributes['url.path']).toBe(path);
});
