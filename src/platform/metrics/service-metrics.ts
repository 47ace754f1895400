import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Registry } from 'prom-client';
import { Config } from '../../config.js';
import { Application } from '../application.js';
import { Database } from '../database/database.js';
import type { Replicas } from '../database/replicas.js';
import { KeyUsage } from '../key-usage/key-usage.js';
import { RateLimiter } from '../rate-limit/rate-limiter.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { Metrics, registerCounter, registerGauge } from './metrics.js';

/** Metrics of the server, the database, Redis and key usage. */
@Injectable()
export class ServiceMetrics {
  constructor(
    { registry }: Metrics,
    config: Config,
    application: Application,
    adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
    database: Database,
    rateLimiter: RateLimiter,
    keyUsage: KeyUsage,
  ) {
    const build = { version: application.release, node_version: process.version };
    registerGauge(registry, {
      name: 'petstore_build_info',
      help: 'Always 1, with the version of the service and of Node.js as labels.',
      labelNames: ['version', 'node_version'],
      aggregator: 'max',
      read: () => [[build, 1]],
    });
    observeServer(() => adapterHost.httpAdapter.load, config, registry);
    observeDatabase(database, registry);
    if (database.replicas !== undefined) observeReplicas(database.replicas, registry);
    if (config.redisUrl !== undefined) observeRedis(rateLimiter, registry);
    observeKeyUsage(keyUsage, registry);
  }
}

function observeServer(load: () => PlatformExpressAdapter['load'], config: Config, registry: Registry): void {
  registerGauge(registry, {
    name: 'petstore_http_requests_in_flight',
    help: 'Requests that are being served, the scrape included.',
    read: () => load().requests,
  });
  registerGauge(registry, {
    name: 'petstore_http_requests_in_flight_limit',
    help: 'MAX_REQUESTS_IN_FLIGHT: one request more is answered 503.',
    read: () => config.maxRequestsInFlight,
  });
  registerGauge(registry, {
    name: 'petstore_http_connections',
    help: 'Open connections of clients.',
    read: () => load().connections,
  });
  registerGauge(registry, {
    name: 'petstore_http_connections_limit',
    help: 'Largest number of open connections; further ones are dropped.',
    read: () => config.maxConnections,
  });
  registerCounter(registry, {
    name: 'petstore_http_connections_dropped_total',
    help: 'Connections that were closed without an answer, because too many were open.',
    read: () => load().droppedConnections,
  });
}

function observeDatabase(database: Database, registry: Registry): void {
  registerGauge(registry, {
    name: 'petstore_database_silent',
    help: '1 while the database does not answer at all, and requests are answered 503 without asking it; else 0.',
    aggregator: 'max',
    read: () => Number(database.pool.isSilent),
  });
  registerGauge(registry, {
    name: 'petstore_database_connections',
    help: 'Connections of the pool to the primary, by state: idle or busy.',
    labelNames: ['state'],
    read: () => {
      const { idleCount, busy } = database.pool;
      return [
        [{ state: 'idle' }, idleCount],
        [{ state: 'busy' }, busy],
      ];
    },
  });
  registerGauge(registry, {
    name: 'petstore_database_waiting_statements',
    help: 'Statements that wait for a connection of the pool.',
    read: () => database.pool.waitingCount,
  });
}

function observeReplicas(replicas: Replicas, registry: Registry): void {
  registerGauge(registry, {
    name: 'petstore_replica_ready',
    help: 'Processes that use the read replica. The log says why others do not.',
    labelNames: ['replica'],
    read: () => replicas.all.map(({ name, isReady }) => [{ replica: name }, Number(isReady)]),
  });
  registerGauge(registry, {
    name: 'petstore_replica_behind_bytes',
    help: 'How far the read replica was behind the primary when it was last asked, in bytes of the write-ahead log.',
    labelNames: ['replica'],
    aggregator: 'max',
    read: () => replicas.all.map(({ name, behindBytes }) => [{ replica: name }, behindBytes]),
  });
  registerCounter(registry, {
    name: 'petstore_replica_reads_total',
    help: 'Statements that the read replica has answered.',
    labelNames: ['replica'],
    read: () => replicas.all.map(({ name, reads }) => [{ replica: name }, reads]),
  });
  registerCounter(registry, {
    name: 'petstore_replica_fallbacks_total',
    help: 'Statements that the primary has answered in place of a read replica.',
    read: () => replicas.fallbacks,
  });
}

function observeRedis(rateLimiter: RateLimiter, registry: Registry): void {
  registerGauge(registry, {
    name: 'petstore_redis_away',
    help: '1 while Redis does not answer, and the process limits its clients by itself; else 0.',
    aggregator: 'max',
    read: () => Number(rateLimiter.shared?.isAway ?? false),
  });
}

function observeKeyUsage(keyUsage: KeyUsage, registry: Registry): void {
  registerCounter(registry, {
    name: 'petstore_key_usage_write_failures_total',
    help: 'Writes of the usage of API keys that failed. Their counts wait for the next write.',
    read: () => keyUsage.failedWrites,
  });
  registerCounter(registry, {
    name: 'petstore_key_usage_uncounted_calls_total',
    help: 'Calls that may be missing in the usage of API keys: too many counts waited, or a write was not confirmed.',
    read: () => keyUsage.uncountedCalls,
  });
}
