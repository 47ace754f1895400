import type { CanActivate, ExecutionContext, INestApplication } from '@nestjs/common';
import { GUARDS_METADATA, SSE_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { Response } from 'express';
import { EventStreams } from './event-streams.js';

/** Admits a request to a handler with `@Sse()` while fewer than MAX_EVENT_STREAMS streams are open. */
class EventStreamGuard implements CanActivate {
  /** @throws ApiError 503 */
  canActivate(execution: ExecutionContext): true {
    const response = execution.getArgByIndex<Response>(1);
    EventStreams.of(response.req)?.add(response);
    return true;
  }
}

/**
 * Binds EventStreamGuard to every handler with `@Sse()`; it runs after the global guards. Must be called before the
 * application is initialised.
 */
export function limitEventStreams(app: INestApplication): void {
  const scanner = new MetadataScanner();
  for (const { metatype } of app.get(DiscoveryService).getControllers()) {
    const prototype = (metatype?.prototype ?? {}) as Record<string, object>;
    for (const name of scanner.getAllMethodNames(prototype)) bindGuard(prototype[name] as object);
  }
}

function bindGuard(handler: object): void {
  const guards = (Reflect.getMetadata(GUARDS_METADATA, handler) ?? []) as unknown[];
  const isBound = guards.some((guard) => guard instanceof EventStreamGuard);
  if (isBound || !Reflect.hasMetadata(SSE_METADATA, handler)) return;
  Reflect.defineMetadata(GUARDS_METADATA, [new EventStreamGuard(), ...guards], handler);
}
