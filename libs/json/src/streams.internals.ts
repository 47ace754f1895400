import type { INestApplication, MessageEvent } from '@nestjs/common';
import type { RouterExecutionContext } from '@nestjs/core/router/router-execution-context.js';
import type { Response } from 'express';
import { Readable } from 'node:stream';
import { isAnyArrayBuffer } from 'node:util/types';
import { isObservable, map } from 'rxjs';
import { misfit } from '#runtime';
import { jsonOf } from './json-writer.js';

/** What we use of Nest's RouterExecutionContext. */
type HandlerCalls = Pick<RouterExecutionContext, 'createHandleResponseFn' | 'reflectSse'>;
type Send = (result: unknown, response: Response, ...others: unknown[]) => Promise<unknown>;

/** A stream of values, as handlers return it: a generator, a stream of Node.js in object mode, or one of the web. */
type Source = Partial<AsyncIterable<unknown>> & {
  readonly then?: unknown;
  readonly locked?: boolean;
  readonly readableObjectMode?: boolean;
  getReader?(): { read(): Promise<IteratorResult<unknown>>; cancel(): Promise<unknown> };
  on?(event: 'error', listener: () => void): unknown;
  destroy?(): unknown;
};

/**
 * Lets events (`@Sse()`) and streams of values be written by the rules of `writeJson`, for which Nest calls `JSON.stringify`. Must be
 * called before routes are registered, which `listen` does.
 *
 * @throws StartupError when this application calls its handlers in another way
 */
export function writeStreamsAsJson(app: INestApplication): void {
  const { routesResolver } = app as {
    routesResolver?: { routerExplorer?: { executionContextCreator?: HandlerCalls } };
  };
  const calls = routesResolver?.routerExplorer?.executionContextCreator;
  if (calls === undefined) throw misfit('@nestjs/core', 'its router keeps how it calls handlers in another way');
  const byNest = calls.createHandleResponseFn.bind(calls);
  calls.createHandleResponseFn = (callback, ...options) => {
    const send = byNest(callback, ...options) as Send;
    const isStream = calls.reflectSse(callback) !== undefined;
    const written: Send = (result, response, ...others) =>
      send(isStream ? eventsOf(result) : valuesOf(result, response), response, ...others);
    return written as ReturnType<typeof byNest>;
  };
}

/** @param result an observable of events, or a promise of one */
function eventsOf(result: unknown): unknown {
  if (isObservable(result)) return result.pipe(map(writtenEvent));
  return result instanceof Promise ? result.then(eventsOf) : result;
}

function writtenEvent(event: unknown): unknown {
  const isEvent = typeof event === 'object' && event !== null;
  const { data, type, id, retry, comment } = (isEvent ? event : { data: event }) as Partial<MessageEvent>;
  if (typeof data === 'string' || data === undefined || data === null) return event;
  return { type, id, retry, comment, data: jsonOf(data) };
}

function valuesOf(result: unknown, response: Response): unknown {
  if (typeof result !== 'object' || result === null) return result;
  const source = result as Source;
  const isOfValues =
    typeof source[Symbol.asyncIterator] === 'function' &&
    typeof source.then !== 'function' &&
    source.readableObjectMode !== false;
  // Nest refuses one that was read already.
  if (!isOfValues || source.locked === true || Readable.isDisturbed(source as Readable)) return result;
  return { [Symbol.asyncIterator]: () => written(source, response) };
}

function written(source: Source, response: Response): AsyncIterator<unknown> {
  // Unlike its iterator, the reader of a web stream ends it while a read waits.
  const reader = source.getReader?.();
  const iterator = reader ? undefined : (source as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return {
    next: async () => {
      const next = await (reader ? reader.read() : iterator?.next());
      return next?.done === false
        ? { done: false, value: chunkOf(next.value, response) }
        : { done: true, value: undefined };
    },
    return: async () => {
      // A stream that is still opening what it reads reports a failure after it was destroyed.
      source.on?.('error', () => undefined);
      source.destroy?.();
      await (reader ? reader.cancel() : iterator?.return?.());
      return { done: true, value: undefined };
    },
  };
}

/** As in Nest: texts and bytes as they are, everything else as a line of JSON. */
function chunkOf(value: unknown, response: Response): unknown {
  if (typeof value === 'string' || ArrayBuffer.isView(value) || isAnyArrayBuffer(value)) return value;
  if (!response.headersSent && !response.hasHeader('Content-Type'))
    response.setHeader('Content-Type', 'application/x-ndjson');
  const text = jsonOf(value);
  return text === undefined ? '' : `${text}\n`;
}
