import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../auth/public.decorator.js';
import { Database } from '../database/database.js';
import { serviceUnavailable } from '../errors/service-unavailable.js';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { PassesRequestToLog } from '../server/requests/request-context.js';
import { type CheckResults, ReadinessChecks } from './readiness-checks.js';

interface ReadyAnswer {
  readonly status: 'ok';
  readonly database?: 'unreachable';
  readonly checks?: CheckResults;
}

/** Health checks for load balancers and process managers. Public. */
@Public()
@ApiExcludeController()
@PassesRequestToLog()
@Controller({ path: 'health', version: VERSION_NEUTRAL })
export class HealthController {
  constructor(
    private readonly database: Database,
    private readonly checks: ReadinessChecks,
    private readonly adapterHost: HttpAdapterHost<PlatformExpressAdapter>,
  ) {}

  /** Always 200: whatever else fails, a restart would not help while the process answers. */
  @Get('live')
  @Header('Cache-Control', 'no-store')
  checkLiveness(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * 200 while this process should get requests, with the results of modules' checks. A database that does not answer within
   * 1 s is reported in `database`, but the process stays ready: all instances share the database, and without ready
   * instances the load balancer would answer instead of the service.
   *
   * @throws ApiError UNAVAILABLE while the server drains; when the schema is outdated, or newer and not backward compatible;
   *   when a check of a module fails
   */
  @Get('ready')
  @Header('Cache-Control', 'no-store')
  async checkReadiness(): Promise<ReadyAnswer> {
    if (this.adapterHost.httpAdapter.isDraining) {
      throw serviceUnavailable('draining', 'The server is shutting down.');
    }
    const [readiness, checks] = await Promise.all([this.database.readiness(), this.checks.run()]);
    if (typeof readiness === 'object') throw serviceUnavailable('schema', readiness.message);
    const failed = Object.keys(checks).filter((name) => checks[name] === 'failed');
    if (failed.length > 0) {
      throw serviceUnavailable('check', `These readiness checks fail: ${failed.join(', ')}.`, { details: { checks } });
    }
    return {
      status: 'ok',
      ...(readiness === 'unreachable' && { database: 'unreachable' }),
      ...(Object.keys(checks).length > 0 && { checks }),
    };
  }
}
