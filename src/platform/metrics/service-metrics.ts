import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Counter, Gauge, type Registry } from 'prom-client';
import { Config } from '../../config.js';
import { Application } from '../application.js';
import { KeyUsage } from '../key-usage/key-usage.js';
import { RateLimiter, type RedisState } from '../rate-limit/rate-limiter.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { countFrom, Metrics } from './metrics.js';

/** Metrics of the server, rate limits and key usage. Their values are read at each scrape, so requests have no extra cost. */
@Injectable()
export class ServiceMetrics {
  constructor(
    metrics: Metrics,
    config: Config,
    application: Application,
    adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
    rateLimiter: RateLimiter,
    keyUsage: KeyUsage,
  ) {
    const registers = [metrics.registry];
    new Gauge({
      name: 'petstore_build_info',
      help: 'Always 1, with the version of the service and of Node.js as labels.',
      labelNames: ['version', 'node_version'] as const,
      registers,
      aggregator: 'max',
    }).set({ version: application.release, node_version: process.version }, 1);
    observeServer(() => adapterHost.httpAdapter.load, config, registers);
    observeRateLimits(rateLimiter, registers);
    observeKeyUsage(keyUsage, registers);
  }
}

function observeServer(load: () => PlatformExpressAdapter['load'], config: Config, registers: Registry[]): void {
  new Gauge({
    name: 'petstore_http_requests_in_flight',
    help: 'Requests that are being served, the scrape included.',
    registers,
    collect() {
      this.set(load().requests);
    },
  });
  new Gauge({
    name: 'petstore_http_requests_in_flight_limit',
    help: 'MAX_REQUESTS_IN_FLIGHT: one request more is answered 503.',
    registers,
  }).set(config.maxRequestsInFlight);
  new Gauge({
    name: 'petstore_http_connections',
    help: 'Open connections of clients.',
    registers,
    collect() {
      this.set(load().connections);
    },
  });
  new Gauge({
    name: 'petstore_http_connections_limit',
    help: 'Largest number of open connections; further ones are dropped.',
    registers,
  }).set(config.maxConnections);
  countFrom(registers, {
    name: 'petstore_http_connections_dropped_total',
    help: 'Connections that were closed without an answer, because too many were open.',
    count: () => load().droppedConnections,
  });
}

function observeRateLimits(rateLimiter: RateLimiter, registers: Registry[]): void {
  new Counter({
    name: 'petstore_rate_limited_total',
    help: 'Calls that were refused with 429, by client. Clients beyond the first hundred of a process count together.',
    labelNames: ['client'] as const,
    registers,
    collect() {
      this.reset();
      rateLimiter.refusals.forEach((count, client) => this.inc({ client }, count));
    },
  });
  if (!rateLimiter.isShared) return;
  const state = (): RedisState => rateLimiter.redis;
  new Gauge({
    name: 'petstore_redis_away',
    help: '1 while Redis does not answer, and the process limits its clients by itself; else 0.',
    registers,
    aggregator: 'max',
    collect() {
      this.set(state().isAway ? 1 : 0);
    },
  });
  countFrom(registers, {
    name: 'petstore_rate_limit_local_decisions_total',
    help: 'Calls that the process has counted by itself, because Redis did not answer in time.',
    count: () => state().localDecisions,
  });
}

function observeKeyUsage(keyUsage: KeyUsage, registers: Registry[]): void {
  countFrom(registers, {
    name: 'petstore_key_usage_write_failures_total',
    help: 'Writes of the usage of API keys that failed. Their counts wait for the next write.',
    count: () => keyUsage.failedWrites,
  });
  countFrom(registers, {
    name: 'petstore_key_usage_uncounted_calls_total',
    help: 'Calls that are missing in the usage of API keys, because too many counts waited to be written.',
    count: () => keyUsage.uncountedCalls,
  });
  new Gauge({
    name: 'petstore_key_usage_waiting_counts',
    help: 'Counts of usage, one for each key, operation and day, that wait to be written.',
    registers,
    collect() {
      this.set(keyUsage.waiting);
    },
  });
}
