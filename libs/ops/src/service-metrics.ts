import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Counter, Gauge } from 'prom-client';
import type { HttpConfig, PlatformExpressAdapter } from '#edge';
import { Batches, Database } from '#postgres';
import { untestedDependencies } from '#runtime';
import { Application, Config } from '#settings';
import { Metrics, registerMetric } from './metrics.js';

@Injectable()
export class ServiceMetrics {
  constructor(
    metrics: Metrics,
    @Inject(Config) config: HttpConfig,
    application: Application,
    adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
    database: Database,
  ) {
    const untested = untestedDependencies().length;
    registerMetric(Gauge, metrics, {
      name: 'build_info',
      help: 'Always 1, with the version of the service and of Node.js as labels.',
      labelNames: ['version', 'node_version'],
      read: () => [[{ version: application.release, node_version: process.version }, 1]],
    });
    registerMetric(Gauge, metrics, {
      name: 'untested_dependencies',
      help: 'Dependencies of which the tests have not passed for the installed release. A warning at the start names them.',
      read: () => untested,
    });
    registerMetric(Gauge, metrics, {
      name: 'http_requests_in_flight',
      help: 'Requests that are being served, the scrape included.',
      read: () => adapterHost.httpAdapter.load.requests,
    });
    registerMetric(Gauge, metrics, {
      name: 'http_requests_in_flight_limit',
      help: 'MAX_REQUESTS_IN_FLIGHT: further requests get 503.',
      read: () => config.maxRequestsInFlight,
    });
    registerMetric(Gauge, metrics, {
      name: 'http_connections',
      help: 'Open connections of clients.',
      read: () => adapterHost.httpAdapter.load.connections,
    });
    registerMetric(Gauge, metrics, {
      name: 'http_connections_limit',
      help: 'Largest number of open connections; further ones are dropped.',
      read: () => config.maxConnections,
    });
    registerMetric(Counter, metrics, {
      name: 'http_connections_dropped_total',
      help: 'Connections that were closed without a response, because too many were open.',
      read: () => adapterHost.httpAdapter.load.droppedConnections,
    });
    registerMetric(Gauge, metrics, {
      name: 'database_silent',
      help: '1 while the database does not respond at all, and requests get 503 without asking it; else 0.',
      read: () => Number(database.pool.isSilent),
    });
    registerMetric(Gauge, metrics, {
      name: 'database_connections',
      help: 'Connections of the pool, by state: idle or busy.',
      labelNames: ['state'],
      read: () => [
        [{ state: 'idle' }, database.pool.idleCount],
        [{ state: 'busy' }, database.pool.busy],
      ],
    });
    registerMetric(Gauge, metrics, {
      name: 'database_waiting_statements',
      help: 'Statements that wait for a connection of the pool.',
      read: () => database.pool.waitingCount,
    });
    registerMetric(Counter, metrics, {
      name: 'database_refused_statements_total',
      help: 'Statements shared by several requests whose form the database does not support. Each request then has its own for 10 min.',
      read: () => Batches.refusals,
    });
  }
}
