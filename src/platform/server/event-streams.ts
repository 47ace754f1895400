import type { CanActivate, ExecutionContext, INestApplication } from '@nestjs/common';
import { GUARDS_METADATA, SSE_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { Response } from 'express';
import type { Readable } from 'node:stream';
import { serviceUnavailable } from '../errors/service-unavailable.js';

/** Time in ms that a stream which begins during the shutdown has to send its header section. */
const LATE_START_MS = 20;

/** By the Express application that receives the requests. */
const streamsOf = new WeakMap<object, EventStreams>();

/**
 * The open event streams (`@Sse()`) of this process. Clients keep them open as long as they want, so they do not count towards
 * MAX_REQUESTS_IN_FLIGHT. When the server stops listening, they end: the client gets the end of the answer, the connection
 * closes, and Nest unsubscribes from the handler's observable.
 */
export class EventStreams {
  /** For each response, the stream that Nest pipes into it; undefined until the handler has returned its observable. */
  private readonly open = new Map<Response, Readable | undefined>();
  private hasEnded = false;

  /**
   * @param app the Express application whose requests these are
   * @param writeTimeoutMs the time after which a client that does not read is cut
   * @param limit most streams of the process, so that their number bounds its memory
   */
  constructor(
    app: object,
    private readonly writeTimeoutMs: number,
    private readonly limit: number,
  ) {
    streamsOf.set(app, this);
  }

  /**
   * Adds the stream that answers a request, until the answer is over.
   *
   * @throws ApiError 503 beyond the limit
   */
  add(response: Response): void {
    if (this.open.size >= this.limit) throw serviceUnavailable('event_streams');
    this.open.set(response, undefined);
    response.once('close', () => this.open.delete(response));
    response.once('pipe', (events: Readable) => {
      this.open.set(response, events);
      // Nest switches the socket's time-out off. It must stay on, because it cuts clients that do not read.
      response.socket?.setTimeout(this.writeTimeoutMs);
      if (this.hasEnded) setTimeout(() => end(response, events), LATE_START_MS);
    });
  }

  /** Ends all streams; later ones end as soon as they have begun. */
  end(): void {
    this.hasEnded = true;
    for (const [response, events] of this.open) {
      if (events !== undefined) end(response, events);
    }
  }
}

function end(response: Response, events: Readable): void {
  if (response.writableEnded) return;
  const { socket } = response;
  // Writing an event after the end of the answer would be an error.
  events.unpipe(response);
  // Nest unsubscribes when the connection closes.
  response.end(() => socket?.destroySoon());
}

/** Counts the streams of handlers with `@Sse()`. Applications of one process share it, as they share the metadata. */
const GUARD: CanActivate = {
  canActivate(execution: ExecutionContext): true {
    const response = execution.getArgByIndex<Response>(1);
    streamsOf.get(response.req.app)?.add(response);
    return true;
  },
};

/** Binds a guard to every handler with `@Sse()`, after the global guards, before the application is initialised. */
export function limitEventStreams(app: INestApplication): void {
  for (const { metatype } of app.get(DiscoveryService).getControllers()) {
    const prototype = metatype?.prototype as Record<string, object>;
    for (const name of new MetadataScanner().getAllMethodNames(prototype)) {
      const handler = prototype[name] as object;
      const guards = (Reflect.getMetadata(GUARDS_METADATA, handler) ?? []) as unknown[];
      if (!Reflect.hasMetadata(SSE_METADATA, handler) || guards.includes(GUARD)) continue;
      Reflect.defineMetadata(GUARDS_METADATA, [GUARD, ...guards], handler);
    }
  }
}
